"""`presage backup` and `presage restore`: the database to a file and back; base backups, and recovery to a moment."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path  # noqa: TC003 (typer reads annotations)
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)

if TYPE_CHECKING:
    from config.settings import Settings
    from sql.backup.base import Options
    from sql.backup.base.catalogue import Stanza
    from sql.backup.base.recovery import Moment, Recovered

LATEST: Final = "latest"


class FileOrCommand(TyperGroup):
    """`presage backup FILE` beside `presage backup base`: what is no command is the argument of `file`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ctx.help_option_names:
            args = ["file", *args]
        return super().parse_args(ctx, args)


backup_app = typer.Typer(
    name="backup",
    cls=FileOrCommand,
    no_args_is_help=True,
    help="Back up the database: `presage backup FILE` writes it to a file; `base` makes a base backup, from which "
    "`presage restore --at` recovers any later moment.",
)


def add(app: typer.Typer) -> None:
    """Register the commands."""
    app.add_typer(backup_app)
    app.command()(restore)


@backup_app.command("file")
def backup(
    file: Annotated[Path, typer.Argument(help="Output file; it must not exist yet.", dir_okay=False)],
    *,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the whole database to a file, while everything runs. `presage backup FILE` is the same.

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


@backup_app.command("base")
def base(
    *,
    full: Annotated[
        bool, typer.Option("--full/--incremental", help="Everything, or what changed since the base backup before.")
    ] = True,
) -> None:
    """Take a base backup of the embedded database, while it runs. Dagster does this by itself, when one is due."""
    from cli.stack.plan_builder import database
    from sql.backup import BackupError
    from sql.backup.base import taking

    given, _ = _configured()
    with database(None) as url:
        try:
            taken = taking.take(url, given.data_folder, "full" if full else "incr", typer.echo)
        except BackupError as error:
            _fail(error)
    typer.echo(
        f"{taken.label}: {taken.bytes / 1e6:,.1f} MB of data, {taken.stored_bytes / 1e6:,.1f} MB in the repository"
    )


@backup_app.command("list")
def list_backups() -> None:
    """List the base backups of the repository, and the moments that can be restored."""
    from sql.backup import BackupError
    from sql.backup.base import recovery

    given, options = _configured()
    data_dir = given.data_folder
    try:
        recovery.flush(data_dir, given.cache_dir, typer.echo)
        with recovery.listed(data_dir, options, given.cache_dir) as reader:
            own = reader.stanza
            stanzas = [(each, reader.archived_until(each)) for each in reader.stanzas()]
    except BackupError as error:
        _fail(error)
    if not stanzas:
        typer.echo("the repository is empty; `presage up` archives into it, and `presage backup base` adds to it")
    for stanza, newest in stanzas:
        _show(stanza, newest, own=stanza.name == own)


def restore(
    file: Annotated[Path | None, typer.Argument(help="A file written by `presage backup`.", dir_okay=False)] = None,
    *,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="WHEN",
            help='Instead of a file: recover the embedded database as it was at a moment, "2026-11-22 02:01:50Z" (UTC '
            "unless it says otherwise), or `latest`.",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            file_okay=False,
            help="With --at: the data folder to recover into, as in PRESAGE_DATA_DIR. Default: a new one beside it.",
        ),
    ] = None,
    stanza: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="With --at: the cluster in the repository; see `presage backup list`."),
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a database that is not empty; it is kept under another name.")
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Restore a backup file, or the embedded database as it was at a moment. Nothing may use what is replaced.

    A restored database is put in place only when it is complete. Then start `presage up`: the time since
    is back-filled as far as possible, and the rest is reported by /v1/coverage.
    """
    if (file is None) == (at is None):
        raise typer.BadParameter("name a file, or a moment by --at")
    if file is None:
        assert at is not None
        _recover(_moment(at), into, stanza, replace=replace)
        return
    if into is not None or stanza is not None:
        raise typer.BadParameter("--into and --stanza require --at")
    from cli.stack.plan_builder import database
    from config import settings
    from sql import backup as backups

    with database(database_url) as url:
        try:
            backups.restore(url, file, replace=replace, cache_dir=settings.get().cache_dir, tell=typer.echo)
        except backups.BackupError as error:
            _fail(error)
    typer.echo("restored; analyst roles belong to the server: recreate them with `presage analyst add`")


def _recover(moment: Moment, into: Path | None, stanza: str | None, *, replace: bool) -> None:
    from sql.backup import BackupError
    from sql.backup.base import recovery

    given, options = _configured()
    data_dir = given.data_folder
    if into is None:
        into = data_dir if replace else data_dir.with_name(f"{data_dir.name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    into = into.expanduser().resolve()
    typer.echo(f"restoring into {into}")
    try:
        done = recovery.recover(
            data_dir, into, options, moment, stanza=stanza, replace=replace, cache_dir=given.cache_dir, tell=typer.echo
        )
    except BackupError as error:
        _fail(error)
    for line in _said(done, moment, data_dir):
        typer.echo(line)


def _said(done: Recovered, moment: Moment, data_dir: Path) -> list[str]:
    wanted = f"{moment:%Y-%m-%d %H:%M:%S} UTC" if isinstance(moment, datetime) else "the end of the archive"
    lines = [f"restored to {wanted}: {', '.join(done.databases) or 'no database of ours'} in {done.data_dir}"]
    if done.reached is not None:
        lines.append(f"its last transaction was committed at {done.reached.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f} UTC")
    if not done.complete:
        lines.append("the archive holds nothing that was committed later: if anything was, it is lost")
    if done.kept is not None:
        lines.append(f"what was there before is in {done.kept}: delete it when you are sure")
    lines.append(
        f"its archiving is off; started with PRESAGE_BACKUP_REPOSITORY, it archives under a name of its own, not as "
        f"{done.stanza}, and begins with a full base backup"
    )
    start = "presage up" if done.data_dir == data_dir else f"PRESAGE_DATA_DIR={done.data_dir} presage up"
    lines.append(f"start it: {start}")
    return lines


def _show(stanza: Stanza, newest: datetime | None, *, own: bool) -> None:
    from sql.backup.base import recovery

    typer.echo(f"{stanza.name}{' (this database)' if own else ''}{f': {stanza.problem}' if stanza.problem else ''}")
    for each in stanza.backups:
        typer.echo(
            f"  {each.label:33} {each.kind:5} {each.ended:%Y-%m-%d %H:%M:%S} UTC  {each.bytes / 1e6:>12,.1f} MB"
            f"  {each.stored_bytes / 1e6:>12,.1f} MB in the repository{'  damaged pages' if each.damaged else ''}"
        )
    if stanza.backups:
        typer.echo(f"  can be restored: {recovery.span(stanza, newest)}")
    else:
        typer.echo("  no base backup yet: nothing can be restored")


def _configured() -> tuple[Settings, Options]:
    from config import settings
    from sql.backup.base import options

    given = settings.get()
    if given.database_url is not None:
        _fail(
            "base backups are of the embedded database, and DATABASE_URL names another server: "
            "set up pgBackRest beside that one (docs/operations.md)"
        )
    found = options.of(given)
    if found is None:
        _fail(f"{options.OFF}: name a folder or s3://bucket/path there")
    return given, found


def _moment(text: str) -> Moment:
    if text == LATEST:
        return LATEST
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise typer.BadParameter(f'--at: not a date and time like "2026-11-22 02:01:50Z", nor `{LATEST}`') from error
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def _fail(error: Exception | str) -> NoReturn:
    typer.echo(f"presage: {error}", err=True)
    raise typer.Exit(1) from (error if isinstance(error, Exception) else None)
