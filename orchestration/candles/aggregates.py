"""What is computed from the trades: candles, the last 24 hours of each outcome, and the ranking that lists walk."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql import database
from sql.queries import aggregates as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# A bucket is materialised when its trades have surely been committed; until then it is computed as it is read.
SETTLED = timedelta(minutes=2)
# Each pass looks at what changed since this long before the last one ended. What is written a minute late or more is
# also noted in `candles_due`, however old it is.
LATE = timedelta(hours=2)
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


@dataclass(frozen=True)
class Due:
    """Hours of late trades: how many were refreshed, and how many are left for the next pass."""

    refreshed: int = 0
    left: int = 0


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
    # What lies before the first window is no longer computed when read.
    since = min(last, now) - LATE if last is not None else queries.oldest_trade(conn) or now
    refreshed = []
    for name, bucket in (("candles_1m", MINUTE), ("candles_1h", HOUR)):
        end = floor(now - SETTLED, bucket)
        start = max(floor(min(since, end - bucket), bucket), floor(now - kept, bucket) + bucket)
        for first, until in _days(start, end):
            refresh(conn, candles=name, start=first, until=until, force=False)
        refreshed.append((name, start, end))
    return refreshed


def refresh_due(
    conn: psycopg.Connection[Any], now: datetime, *, kept: timedelta, should_stop: Callable[[], bool] = lambda: False
) -> Due:
    """Refresh the hours in which trades were written late, the newest first; to be called after `refresh_candles`.

    By force: TimescaleDB may not know of a trade that was committed while a refresh first passed over its bucket. A
    note is taken out after its hour was refreshed, so nothing is lost when this is interrupted.
    """
    if database.license(conn) == "apache":
        return Due()
    refresh, done, due = _refresh(conn), 0, list(queries.due(conn, settled=floor(now - SETTLED, MINUTE)))
    emptied, last_hour = floor(now - kept, HOUR) + HOUR, floor(now - SETTLED, HOUR)
    for hour, since, until, due_ids in due:
        if should_stop():
            break
        if hour >= emptied:
            first, end = floor(since, MINUTE), floor(until, MINUTE) + MINUTE
            refresh(conn, candles="candles_1m", start=first, until=end, force=True)
            if hour < last_hour:  # the running hour is not materialised yet
                # By force TimescaleDB also materialises the bucket behind the window: never the running hour.
                refresh(conn, candles="candles_1h", start=hour, until=hour + HOUR, force=hour + HOUR < last_hour)
        queries.forget_due(conn, due_ids=due_ids)
        done += 1
    return Due(done, len(due) - done)


def _days(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Cut a window at midnights: each piece commits by itself, and a pass that is killed goes on where it was."""
    while start < end:
        until = min(floor(start, DAY) + DAY, end)
        yield start, until
        start = until


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
