"""`presage export`: write a day's data to files immediately, instead of in the nightly run."""

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
        typer.Argument(
            metavar="[TOPIC]...",
            help="markets, trades, candles, settlements, book_events, and of another exchange with its name: "
            "trades_kalshi; none: all of the exchanges that are read.",
        ),
    ] = None,
    *,
    day: Annotated[
        datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The day (UTC). Default: yesterday.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Rewrite existing files.")] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Write a day to Parquet and CSV files, and register them in the database for GET /v1/exports.

    Complete files are kept, so an interrupted export resumes where it stopped. An unfinished day is exported as far
    as it has data.
    """
    from cli.stack.plan_builder import database
    from config import settings
    from orchestration.exports import days
    from orchestration.exports.store import ExportStore
    from orchestration.exports.topics import BY_NAME
    from sql.database import connect

    if unknown := [name for name in topics or () if name not in BY_NAME]:
        raise typer.BadParameter(f"no such topic: {', '.join(unknown)}; available: {', '.join(BY_NAME)}")
    now = _now()
    which = (now - timedelta(days=1) if day is None else day).date()
    if which > now.date():
        raise typer.BadParameter(f"{which} has not begun")
    store = ExportStore.of(settings.get())
    with database(database_url) as url, connect(url, autocommit=True, name="presage export") as conn:
        read = settings.get().exchange_names
        for name in topics or [topic.name for topic in BY_NAME.values() if topic.exchange.name in read]:
            done = days.export(conn, BY_NAME[name], which, store, now, again=again, progress=typer.echo)
            kept = f", {done.kept} already existed" if done.kept else ""
            typer.echo(
                f"{name} {which}: {done.rows:,} rows, {done.bytes / 1e6:,.1f} MB in {done.written} part(s){kept}"
            )
    typer.echo(f"in {store}")


def _now() -> datetime:
    return datetime.now(UTC)
