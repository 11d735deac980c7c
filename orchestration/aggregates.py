"""What is computed from the trades: candles, the last 24 hours of each outcome, and the ranking that lists walk."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql import database
from sql.queries import aggregates as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# A bucket is materialised when its trades have surely been committed; until then it is computed as it is read.
SETTLED = timedelta(minutes=2)
# How far back late trades (a reconnect, a correction) are looked for: at each pass, and at the first of each hour.
# What is filled in from still longer ago is materialised by whoever fills it in.
LATE = timedelta(hours=2)
VERY_LATE = timedelta(days=8)
GENERATIONS_KEPT = HOUR


@dataclass(frozen=True)
class Window:
    """The 24 hours up to the end of the running minute, and the whole hours within."""

    start: datetime
    first_hour: datetime
    last_hour: datetime
    end: datetime

    @classmethod
    def at(cls, now: datetime) -> Window:
        end = floor(now, MINUTE) + MINUTE
        start = end - DAY
        return cls(start, floor(start + HOUR - MINUTE, HOUR), floor(end, HOUR), end)


@dataclass(frozen=True)
class Stats:
    """What a pass over the 24 hours came to."""

    outcomes: int
    written: int
    gone: int


def floor(instant: datetime, step: timedelta) -> datetime:
    """Give the start of the bucket that an instant lies in."""
    return instant - (instant - datetime(2000, 1, 1, tzinfo=UTC)) % step


def refresh_candles(
    conn: psycopg.Connection[Any], now: datetime, *, kept: timedelta = timedelta(days=3650)
) -> list[tuple[str, datetime, datetime]]:
    """Bring the continuous aggregates up to date, and say which windows were refreshed.

    Takes an autocommit connection, as a refresh commits on its own. Trigger-kept candles need nothing. A window never
    begins before the trades that are `kept`: to refresh what retention has emptied would take its candles away.
    """
    if database.license(conn) == "apache":
        return []
    refresh = _refresh(conn)
    last = queries.last_pass(conn)
    if last is None:  # what lies before the first window would not be seen any more
        since = queries.oldest_trade(conn) or now
    else:
        since = now - (LATE if floor(last, HOUR) == floor(now, HOUR) else VERY_LATE)
    refreshed = []
    for name, bucket in (("candles_1m", MINUTE), ("candles_1h", HOUR)):
        end = floor(now - SETTLED, bucket)
        start = max(floor(min(since, end - bucket), bucket), floor(now - kept, bucket) + bucket)
        refresh(conn, candles=name, start=start, until=end)
        refreshed.append((name, start, end))
    return refreshed


def refresh_span(
    conn: psycopg.Connection[Any], since: datetime, until: datetime, now: datetime, *, kept: timedelta
) -> list[tuple[str, datetime, datetime]]:
    """Bring the continuous aggregates of a past stretch of time up to date, after something was filled in there."""
    if database.license(conn) == "apache":
        return []
    refresh = _refresh(conn)
    refreshed = []
    for name, bucket in (("candles_1m", MINUTE), ("candles_1h", HOUR)):
        start = max(floor(since, bucket), floor(now - kept, bucket) + bucket)
        end = min(floor(until, bucket) + bucket, floor(now - SETTLED, bucket))
        if start < end:
            refresh(conn, candles=name, start=start, until=end)
            refreshed.append((name, start, end))
    return refreshed


def _refresh(conn: psycopg.Connection[Any]) -> Callable[..., Any]:
    refresh: Callable[..., Any] = queries.refresh_whole if queries.refresh_takes_options(conn) else queries.refresh
    return refresh


def compute_stats(conn: psycopg.Connection[Any], now: datetime) -> Stats:
    """Write each outcome's last 24 hours."""
    window = Window.at(now)
    return Stats(
        *queries.upsert_stats(
            conn,
            window_start=window.start,
            first_hour=window.first_hour,
            last_hour=window.last_hour,
            window_end=window.end,
        )
    )


def rank(conn: psycopg.Connection[Any], now: datetime) -> tuple[int, int]:
    """Write a new generation of the ranking, forget those that no cursor may walk; give its number and length."""
    generation = int(now.timestamp() * 1000)
    ranked = queries.rank(conn, generation=generation)
    queries.forget_rankings(conn, before=generation - int(GENERATIONS_KEPT.total_seconds() * 1000))
    return generation, ranked
