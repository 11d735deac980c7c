"""Lake benchmark: a day of book events and trades is written, and read with DuckDB.

Rival: the same rows as the nightly export writes them, Parquet files sorted by time (and CSV beside them).
"""

from __future__ import annotations

import random
import statistics
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from api.data.expired import Expired
from api.data.lake import LakeFiles
from api.data.lookup import MarketRef
from api.data.pool import Pool
from api.data.statements import run as run_query
from api.replay.expired_books import ExpiredBooks
from api.replay.past_books import PastBooks
from benchmarks.books.books import EACH, EVERYTHING, bar, bounded, size
from benchmarks.books.data import Day
from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import quantile
from cli.stack.plan import ROOT
from config import settings
from orchestration.exports import days as exports
from orchestration.exports.store import ExportStore
from orchestration.exports.topics import BY_NAME as TOPICS
from orchestration.lake import verifying, writing
from orchestration.lake.catalogue import Lake
from orchestration.lake.tables import BY_NAME
from orchestration.maintenance import packs
from sql.database import connect
from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import psycopg
    from pyiceberg.table import Table

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

EVENTS_A_TRADE = 4
ASKED = 100  # markets, whose day is read
PAST_BOOKS = 1000
MAX_COLD_MS = 150
NONE = Target("value", "==", 0)
SMALLER, FASTER = Target("ratio", "<=", 1.0), Target("ratio", "<=", 0.5)
TRADES = """
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash)
select
    %(day)s + (n %% 86400) * interval '1 s' + (n %% 1000) * interval '1 ms',
    1 + ((power(abs(hashint8(n)::float8) / 2147483648, 3)) * (%(markets)s - 1))::int, n %% 2, n, n << 20,
    case when n %% 3 = 0 then -1 else 1 end, 10000 * (1 + abs(hashint8(n + 1)) %% 98),
    10000 * (1 + abs(hashint8(n + 2)) %% 99000), 10000 * (1 + abs(hashint8(n + 3)) %% 99000), sha256(n::text::bytea)
from generate_series(%(first)s::bigint, %(last)s::bigint) n
"""
PIECE = 250_000
CHDB = ROOT / ".venv-chdb/bin/python"  # ClickHouse as a library; `make .venv-chdb/.installed` installs it
ASK_CHDB = "import sys, chdb; print(chdb.query(sys.argv[1], 'JSONCompact'))"
WHOLE = "select count(*), sum(seq % 1000000007) from {}"  # the sum of all seq is more than 64 bits hold
ROWS_OF_A_MARKET = "select count(*), min(ts), max(ts), sum(seq), sum(price::double) from {} where market_id = ?"


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Write the day as an export and into the lake, and read both."""
    now = datetime.now(UTC)
    with fresh(report) as bench, connect(bench.url, autocommit=True, name="presage bench") as conn:
        day = Day(packs.horizon(now) - timedelta(days=1), options.events, options.events // EACH, 0)
        bounded(conn)
        load(conn, day, bench.folder / "messages.gz", report)
        with step(report, "packing the book events"), bar("packing", day.events) as advance:
            most_s = EVERYTHING.total_seconds()
            packs.bring_up_to_date(conn, now, max_s=most_s, report=lambda packed: advance(packed.events))
            conn.execute("vacuum analyze")
        hot = {"book_events": ("book_events", "book_packs", "book_anchors"), "trades": ("trades",)}
        given = settings.get().model_copy(update={"lake": str(bench.folder / "lake")})
        with Lake(bench.url, given) as lake:
            for name, tables in hot.items():
                hot_bytes = sum(size(conn, each) for each in tables)
                yield from measured(conn, lake, name, day, report=report, folder=bench.folder, hot_bytes=hot_bytes)
                if CHDB.exists():
                    with step(report, f"{name}: counting with DuckDB and ClickHouse"):
                        counted = counted_twice(lake, name, bench.folder / "lake")
                    yield counted
                else:
                    report("ClickHouse was not asked: `make .venv-chdb/.installed` installs it")
            yield from past_books(conn, lake, LakeFiles(given), bench.url, day, report=report)


@contextmanager
def step(report: Callable[[str], None], what: str) -> Iterator[None]:
    """Report what is being done, and how long it took."""
    report(f"{what} …")
    began = time.perf_counter()
    yield
    report(f"{what}: {time.perf_counter() - began:,.0f} s")


def load(conn: psycopg.Connection[Any], day: Day, messages: Path, report: Callable[[str], None]) -> None:
    """Load the day's book events, and a trade for every few of them."""
    day.catalogue(conn)
    with bar("loading", 1) as advance:
        day.load(conn, messages, advance)
    messages.unlink()
    trades = day.events // EVENTS_A_TRADE
    with bar("loading trades", trades) as advance:
        for first in range(1, trades + 1, PIECE):
            last = min(first + PIECE - 1, trades)
            conn.execute(TRADES, {"day": day.since, "markets": day.markets, "first": first, "last": last})
            advance(last)
    report(f"{day.events:,} book events and {trades:,} trades of {day.markets:,} markets")


def measured(
    conn: psycopg.Connection[Any],
    lake: Lake,
    name: str,
    day: Day,
    *,
    report: Callable[[str], None],
    folder: Path,
    hot_bytes: int,
) -> Iterator[Figure]:
    """Write one table's day both ways, and ask DuckDB for markets' rows of it."""
    date, midnight = day.since.date(), day.since + timedelta(days=2)
    began = time.perf_counter()
    with step(report, f"{name}: exporting the day"):
        exported = exports.export(conn, TOPICS[name], date, ExportStore.at(folder / "exports"), midnight)
    export_s = time.perf_counter() - began
    plain = folder / "exports" / name / str(date)
    plain_bytes = sum(file.stat().st_size for file in plain.glob("*.parquet"))
    began = time.perf_counter()
    with step(report, f"{name}: writing the day into the lake"):
        written = writing.write(conn, lake, BY_NAME[name], date)
    lake_s = time.perf_counter() - began
    stored = lake.table(BY_NAME[name])
    assert stored is not None
    rival = "the export's Parquet, by time"
    yield figure(
        f"{name}: bytes a row in the lake",
        written.bytes / written.rows,
        "bytes",
        rival=(rival, plain_bytes / exported.rows),
        target=SMALLER,
        detail={"rows": written.rows, "in the database, everything included": hot_bytes / written.rows},
    )
    yield figure(
        f"{name}: writing a day",
        written.rows / lake_s,
        "rows/s",
        rival=("the export, CSV included", exported.rows / export_s),
        detail={"seconds": lake_s},
    )
    with step(report, f"{name}: asking DuckDB for {ASKED} markets in both forms"):
        wrong, ours, theirs = asked(stored, f"read_parquet('{plain}/*.parquet')", day)
    yield figure(
        f"{name}: DuckDB reads a market's day, p95",
        quantile(ours, 0.95),
        "ms",
        rival=(rival, quantile(theirs, 0.95)),
        target=FASTER,
        detail={"p50": statistics.median(ours), "asked": len(ours)},
    )
    yield figure(f"{name}: markets whose rows differ", wrong, "markets", target=NONE)
    with step(report, f"{name}: verifying the day"):
        faults = verifying.verify(conn, lake, BY_NAME[name]).faults
    yield figure(f"{name}: faults that verification finds", len(faults), "faults", target=NONE)


def counted_twice(lake: Lake, name: str, folder: Path) -> Figure:
    """Compare what DuckDB and ClickHouse count of a whole table."""
    stored = lake.table(BY_NAME[name])
    assert stored is not None
    duck = duckdb_with_iceberg()
    one = duck.execute(WHOLE.format(scan(stored))).fetchall()[0]
    duck.close()
    began = time.perf_counter()
    asked = [str(CHDB), "-c", ASK_CHDB, WHOLE.format(f"icebergLocal('{folder / name}')")]
    said = subprocess.run(asked, cwd=folder, check=True, capture_output=True, text=True).stdout
    seconds = time.perf_counter() - began
    other = msgspec.json.decode(said)["data"][0]
    return figure(
        f"{name}: rows that ClickHouse counts and DuckDB does not, or the reverse",
        abs(int(other[0]) - int(one[0])) + (int(other[1]) != int(one[1])),
        "rows",
        target=NONE,
        detail={"rows": int(one[0]), "seconds of ClickHouse": seconds},
    )


def past_books(
    conn: psycopg.Connection[Any], lake: Lake, files: LakeFiles, url: str, day: Day, *, report: Callable[[str], None]
) -> Iterator[Figure]:
    """Ask for books of random moments, drop the day from the database, and ask for them again."""
    date = day.since.date()
    for name in ("quotes", "book_anchors", "book_packs", "book_rows"):
        with step(report, f"{name}: writing the day into the lake"):
            writing.write(conn, lake, BY_NAME[name], date)
    dice = random.Random(2)  # noqa: S311 - test data
    rows = conn.execute("select market_key, market_id, token_ids from markets order by market_key").fetchall()
    moments = [
        (MarketRef(key, market_id, ["Yes", "No"], token_ids), day.since + timedelta(hours=1 + 22 * dice.random()))
        for key, market_id, token_ids in dice.choices(rows, k=PAST_BOOKS)
    ]
    pool = Pool(url, 2)
    try:
        with step(report, f"{PAST_BOOKS:,} past books from the database"):
            hot, hot_ms = rebuilt(pool, Expired(pool), moments)
        midnight = day.since + timedelta(days=1)
        queries.say_hot_from(conn, name="books", instant=midnight)
        for table in ("book_events", "book_anchors", "book_packs", "quotes"):
            conn.execute("select drop_chunks_before(%s::regclass, %s)", [table, midnight])
        with step(report, f"{PAST_BOOKS:,} past books from the lake"):
            cold, cold_ms = rebuilt(pool, Expired(pool, files), moments)
    finally:
        pool.close()
    yield figure(
        "a past book from the lake, p95",
        quantile(cold_ms, 0.95),
        "ms",
        rival=("from the database", quantile(hot_ms, 0.95)),
        target=Target("value", "<=", MAX_COLD_MS),
        detail={"p50": statistics.median(cold_ms), "asked": len(moments), "none": hot.count(b"null")},
    )
    different = sum(one != other for one, other in zip(hot, cold, strict=True))
    yield figure("past books that differ from the database's", different, "books", target=NONE)


def rebuilt(pool: Pool, source: Expired, moments: list[tuple[MarketRef, datetime]]) -> tuple[list[bytes], list[float]]:
    """Return the books of moments as JSON, and the milliseconds of each."""
    found, took = [], []

    def hot(query: Callable[..., Any], **asked: Any) -> Any:
        return pool.read(lambda conn: run_query(conn, query, asked))

    for market, at in moments:
        began = time.perf_counter()
        rows = ExpiredBooks(source).reader(market, 0, at, at) or hot
        found.append(msgspec.json.encode(PastBooks(rows, market, 0).book(at)))
        took.append((time.perf_counter() - began) * 1000)
    return found, took


def asked(stored: Table, plain: str, day: Day) -> tuple[int, list[float], list[float]]:
    """Ask for the rows of some markets in both forms; return how many differ, and the milliseconds of each."""
    dice, wrong = random.Random(1), 0  # noqa: S311 - test data
    times: tuple[list[float], list[float]] = [], []
    duck = duckdb_with_iceberg()
    sources = scan(stored), plain
    for _ in range(ASKED):
        market = Day.condition(dice.randrange(day.markets))
        answers: list[tuple[Any, ...]] = []
        for source, took in zip(sources, times, strict=True):
            began = time.perf_counter()
            answers += duck.execute(ROWS_OF_A_MARKET.format(source), [market]).fetchall()
            took.append((time.perf_counter() - began) * 1000)
        one, other = answers
        wrong += one[:4] != other[:4] or abs((one[4] or 0) - (other[4] or 0)) > 1e-6 * (one[4] or 1)
    duck.close()
    return wrong, *times


def duckdb_with_iceberg() -> duckdb.DuckDBPyConnection:
    """Return DuckDB with its extensions for Iceberg."""
    duck = duckdb.connect()
    for name in ("avro", "iceberg"):
        (file,) = resources.files(f"duckdb_extension_{name}").rglob("*.duckdb_extension")  # type: ignore[attr-defined]
        duck.execute(f"load '{file}'")
    duck.execute("set timezone = 'UTC'")
    return duck


def scan(stored: Table) -> str:
    """Return the source of a table in DuckDB's SQL."""
    return f"iceberg_scan('{stored.metadata_location.removeprefix('file://')}')"
