"""`presage rotate`: replace the service's own secrets."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

app = typer.Typer(name="rotate", help="Replace the service's own secrets.", no_args_is_help=True)

ENV_FILE = Path(__file__).parents[2] / ".env"  # where the programs of `presage up` run
FORMER_VALID_S = 86_400  # as the passes of the site's pages are valid

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


@app.callback()
def rotate() -> None:
    """Replace the service's own secrets."""


@app.command()
def cursor_secret(
    *,
    revoke: Annotated[
        bool,
        typer.Option("--revoke", help="Refuse cursors that were signed before, as after a leak: clients start again."),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Make a new secret that signs cursors. Cursors that clients have stay valid for a day.

    The API needs no restart; the site signs the passes of its pages with the new secret once it is restarted.
    """
    from cli.stack.plan_builder import database
    from sql.database import connect
    from sql.queries import cursors

    with database(database_url) as url, connect(url) as conn:
        cursors.keep_identity(conn)
        cursors.retire(conn, valid_s=0 if revoke else FORMER_VALID_S)
        if cursors.renew(conn) != 1:  # the row is hidden from everybody but the owner
            raise ValueError("nothing has changed: only the owner of the tables sees the secret of cursors")
    typer.echo(
        "new cursors are signed with a new secret within a minute; "
        + ("earlier ones are refused by then" if revoke else "earlier ones stay valid for a day")
    )
    typer.echo("presage restart site: its pages are signed with it, too")


@app.command()
def debug_token(*, database_url: DatabaseUrl = None) -> None:
    """Put a new debug token into `.env`, and replace the API's processes if `presage up` runs: the old one ends.

    The token is in `.env` as PRESAGE_DEBUG_TOKEN, and is not printed.
    """
    from cli.stack import control
    from cli.stack.plan_builder import database
    from config import settings, stored_secrets

    if os.environ.get("PRESAGE_DEBUG_TOKEN"):
        raise typer.BadParameter("PRESAGE_DEBUG_TOKEN is in the environment: change it there, and restart the API")
    with database(database_url):
        with _told_in_a_line():
            stored_secrets.assign(ENV_FILE, {"PRESAGE_DEBUG_TOKEN": secrets.token_hex(32)})
        typer.echo(f"the new token is in {ENV_FILE}")
        try:
            done, said = control.restart(settings.get().data_folder, "api")
        except control.NotRunningError:
            typer.echo("no `presage up` runs here: restart the API elsewhere, which still accepts the old token")
            return
        typer.echo(said, err=not done)
        if not done:
            raise typer.Exit(1)


@app.command()
def database_password(*, database_url: DatabaseUrl = None) -> None:
    """Give the database's role a new password, and put it where programs read it.

    That is the password file that DATABASE_URL names by `passfile`: each new connection reads it, and nothing has to be
    restarted. Or it is DATABASE_URL in `.env`: open connections stay, but programs have to be restarted. The embedded
    server's own is for TCP only. The server gets a SCRAM verifier, and the password is not printed.
    """
    from cli.recording import record
    from cli.stack.plan_builder import database
    from config import secret_files, settings
    from sql.database import connect, set_password

    known = settings.get().database_url
    named = database_url or (known.get_secret_value() if known else None)
    with database(database_url) as url, connect(url, name="presage rotate") as conn:
        role, password = conn.info.user, secrets.token_hex(24)
        file, store, then = _password_store(named, role)
        with _told_in_a_line(), secret_files.kept(file), conn.transaction():
            set_password(conn, role, password)
            record(conn, subject=role)
            store(password)  # last: if it fails, nothing has changed
    typer.echo(f"{role} has a new password. {then}")


@contextmanager
def _told_in_a_line() -> Iterator[None]:
    """Raise errors of files as those that end a command without a traceback."""
    try:
        yield
    except OSError as error:
        raise ValueError(str(error)) from error


def _password_store(url: str | None, role: str) -> tuple[Path, Callable[[str], None], str]:
    """Return the file from which programs read a password, what writes it there, and what has to be done after that."""
    from dotenv import dotenv_values
    from psycopg.conninfo import conninfo_to_dict

    from config import secret_files, settings, stored_secrets
    from sql.database import with_password
    from sql.embedded import place

    if url is None:
        file = place.find(settings.get().data_folder / "database").password
        return (
            file,
            lambda password: secret_files.write(file, password),
            f"It is in {file}, for connections by TCP. Our programs use the socket: nothing has to be restarted.",
        )
    if passfile := conninfo_to_dict(url).get("passfile"):
        file = Path(str(passfile))
        return (
            file,
            lambda password: stored_secrets.set_password(file, role, password),
            f"It is in {passfile}, which every new connection reads: nothing has to be restarted.",
        )
    held = dotenv_values(ENV_FILE)
    same = [
        (name, text)
        for name in ("DATABASE_URL", "DATABASE_READ_URL")
        if (text := held.get(name)) and conninfo_to_dict(text).get("user", role) == role
    ]
    if os.environ.get("DATABASE_URL") or ("DATABASE_URL", url) not in same:
        raise ValueError(
            "the password is neither in .env nor in a password file: add ?passfile=/absolute/path to DATABASE_URL "
            "instead of the password (docs/operations.md)"
        )
    return (
        ENV_FILE,
        lambda password: stored_secrets.assign(ENV_FILE, {name: with_password(text, password) for name, text in same}),
        f"It is in {ENV_FILE}. Open connections stay, new ones with the old password fail: restart `presage up` now.",
    )


@app.command()
def webhook_secrets(
    *,
    new_key: Annotated[
        bool, typer.Option("--new-key", help="First put a new key into the file that `presage up` created.")
    ] = False,
    clear: Annotated[
        bool,
        typer.Option("--clear", help="Store clear text again, before a downgrade to a release without encryption."),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Encrypt all stored webhook secrets with the newest key. They stay the same for the receivers.

    The keys are PRESAGE_WEBHOOK_ENCRYPTION_KEYS, newest first. An interrupted run can be repeated.
    """
    from cli.stack.plan_builder import database
    from config import settings, webhook_keys
    from sql import webhook_secrets as stored
    from sql.database import connect

    given = settings.get()
    if new_key:
        if given.webhook_encryption_keys is not None:
            raise typer.BadParameter("the keys are in PRESAGE_WEBHOOK_ENCRYPTION_KEYS: put a new one before them there")
        webhook_keys.add(given)
    box = stored.SecretBox(lambda: webhook_keys.read(given))
    if not box and not clear:
        raise typer.BadParameter("there is no key: set PRESAGE_WEBHOOK_ENCRYPTION_KEYS")
    with database(database_url) as url, connect(url, autocommit=True) as conn:
        try:
            changed = stored.store_all(conn, box, clear=clear)
        except stored.UnreadableSecretError as fault:
            raise ValueError(str(fault)) from fault
    typer.echo(f"{changed:,} secrets {'decrypted' if clear else 'encrypted with the newest key'}")
