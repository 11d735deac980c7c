"""`presage key revoke`, `allow`, `replace`, `tier` and `quota`: change an existing key."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.recording import record

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

Which = Annotated[
    str, typer.Argument(metavar="KEY", help="The key, its prefix as shown by `list`, or its owner's email.")
]
DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]
MAX_INTEGER = 2**31 - 1


def add(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(revoke)
    app.command()(allow)
    app.command()(replace)
    app.command()(tier)
    app.command()(quota)


def revoke(key: Which, *, database_url: DatabaseUrl = None) -> None:
    """Revoke a key. The next request with it is refused, and its streams are closed.

    With its last key, an account is closed: its email address cannot register again, until `key create` or `key allow`.
    """
    from sql.queries import accounts
    from sql.queries import keys as queries

    def change(conn: psycopg.Connection[Any], key_id: int) -> dict[str, Any]:
        closed = accounts.close_if_keyless(conn, account_id=queries.revoke(conn, key_id=key_id))
        return {"account_closed": bool(closed)}

    _change(database_url, key, change, "revoked")


def allow(
    email: Annotated[str, typer.Argument(help="The email address of an account that was closed.")],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Let an email address register again whose keys were revoked. It gets a new account; revoked keys stay revoked."""
    from api.metering.keys import normalised
    from cli.stack.plan_builder import database
    from sql.database import connect
    from sql.queries import accounts

    with database(database_url) as url, connect(url) as conn:
        holder = accounts.holder(conn, email=normalised(email))
        if holder is None or not holder[1]:
            raise ValueError(f"no closed account has the address {email}")
        accounts.reopen(conn, account_id=holder[0])
        record(conn, account_id=holder[0])
    typer.echo(f"{email} can register again")


def replace(key: Which, *, database_url: DatabaseUrl = None) -> None:
    """Replace a lost key with a new one, and print it. Account, tier, limits and usage stay."""
    from api.metering import keys
    from sql.queries import keys as queries

    new = keys.PREFIX + secrets.token_urlsafe(32)

    def change(conn: psycopg.Connection[Any], key_id: int) -> dict[str, Any]:
        queries.replace(conn, key_id=key_id, key_hash=keys.digest(new), prefix=new[: keys.PREFIX_CHARS])
        return {}

    _change(database_url, key, change, "is no longer valid; its replacement is")
    typer.echo(new)


def tier(
    key: Which,
    tier: Annotated[str, typer.Argument(metavar="TIER", help="free, pro or enterprise.")],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Move a key to another tier. Limits set for this key stay."""
    from sql.queries import keys as queries

    def change(conn: psycopg.Connection[Any], key_id: int) -> dict[str, Any]:
        known = [name for (name,) in queries.tiers(conn)]
        if tier not in known:
            raise ValueError(f"there is no tier {tier}; available: {', '.join(known)}")
        _, before = queries.holder(conn, key_id=key_id)
        queries.put_into_tier(conn, key_id=key_id, tier=tier)
        return {"before": before, "tier": tier}

    _change(database_url, key, change, f"is {tier} now")


Limit = typer.Option(metavar="N|tier", help="A number, or `tier` for the tier's limit.")


def quota(
    key: Which,
    *,
    month: Annotated[str | None, Limit] = None,
    burst: Annotated[str | None, Limit] = None,
    connections: Annotated[str | None, Limit] = None,
    webhooks: Annotated[str | None, Limit] = None,
    webhook_messages: Annotated[str | None, Limit] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Set this key's own limits: credits a month and a second, open streams, webhooks and their messages a day."""
    from sql.queries import keys as queries

    if month is burst is connections is webhooks is webhook_messages is None:
        raise typer.BadParameter(
            "give at least one of --month, --burst, --connections, --webhooks and --webhook-messages"
        )
    wanted = {
        "credits_month": _limit("--month", month, 2**53),
        "credits_burst": _limit("--burst", burst, MAX_INTEGER),
        "max_connections": _limit("--connections", connections, MAX_INTEGER),
        "max_webhooks": _limit("--webhooks", webhooks, MAX_INTEGER),
        "webhook_messages_day": _limit("--webhook-messages", webhook_messages, 2**53),
    }

    def change(conn: psycopg.Connection[Any], key_id: int) -> dict[str, Any]:
        kept = dict(zip(wanted, queries.limits(conn, key_id=key_id), strict=True))
        limits = {name: kept[name] if limit == "keep" else limit for name, limit in wanted.items()}
        queries.set_limits(conn, key_id=key_id, **limits)
        changed = [name for name, limit in wanted.items() if limit != "keep"]
        return {"before": {name: kept[name] for name in changed}, "now": {name: limits[name] for name in changed}}

    _change(database_url, key, change, "has new limits")


def _limit(option: str, given: str | None, maximum: int) -> int | str | None:
    """Parse a limit: a number, None for the tier's, `keep` for the current one."""
    if given is None:
        return "keep"
    if given == "tier":
        return None
    if not (given.isascii() and given.isdigit() and int(given) <= maximum):
        raise typer.BadParameter(f"{option}: {given} is neither a number up to {maximum} nor `tier`")
    return int(given)


def _change(
    url: str | None, key: str, change: Callable[[psycopg.Connection[Any], int], dict[str, Any]], done: str
) -> None:
    """Change a key. The database notifies all API processes; those of this host see it before this returns."""
    from api.metering import ledger_location
    from cli.stack.plan_builder import database
    from config import settings
    from sql.database import connect
    from sql.queries import keys as queries

    with database(url) as database_url, connect(database_url, autocommit=True) as conn:
        with conn.transaction():
            key_id, prefix = _find(conn, key)
            detail = change(conn, key_id)
            account_id, _ = queries.holder(conn, key_id=key_id)
            record(conn, account_id=account_id, key_id=key_id, **detail)
        ledger_location.end(conn, ledger_location.folder(settings.get()), key_id)
    typer.echo(f"{prefix}… {done}")


def _find(conn: psycopg.Connection[Any], text: str) -> tuple[int, str]:
    """Return the id and prefix of the one valid key that the text identifies."""
    from api.metering.keys import digest
    from sql.queries import keys as queries

    bare = text.strip().rstrip("…")
    found = list(queries.named(conn, prefix=bare, key_hash=digest(bare), email=bare.casefold()))
    valid = [(key_id, prefix) for key_id, prefix, revoked in found if not revoked]
    if len(valid) > 1:
        raise ValueError(f"{bare} has several keys; use one of: {', '.join(f'{prefix}…' for _, prefix in valid)}")
    if not valid:
        raise ValueError("the key has been revoked" if found else "there is no such key; see `presage key list`")
    return valid[0]
