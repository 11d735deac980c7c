"""Aggregates of trades: candles, the last 24 hours of each outcome, and the ranking that lists paginate over."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql import database
from sql.queries import aggregates as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

# A bucket is materialised when its trades have surely been committed; until then it is computed when read.
SETTLE_TIME = timedelta(minutes=2)
# Each pass covers what changed since this long before the last one ended. Trades written a minute late or more are also
# recorded in `candles_due`, however old they are.
LATE_WINDOW = timedelta(hours=2)
GENERATIONS_KEPT = HOUR
START_TIMEOUT_S = 30.0  # TimescaleDB looks at its jobs every five seconds, and needs a free worker for one
RETRY_S = 1.0
MAX_POLL_S = 0.1
LOOK_AT = (
    "look at timescaledb_information.job_errors and the server's log, and whether timescaledb.max_background_workers"
    " and max_worker_processes leave a worker free"
)


class RefreshError(Exception):
    """Candles that were not refreshed, and what to look at."""


@dataclass(frozen=True)
class StatsWindow:
    """The 24 hours up to the end of the running minute, and the whole hours within."""

    start: datetime
    first_hour: datetime
    last_hour: datetime
    end: datetime

    @classmethod
    def at(cls, now: datetime) -> StatsWindow:
        """Return the window of an instant."""
        end = floor(now, MINUTE) + MINUTE
        start = end - DAY
        return cls(start, floor(start + HOUR - MINUTE, HOUR), floor(end, HOUR), end)


@dataclass(frozen=True)
class StatsPass:
    """Result of computing the 24-hour statistics."""

    outcomes: int
    written: int
    gone: int


@dataclass(frozen=True)
class LateHours:
    """Hours with late trades: how many were refreshed, and how many are left for the next pass."""

    refreshed: int = 0
    left: int = 0


def floor(instant: datetime, step: timedelta) -> datetime:
    """Return the start of the bucket that contains an instant."""
    return instant - (instant - datetime(2000, 1, 1, tzinfo=UTC)) % step


def refresh_candles(
    conn: psycopg.Connection[Any], now: datetime, *, kept: timedelta = timedelta(days=3650)
) -> list[tuple[str, datetime, datetime]]:
    """Refresh the continuous aggregates, and return the refreshed windows.

    Takes an autocommit connection, as another process refreshes. Trigger-kept candles need nothing. A window never
    begins before the trades that are `kept`: refreshing hours that retention has emptied would delete their candles.
    RefreshError: a window could not be refreshed.
    """
    if database.license(conn) == "apache":
        return []
    last = queries.last_pass(conn)
    # Buckets before the first window are no longer computed when read.
    since = min(last, now) - LATE_WINDOW if last is not None else queries.oldest_trade(conn) or now
    refreshed = []
    for name, bucket in (("candles_1m", MINUTE), ("candles_1h", HOUR)):
        end = floor(now - SETTLE_TIME, bucket)
        start = max(floor(min(since, end - bucket), bucket), floor(now - kept, bucket) + bucket)
        for first, until in _days(start, end):
            _refresh(conn, name, first, until)
        refreshed.append((name, start, end))
    return refreshed


def refresh_due(
    conn: psycopg.Connection[Any], now: datetime, *, kept: timedelta, should_stop: Callable[[], bool] = lambda: False
) -> LateHours:
    """Refresh the hours with late trades, newest first; to be called after `refresh_candles`.

    The refresh is forced: TimescaleDB may not know of a trade that was committed while a refresh first passed over its
    bucket. A note is deleted after its hour was refreshed, so nothing is lost when this is interrupted.
    """
    if database.license(conn) == "apache":
        return LateHours()
    done, due = 0, list(queries.due(conn, settled=floor(now - SETTLE_TIME, MINUTE)))
    emptied, last_hour = floor(now - kept, HOUR) + HOUR, floor(now - SETTLE_TIME, HOUR)
    for hour, since, until, due_ids in due:
        if should_stop():
            break
        if hour >= emptied:
            first, end = floor(since, MINUTE), floor(until, MINUTE) + MINUTE
            _refresh(conn, "candles_1m", first, end, forced=True)
            if hour < last_hour:  # the running hour is not materialised yet
                # A forced refresh also materialises the bucket behind the window: never force the running hour.
                _refresh(conn, "candles_1h", hour, hour + HOUR, forced=hour + HOUR < last_hour)
        queries.forget_due(conn, due_ids=due_ids)
        done += 1
    return LateHours(done, len(due) - done)


def _days(start: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Split a window at midnights: each piece commits by itself, and a killed pass continues where it stopped."""
    while start < end:
        until = min(floor(start, DAY) + DAY, end)
        yield start, until
        start = until


def _refresh(
    conn: psycopg.Connection[Any], candles: str, since: datetime, until: datetime, *, forced: bool = False
) -> None:
    """Have a window refreshed by the job that has the owner's rights, and wait for it.

    The job is asked for each second, as its process may be killed while it refreshes.
    """
    refresh_id = queries.request_refresh(conn, candles=candles, since=since, until=until, forced=forced)
    began = start_at = time.monotonic()
    pause = 0.005  # grows: a job that runs is done in a moment, one that does not is started within seconds
    try:
        while True:
            started, ended, error = queries.refresh_state(conn, refresh_id=refresh_id)
            if error is not None:
                raise RefreshError(f"{candles} {since} … {until}: {error}; see timescaledb_information.job_errors")
            if ended:
                return
            now = time.monotonic()
            if not started and now - began > START_TIMEOUT_S:
                raise RefreshError(f"TimescaleDB has not run its job refresh_candles: {LOOK_AT}")
            if now >= start_at:
                queries.start_refresh(conn)
                start_at = now + RETRY_S
            time.sleep(pause)
            pause = min(pause * 1.5, MAX_POLL_S)
    finally:
        queries.forget_refresh(conn, refresh_id=refresh_id)


def compute_stats(conn: psycopg.Connection[Any], now: datetime) -> StatsPass:
    """Write each outcome's last 24 hours."""
    window = StatsWindow.at(now)
    return StatsPass(
        *queries.upsert_stats(
            conn,
            window_start=window.start,
            first_hour=window.first_hour,
            last_hour=window.last_hour,
            window_end=window.end,
        )
    )


def rank(conn: psycopg.Connection[Any], now: datetime) -> tuple[int, int]:
    """Write a new generation of the ranking, drop those that no cursor may use; return its number and length."""
    generation = int(now.timestamp() * 1000)
    ranked = queries.rank(conn, generation=generation)
    queries.index_ranking(conn, generation=generation)
    queries.forget_rankings(conn, before=generation - int(GENERATIONS_KEPT.total_seconds() * 1000))
    return generation, ranked
