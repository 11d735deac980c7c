"""The newest contents of a cluster's databases: noted with each base backup, and compared when one is restored."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec
from psycopg import sql

from sql import database
from sql.roles.rights import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

# Tables of events, with the column of their time: too large to be counted as a whole.
EVENTS = {
    "trades": "ts",
    "quotes": "ts",
    "book_events": "ts",
    "settlements": "ts",
    "signals": "ts",
    "candles_1m": "bucket",
}
WHOLE = ("markets", "accounts", "webhooks", "coverage_days")
SPAN = timedelta(hours=1)
NOTE = "presage"  # the annotation's name


class Contents(msgspec.Struct, frozen=True):
    """Rows of a table: those of the last hour before a moment, or all, and the newest of them."""

    rows: int
    newest: datetime | None = None


class Noted(msgspec.Struct, frozen=True):
    """The contents of every database of ours, as of a moment."""

    at: datetime
    databases: dict[str, dict[str, Contents]]

    def encoded(self) -> str:
        """Return the text that is stored with a base backup."""
        return msgspec.json.encode(self).decode()


def databases(url_of: Callable[[str], str]) -> list[str]:
    """Return the databases of a cluster that have our tables, but for the pipeline's own: Dagster's.

    A superuser reads no view that a role with fewer rights could have put there.
    """
    with database.connect(url_of("postgres"), autocommit=True, name="presage backup") as conn:
        found = conn.execute(
            "select datname from pg_database where datallowconn and pg_get_userbyid(datdba) <> %s order by 1",
            [PIPELINE],
        )
        names = [name for (name,) in found]
    ours = []
    for name in names:
        with database.connect(url_of(name), autocommit=True, name="presage backup", search_path="pg_catalog") as conn:
            if _has(conn, "stream_head"):
                ours.append(name)
    return ours


def read(url_of: Callable[[str], str], at: datetime) -> Noted:
    """Read the contents up to a moment."""
    return Noted(at, {name: _contents(url_of(name), at) for name in databases(url_of)})


def decode(text: str | None) -> Noted | None:
    """Return what was noted with a base backup, if it was."""
    try:
        return None if text is None else msgspec.json.decode(text, type=Noted)
    except msgspec.DecodeError:
        return None


def missing(noted: Noted, found: Noted) -> list[str]:
    """Return what was noted and is not found. More may be found: rows that were written after the note."""
    lacks = []
    for name, tables in noted.databases.items():
        for table, was in tables.items():
            now = found.databases.get(name, {}).get(table)
            if now is None:
                lacks.append(f"{name}.{table} is not there")
            elif now.rows < was.rows:
                lacks.append(f"{name}.{table} has {now.rows:,} of {was.rows:,} rows")
            elif was.newest is not None and (now.newest is None or now.newest < was.newest):
                lacks.append(f"{name}.{table} ends at {now.newest}, and not at {was.newest}")
    return lacks


def _contents(url: str, at: datetime) -> dict[str, Contents]:
    found = {}
    with database.connect(url, autocommit=True, name="presage backup") as conn:
        for table, time in EVENTS.items():
            if _has(conn, table):
                query = sql.SQL("select count(*), max({time}) from {table} where {time} > %s and {time} <= %s").format(
                    time=sql.Identifier(time), table=sql.Identifier(table)
                )
                found[table] = Contents(*(conn.execute(query, [at - SPAN, at]).fetchone() or (0, None)))
        for table in WHOLE:
            if _has(conn, table):
                query = sql.SQL("select count(*) from {}").format(sql.Identifier(table))
                found[table] = Contents(*(conn.execute(query).fetchone() or (0,)))
    return found


def _has(conn: psycopg.Connection[Any], table: str) -> bool:
    row = conn.execute("select to_regclass(%s) is not null", [f"public.{table}"]).fetchone()
    return row == (True,)
