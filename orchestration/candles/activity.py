"""Market activity: each market's recent figures and each name's market count, read by rankings and taxonomy."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any

from config import tunables
from orchestration.candles.aggregates import HOUR, floor
from sql.database import MICRO
from sql.queries import activity as queries

if TYPE_CHECKING:
    import psycopg

COUNT_EVERY = timedelta(minutes=5)
# The week's older hours are many, and change only when trades come late: they are summed again at this interval, and
# when an hour has passed.
WEEK_EVERY = timedelta(minutes=5)
LATELY = timedelta(hours=2)


@dataclass(frozen=True)
class ActivityResult:
    """Result of a pass."""

    markets: int
    written: int
    gone: int
    names: int | None  # None if they were not due


def bring_up_to_date(conn: psycopg.Connection[Any], now: datetime) -> ActivityResult:
    """Compute every market's activity; every few minutes, also count the markets of categories, tags and series."""
    until = floor(now, HOUR) - LATELY
    held = queries.week_head(conn)
    if held is None or held[0] != until or not timedelta(0) <= now - held[1] < WEEK_EVERY:
        with conn.transaction():
            queries.forget_week(conn)
            queries.write_week(conn, until=until, now=now)
    floors = tunables.values(conn)
    markets, written, gone = queries.upsert(
        conn,
        now=now,
        until=until,
        min_trades=floors["signal_min_trades"],
        min_value=ceil(floors["signal_min_volume_usd"] * MICRO),
    )
    lately = queries.counted_since(conn, since=now - COUNT_EVERY)
    return ActivityResult(markets, written, gone, None if lately else queries.count_taxonomy(conn, now=now))
