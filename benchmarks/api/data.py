"""Data for the API benchmark: a simulated fortnight of a large exchange, and what orchestration computes from it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiosql
import msgspec

from orchestration.candles import activity, aggregates
from orchestration.wallets import leaderboards, positions
from sql.database import connect, license  # noqa: A004 - the thing's own name

if TYPE_CHECKING:
    from collections.abc import Callable

DAYS = 14
DAY = timedelta(days=1)
SETTLED_DAYS = 1  # the newest: two rows per trade, and as many wallet rows
SIGNALS = 50_000  # beside one for each hundred trades
GENERATIONS = 5  # rankings kept
COUNTED = (
    *("markets", "trades", "candles_1m", "candles_1h", "quotes", "book_events", "live_prices", "live_books"),
    *("signals", "settlements", "wallet_fills", "wallet_positions"),
)


class Size(msgspec.Struct, frozen=True):
    """Size of the data."""

    markets: int = 50_000
    trades: int = 5_000_000

    def of_rank(self, rank: int) -> int:
        """Return the key of the market with the rank-th most trades."""
        return rank * 7919 % self.markets + 1


def load(url: str, size: Size, report: Callable[[str], None]) -> dict[str, int]:
    """Fill an empty database; return each table's row count."""
    queries: Any = aiosql.from_path(Path(__file__).with_suffix(".sql"), "psycopg")
    now = datetime.now(UTC)
    with connect(url, autocommit=True, name="presage bench data") as conn:
        queries.prepare(conn)
        for name in ("events", "markets"):
            getattr(queries, name)(conn, markets=size.markets, now=now)
        queries.without_triggers(conn)
        queries.tokens(conn)
        queries.status_changes(conn)
        queries.live_prices(conn, now=now)
        queries.live_books(conn, levels=25, now=now)
        queries.feed(conn)
        report("markets, prices and books")
        for day in range(DAYS):
            from_ = now - DAY * (DAYS - day)
            queries.trades(conn, markets=size.markets, trades=size.trades // DAYS, from_=from_, to=from_ + DAY)
            report(f"trades of day {day + 1} of {DAYS}")
        first = aggregates.floor(now, DAY) - DAY * DAYS
        if license(conn) == "timescale":
            aggregates.refresh_candles(conn, now)
        else:  # the triggers were disabled
            for name in ("minutes", "hours"):
                for day in range(DAYS + 1):
                    getattr(queries, name)(conn, from_=first + day * DAY, to=first + (day + 1) * DAY)
        report("candles")
        several = size.trades // 10
        queries.quotes(conn, markets=size.markets, quotes=several, from_=now - timedelta(hours=4), to=now)
        queries.book_events(conn, markets=size.markets, events=several, from_=now - timedelta(hours=4), to=now)
        queries.signals(conn, markets=size.markets, signals=SIGNALS + size.trades // 100, from_=now - DAY * 7, to=now)
        report("quotes, book events and signals")
        queries.chain_tokens(conn)
        queries.settlements(conn, from_=now - DAY * SETTLED_DAYS, to=now, wallets=size.markets)
        queries.wallet_fills(conn)
        queries.contract(conn)
        queries.blocks(conn)
        queries.heads(conn)
        queries.settle(conn)
        conn.execute("vacuum analyze")
        report("settlements; all vacuumed")
        compute(conn, now)
        for minute in range(1, GENERATIONS):
            aggregates.rank(conn, now - timedelta(minutes=minute))
        positions.bring_up_to_date(conn, now, seconds=120.0)
        leaderboards.write(conn, now)
        conn.execute("vacuum analyze")
        report("what orchestration computes of them")
        conn.execute("checkpoint")
        return {table: count(conn, table) for table in COUNTED}


def compute(conn: Any, now: datetime) -> dict[str, float]:
    """Run orchestration's per-minute work, and return the seconds it took."""
    took = {}
    for name, work in (
        ("24-hour figures", aggregates.compute_stats),
        ("activity", activity.bring_up_to_date),
        ("ranking", aggregates.rank),
    ):
        began = time.perf_counter()
        work(conn, now)
        took[name] = time.perf_counter() - began
    return took


def count(conn: Any, table: str) -> int:
    """Return the number of rows of a table."""
    return int(conn.execute(f"select count(*) from {table}").fetchone()[0])  # noqa: S608 - one of our own names
