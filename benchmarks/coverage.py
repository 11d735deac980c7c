"""Coverage benchmark: reconcile a day against the exchange's list and backfill it; back up and restore a database."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg

from api.schemas.requests import EARLIEST, LATEST
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from config.exchanges import POLYMARKET
from orchestration.coverage import days
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from sql import backup
from sql.database import connect
from sql.queries import coverage as queries
from upstream.polymarket.data_api.trades import DataApiTrade

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import date

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

MARKETS, TRADES, GAPS = 2_000, 200_000, 200_000
DAY_S = 86_400
# Seven million fills a day are some three million taker trades: reconciled within half an hour.
COUNTED = Target("value", ">=", 1_700)
QUICK, ASKED = Target("value", "<", 50), 200
CATALOGUE = """
    insert into markets (market_id, slug, question, status, outcomes, token_ids, created_at)
    select '0x' || encode(sha256(n::text::bytea), 'hex'), 'market-' || n, 'Market ' || n || '?', 'ACTIVE', '{Yes,No}',
           array[(1000000 + n)::text, (2000000 + n)::text], now() - interval '30 days'
    from generate_series(1, %(markets)s) as n;
    insert into tokens (token_id, market_key, outcome)
    select token_id, market_key, place - 1 from markets, unnest(token_ids) with ordinality as t (token_id, place);
    insert into feed_stats (ts, feed, run_id, messages, rows, lag_counts)
    values (now() - interval '20 days', 'polymarket', 'bench', 1, 1, '{}');
    update stage_clocks set last_data_at = now() where stage = 'ingestion';
    insert into coverage_gaps (kind, market_key, from_ts, to_ts, cause, filled_at)
    select case when n %% 2 = 0 then 'books' else 'trades' end, n %% %(markets)s + 1, now() - n * interval '5 seconds',
           now() - n * interval '5 seconds' + interval '2 seconds', 'closed', case when n %% 3 > 0 then now() end
    from generate_series(1, %(gaps)s) as n
"""


class MemoryExchange(PolymarketClient):
    """An exchange client with its trade list in memory, to exclude network time."""

    def __init__(self, day: date, trades: int) -> None:
        super().__init__("", "", "", "")
        self.by_second: dict[int, list[DataApiTrade]] = defaultdict(list)
        start = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
        for nth in range(trades):
            at = start + nth * DAY_S // trades
            token = (1_000_000 if nth % 2 else 2_000_000) + 1 + nth * 7919 % MARKETS
            tx = f"0x{hashlib.sha256(str(nth).encode()).hexdigest()}"
            price, size = 10_000 + nth * 31 % 980_000, 1_000_000 + nth * 977 % 900_000_000
            instant = datetime.fromtimestamp(at, UTC)
            self.by_second[at].append(DataApiTrade(str(token), "0x", instant, 1, price, size, tx, "0x"))

    def listed(self, markets: Collection[str], from_ms: int, to_ms: int) -> list[DataApiTrade]:  # noqa: ARG002 (of all markets)
        """Return the trades of a time range, newest first."""
        seconds = range((to_ms + 999) // 1000, from_ms // 1000 - 1, -1)
        return [trade for second in seconds for trade in reversed(self.by_second.get(second, ()))]


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Backfill a day, reconcile it again, query coverage, back up and restore."""
    day = datetime.now(UTC).date() - timedelta(days=2)
    listing = MemoryExchange(day, TRADES)
    with fresh(report) as bench:
        with connect(bench.url, autocommit=True) as conn:
            psycopg.ClientCursor(conn).execute(CATALOGUE, {"markets": MARKETS, "gaps": GAPS})
            filled_s = timed(lambda: days.reconcile_trades(conn, listing, day))
            yield figure("a day's trades, all missing: filled in", TRADES / filled_s, "trades/s", target=COUNTED)
            again = [timed(lambda: days.reconcile_trades(conn, listing, day)) for _ in range(options.repetitions)]
            counted_s = statistics.median(again)
            yield figure("a day's trades, none missing: counted", TRADES / counted_s, "trades/s", target=COUNTED)
            conn.execute("vacuum (analyze)")  # as autovacuum would, later
            detail = {"gaps": float(GAPS)}
            for name, ask in (
                ("what is held", lambda: queries.kinds(conn, exchange=POLYMARKET.name)),
                ("a page of gaps", lambda: page(conn)),
            ):
                took = [timed(ask) * 1000 for _ in range(ASKED)]
                p50, p99 = statistics.median(took), statistics.quantiles(took, n=100)[98]
                yield figure(f"{name}, over many gaps: p99", p99, "ms", target=QUICK, detail=detail | {"p50": p50})
            row = conn.execute("select pg_database_size(current_database())").fetchone()
            assert row is not None
            size_mb = row[0] / 1e6
        file = bench.folder / "presage.dump"
        saved_s = timed(lambda: backup.save(bench.url, file))
        file_mb = file.stat().st_size / 1e6
        yield figure("database to file", size_mb / saved_s, "MB/s", detail={"MB": size_mb, "file, MB": file_mb})
        restored_s = timed(lambda: backup.restore(bench.url, file, replace=True))
        yield figure("file to database", size_mb / restored_s, "MB/s", detail={"seconds": restored_s})


def page(conn: psycopg.Connection[Any]) -> list[Any]:
    """Return the newest gaps, of all kinds and states."""
    newest = {
        "exchange": POLYMARKET.name,
        "kind": None,
        "status": None,
        "since": EARLIEST,
        "until": LATEST,
        "before_ts": LATEST,
        "before_place": 0,
    }
    return list(queries.gaps(conn, **newest, limit=101))


def timed(work: Callable[[], Any]) -> float:
    """Run a function once; return the seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
