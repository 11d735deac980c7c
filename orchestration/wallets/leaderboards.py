"""Who traded most, and who earned most: the first hundred of each window, written whole each time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql.queries import leaderboards as queries

if TYPE_CHECKING:
    import psycopg

MOST = 100
PNL_EVERY = timedelta(minutes=5)  # every position is looked at for these


def starts(now: datetime) -> dict[str, datetime]:
    """Give when each window begins: a day ago to the hour, and 7 and 30 days before the midnight that has passed (UTC).

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


def write(conn: psycopg.Connection[Any], now: datetime) -> list[str]:
    """Write the boards by volume and, every few minutes, those by profit; give which were."""
    windows = starts(now)
    common = {"most": MOST, "now": now}
    with conn.transaction():
        for span in (*windows, "all"):
            queries.forget_board(conn, span=span, by="volume")
        queries.volume_of_hours(conn, span="1d", since=windows["1d"], **common)
        queries.volume_of_days(conn, span="7d", since=windows["7d"], **common)
        queries.volume_of_days(conn, span="30d", since=windows["30d"], **common)
        queries.volume_of_all(conn, **common)
        queries.count_markets(conn, by="volume")
    last = queries.last_pnl(conn)
    if last is not None and now - last < PNL_EVERY:
        return ["volume"]
    with conn.transaction():
        for span in (*windows, "all"):
            queries.forget_board(conn, span=span, by="pnl")
        queries.pnl_boards(conn, day=windows["1d"], week=windows["7d"], month=windows["30d"], **common)
        queries.count_markets(conn, by="pnl")
    return ["volume", "pnl"]
