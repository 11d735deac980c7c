"""`presage backup` and `presage restore`: the whole database into a file, and back."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads annotations)
from typing import Annotated, NoReturn

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)


def add(app: typer.Typer) -> None:
    """Give the commands to `presage`."""
    app.command()(backup)
    app.command()(restore)


def backup(
    file: Annotated[Path, typer.Argument(help="Where to; it must not exist yet.", dir_okay=False)],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the whole database into a file, while everything runs.

    In it is what was committed when it began. Dagster's own history lies in a database of its own and is not.
    """
    from cli.stack.options import database
    from config import settings
    from sql import backup as backups

    with database(database_url) as url:
        try:
            backups.save(url, file, cache_dir=settings.get().cache_dir, tell=typer.echo)
        except backups.BackupError as error:
            _give_up(error)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `presage backup` has made.", dir_okay=False)],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Also in the place of a database that is not empty, which is kept aside.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Restore a backup. Whatever uses the database has to be stopped.

    It is in place when all of it has come, and not before. Start `presage up` then: the time since the backup is made
    up for as far as it can be, and what cannot stands in /v1/coverage.
    """
    from cli.stack.options import database
    from config import settings
    from sql import backup as backups

    with database(database_url) as url:
        try:
            backups.restore(url, file, replace=replace, cache_dir=settings.get().cache_dir, tell=typer.echo)
        except backups.BackupError as error:
            _give_up(error)
    typer.echo("restored; roles of analysts are the server's own: `presage analyst add` makes them anew")


def _give_up(error: Exception) -> NoReturn:
    typer.echo(f"presage: {error}", err=True)
    raise typer.Exit(1) from error
