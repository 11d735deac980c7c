"""`presage audit`: show the audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)

if TYPE_CHECKING:
    import psycopg

FIELDS = ("ts", "action", "result", "times", "account_id", "key_id", "operator", "address", "subject", "detail")


def audit(
    *,
    since: Annotated[
        str, typer.Option(metavar="WHEN", help="2026-11-20T12:00Z, Unix milliseconds, or an age such as 90m or 30d.")
    ] = "7d",
    what: Annotated[
        str | None, typer.Option(metavar="ACTION", help="An action such as key.failed, or its first part, such as key.")
    ] = None,
    account: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help="An account's number, or an email address that it has or had.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="At most this many entries, the newest.")] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Show who changed or tried what: failed keys, registrations, changes of keys and webhooks, operators' commands.

    The newest entry comes last. Requests that were refused are counted by address and minute.
    """
    from datetime import UTC, datetime

    from cli.commands.replay import moment
    from cli.stack.plan_builder import database
    from sql.database import connect
    from sql.queries import audit as queries

    begin = moment(since, datetime.now(UTC))
    with database(database_url) as url, connect(url, name="presage audit") as conn:
        accounts = None if account is None else _accounts(conn, account)
        rows = list(queries.listed(conn, since=begin, action=what, accounts=accounts, limit=limit))[::-1]
    _print_json(rows) if as_json else _print_table(rows)


def _accounts(conn: psycopg.Connection[Any], account: str) -> list[int]:
    from api.metering.keys import normalised
    from sql.queries import audit as queries

    if account.isascii() and account.isdigit() and len(account) < 19:
        return [int(account)]
    found = [account_id for (account_id,) in queries.accounts(conn, email=normalised(account))]
    if not found:
        raise ValueError("no account has or had this email address")
    return found


def _print_json(rows: list[tuple[Any, ...]]) -> None:
    import msgspec

    for row in rows:
        typer.echo(msgspec.json.encode(dict(zip(FIELDS, row, strict=True))).decode())


def _print_table(rows: list[tuple[Any, ...]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("when (UTC)", "who", "address", "what", "on", "result", "times")
    for ts, action, result, times, account_id, key_id, operator, address, subject, detail in rows:
        on = [f"{name} {number}" for name, number in (("account", account_id), ("key", key_id)) if number is not None]
        on += [subject] if subject else []
        on += [f"{name}={value}" for name, value in detail.items()]
        who = operator or (f"account {account_id}" if account_id is not None and result == "ok" else "")
        cells = (f"{ts:%Y-%m-%d %H:%M:%S}", who, address or "", action, " ".join(on), result, f"{times:,}")
        table.add_row(*map(Text, cells))  # as it is: brackets are no markup
    Console().print(table)
