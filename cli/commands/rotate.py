"""`presage rotate`: replace the service's own secrets."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(name="rotate", help="Replace the service's own secrets.", no_args_is_help=True)

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


@app.callback()
def rotate() -> None:
    """Replace the service's own secrets."""


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
