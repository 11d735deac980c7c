"""Leaderboards by volume and by profit: the first hundred of each window, rewritten completely each time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql.queries import leaderboards as queries

if TYPE_CHECKING:
    import psycopg

BOARD_SIZE = 100
PNL_EVERY = timedelta(minutes=5)  # every position and all fills of the window are read for these
PNL_REST = 20  # pause after computing, as a multiple of its duration: a twentieth of one connection's time at most
HOUR = timedelta(hours=1)


def starts(now: datetime) -> dict[str, datetime]:
    """Return when each window begins: a day ago to the hour, and 7 and 30 days before the last midnight (UTC).

    >>> from datetime import UTC
    >>> {span: str(start)[:16] for span, start in starts(datetime(2026, 11, 21, 12, 34, tzinfo=UTC)).items()}
    {'1d': '2026-11-20 12:00', '7d': '2026-11-14 00:00', '30d': '2026-10-22 00:00'}
    """
    hour = now.replace(minute=0, second=0, microsecond=0)
    midnight = hour.replace(hour=0)
    return {
        "1d": hour - timedelta(days=1),
        "7d": midnight - timedelta(days=7),
        "30d": midnight - timedelta(days=30),
    }


def write(conn: psycopg.Connection[Any], now: datetime, *, asked: datetime | None = None) -> list[str]:
    """Write the boards by volume and, every few minutes or on request, those by profit; return which were written."""
    windows = starts(now)
    common = {"most": BOARD_SIZE, "now": now}
    with conn.transaction():
        for span in (*windows, "all"):
            queries.forget_board(conn, span=span, by="volume")
        queries.volume_of_hours(conn, span="1d", since=windows["1d"], **common)
        queries.volume_of_days(conn, span="7d", since=windows["7d"], **common)
        queries.volume_of_days(conn, span="30d", since=windows["30d"], **common)
        queries.volume_of_all(conn, **common)
        queries.count_markets(conn, by="volume", span=None)
    spans = [span for span in (*windows, "all") if _pnl(conn, span, windows.get(span), now, asked)]
    return ["volume", *(f"pnl of {span}" for span in spans)]


def _pnl(
    conn: psycopg.Connection[Any], span: str, since: datetime | None, now: datetime, asked: datetime | None
) -> bool:
    """Write the boards by profit of a window, if they are due."""
    if not queries.pnl_due(conn, span=span, every=PNL_EVERY, rest=PNL_REST, now=now, asked=asked):
        return False
    began = time.monotonic()
    done, base_block, base_ts = queries.reached(conn)
    with conn.transaction():
        for by in ("pnl", "window_pnl"):
            queries.forget_board(conn, span=span, by=by)
        queries.pnl_boards(
            conn,
            span=span,
            since=since,
            kept_since=kept_since(since or now, base_ts),
            done=done,
            base_block=base_block,
            most=BOARD_SIZE,
            now=now,
        )
        for by in ("pnl", "window_pnl"):
            queries.count_markets(conn, by=by, span=span)
    queries.note_took(conn, span=span, seconds=time.monotonic() - began)
    return True


def kept_since(since: datetime, base: datetime) -> datetime:
    """Return when a window's profit counts from: its start, or the first whole hour of which all rows are kept.

    >>> from datetime import UTC
    >>> for base in (datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 11, 2, 0, 10, tzinfo=UTC)):
    ...     print(kept_since(datetime(2026, 11, 1, tzinfo=UTC), base))
    2026-11-01 00:00:00+00:00
    2026-11-02 01:00:00+00:00
    """
    hour = base.replace(minute=0, second=0, microsecond=0)
    return max(since, hour if hour == base else hour + HOUR)
