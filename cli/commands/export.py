"""`presage export`: days of data as files, without waiting for the night."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

DatabaseUrl = Annotated[
    str | None, typer.Option("--database-url", envvar="DATABASE_URL", help="The database; empty: the embedded one.")
]


def export(
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC]...", help="markets, trades, candles, settlements, book_events; none: all."),
    ] = None,
    *,
    day: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="Which day (UTC). Without it: yesterday.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Write anew what is there.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Write a day to Parquet and CSV files, and name them in the database, for GET /v1/exports.

    What is there whole is left alone: an interrupted export goes on where it was. Of a day that is not over, what there
    is so far.
    """
    from cli.stack.options import database
    from config import settings
    from orchestration.exports import days
    from orchestration.exports.topics import BY_NAME
    from sql.database import connect

    if unknown := [name for name in topics or () if name not in BY_NAME]:
        raise typer.BadParameter(f"no such topic: {', '.join(unknown)}; there are {', '.join(BY_NAME)}")
    now = datetime.now(UTC)
    which = (now - timedelta(days=1) if day is None else day).date()
    if which > now.date():
        raise typer.BadParameter(f"{which} has not begun")
    folder = settings.get().exports_folder
    with database(database_url) as url, connect(url, autocommit=True, name="presage export") as conn:
        for name in topics or BY_NAME:
            done = days.export(conn, BY_NAME[name], which, folder, now, again=again, progress=typer.echo)
            kept = f", {done.kept} were there" if done.kept else ""
            typer.echo(
                f"{name} {which}: {done.rows:,} rows, {done.bytes / 1e6:,.1f} MB in {done.written} part(s){kept}"
            )
    typer.echo(f"in {folder}")
