"""`presage lake`: write days that are over into the lake, verify it, and clean it up."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

    from orchestration.lake.catalogue import Lake
    from orchestration.lake.tables import LakeTable

app = typer.Typer(
    name="lake",
    no_args_is_help=True,
    help="Days that are over as Iceberg tables in PRESAGE_LAKE. Dagster writes them each night.",
)
Tables = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TABLE]...", help="markets, trades, candles_1m, settlements, book_events."),
]


@app.command()
def write(
    tables: Tables = None,
    *,
    day: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Only this day (UTC), whether it is due or not.")
    ] = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Write the days that the lake does not have, or whose rows have changed since. Safe to interrupt and to repeat."""
    from orchestration.lake import writing

    now = datetime.now(UTC)
    if day is not None and not day.date() < now.date():
        raise typer.BadParameter(f"{day:%Y-%m-%d} is not over", param_hint="--day")
    with _opened(tables, database_url) as (conn, lake, chosen):
        for table in chosen:
            if day is None:
                if not writing.write_due(conn, lake, table, now, typer.echo):
                    typer.echo(f"{table.name}: nothing is due")
            else:
                done = writing.write(conn, lake, table, day.date())
                changed = "" if done.changed else ", as it was"
                typer.echo(f"{table.name} {day:%Y-%m-%d}: {done.rows:,} rows, {done.bytes / 1e6:,.1f} MB{changed}")


@app.command()
def verify(tables: Tables = None, *, database_url: DatabaseUrl = None) -> None:
    """Read every file: its digest, its rows, each day's count; and compare days that the database still has.

    Exit status 1 if something is wrong; each fault is a line.
    """
    from orchestration.lake import verifying

    faults = 0
    with _opened(tables, database_url) as (conn, lake, chosen):
        for table in chosen:
            found = verifying.verify(conn, lake, table)
            typer.echo(
                f"{table.name}: {found.rows:,} rows in {found.files:,} files, {found.bytes / 1e6:,.1f} MB, "
                f"{found.days:,} days, {found.compared:,} compared with the database; {len(found.faults)} faults"
            )
            for fault in found.faults:
                typer.echo(f"  {fault}")
            faults += len(found.faults)
    if faults:
        raise typer.Exit(1)


@app.command()
def sweep(tables: Tables = None, *, database_url: DatabaseUrl = None) -> None:
    """Expire snapshots of a week ago, and delete files that no snapshot has any more."""
    from orchestration.lake import verifying

    with _opened(tables, database_url) as (conn, lake, chosen):
        for table in chosen:
            typer.echo(f"{table.name}: {verifying.sweep(conn, lake, table, datetime.now(UTC)):,} files deleted")


@app.command("list")
def list_days(tables: Tables = None, *, database_url: DatabaseUrl = None) -> None:
    """Print which days the lake has, and where each table is described: the file that engines read."""
    from sql.queries import lake as queries

    with _opened(tables, database_url) as (conn, lake, chosen):
        for table in chosen:
            stored = lake.table(table)
            typer.echo(f"{table.name}: {table.description}")
            typer.echo(f"  {'nothing is written yet' if stored is None else stored.metadata_location}")
            for day, rows, _, size, _, written_at in queries.days(conn, name=table.name):
                typer.echo(f"  {day}  {rows:>12,} rows  {size / 1e6:>10,.1f} MB  written {written_at:%Y-%m-%d %H:%M}")


@contextmanager
def _opened(
    names: Sequence[str] | None, database_url: str | None
) -> Iterator[tuple[psycopg.Connection, Lake, list[LakeTable]]]:
    from cli.stack.plan_builder import database
    from config import settings
    from orchestration.lake.catalogue import Lake
    from orchestration.lake.tables import BY_NAME
    from orchestration.lake.writing import ExpiredError
    from sql.database import connect

    if unknown := [name for name in names or () if name not in BY_NAME]:
        raise typer.BadParameter(f"no such table: {', '.join(unknown)}; available: {', '.join(BY_NAME)}")
    given = settings.get()
    if not given.lake:
        raise typer.BadParameter("PRESAGE_LAKE is not set: an absolute folder, or s3://bucket/path")
    with (
        database(database_url) as url,
        connect(url, autocommit=True, name="presage lake") as conn,
        Lake(url, given) as lake,
    ):
        try:
            yield conn, lake, [BY_NAME[name] for name in names or BY_NAME]
        except ExpiredError as error:
            _fail(str(error))
        except OSError as error:  # of the folder or the object store
            _fail(f"PRESAGE_LAKE cannot be read or written: {error}")


def _fail(reason: str) -> NoReturn:
    typer.echo(f"presage: {reason}", err=True)
    raise typer.Exit(1)
