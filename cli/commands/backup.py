"""`presage backup` and `presage restore`: dump the whole database to a file, and restore it."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 (typer reads annotations)
from typing import Annotated, NoReturn

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)


def add(app: typer.Typer) -> None:
    """Register the commands."""
    app.command()(backup)
    app.command()(restore)


def backup(
    file: Annotated[Path, typer.Argument(help="Output file; it must not exist yet.", dir_okay=False)],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the whole database to a file, while everything runs.

    It contains what was committed when it started. Dagster's history is in a separate database and is not included.
    """
    from cli.stack.plan_builder import database
    from config import settings
    from sql import backup as backups

    with database(database_url) as url:
        try:
            backups.save(url, file, cache_dir=settings.get().cache_dir, tell=typer.echo)
        except backups.BackupError as error:
            _fail(error)


def restore(
    file: Annotated[Path, typer.Argument(help="A file written by `presage backup`.", dir_okay=False)],
    *,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a non-empty database, which is kept under another name.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Restore a backup. Everything that uses the database must be stopped.

    The restored database is put in place only when it is complete. Then start `presage up`: the time since the backup
    is back-filled as far as possible, and the rest is reported by /v1/coverage.
    """
    from cli.stack.plan_builder import database
    from config import settings
    from sql import backup as backups

    with database(database_url) as url:
        try:
            backups.restore(url, file, replace=replace, cache_dir=settings.get().cache_dir, tell=typer.echo)
        except backups.BackupError as error:
            _fail(error)
    typer.echo("restored; analyst roles belong to the server: recreate them with `presage analyst add`")


def _fail(error: Exception) -> NoReturn:
    typer.echo(f"presage: {error}", err=True)
    raise typer.Exit(1) from error
