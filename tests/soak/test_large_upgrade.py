"""A database of release 0.1.0 with five million trades is upgraded while it is read and written, and taken back.

On the embedded server (Apache), and with PRESAGE_TEST_DATABASE_URL on a given one, of either licence.
"""

from __future__ import annotations

import os
import statistics
import threading
import time

import psycopg
import pytest

from sql import database, migrate
from sql.embedded import Cluster
from tests.databases import new_database

pytestmark = pytest.mark.soak

TRADES = int(os.environ.get("PRESAGE_SOAK_TRADES", "5000000"))
MARKETS, DAYS = 2_000, 14
RELEASED = "0001"
MAX_WRITE_S = 1.0
PIECE = 250_000

FILL = """
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)
select
    timestamptz '2026-11-01' + (n %% 1209600) * interval '1 s' + n * interval '1 us',
    keys.of[1 + (power(abs(hashint8(n)::float8) / 2147483648, 3) * (cardinality(keys.of) - 1))::int],
    n %% 2, n, n << 20, n %% 2, 1000 + abs(hashint8(n + 1)) %% 998000,
    1000000 + abs(hashint8(n + 2)) %% 99000000, 1000000
from generate_series(%(first)s::bigint, %(last)s::bigint) n, (select array_agg(market_key) as of from markets) keys
"""
HELD = """
select count(*), sum(trade_id), sum(price::numeric * size), md5(string_agg(day, '' order by day)) from (
    select trade_id, price, size, null as day from trades
    union all
    select 0, 0, 0, concat_ws(' ', ts::date, market_key, count(*), sum(size)) from trades group by ts::date, market_key
) _
"""
CANDLES = "select count(*), sum(volume), sum(trades) from {}"
# What release 0.1.0 asks all the time.
READS = (
    "select * from market_records order by market_key limit 50",
    "select * from price_records limit 50",
    "select * from stats_records",
    "select * from pipeline_status",
    "select * from trades where market_key = (select min(market_key) from markets) order by ts desc limit 100",
    "select * from analytics.trades limit 10",
)


class Work(threading.Thread):
    """Runs a statement again and again; keeps how long each took, and what failed."""

    def __init__(self, url: str, act) -> None:
        super().__init__(daemon=True)
        self.url, self.act = url, act
        self.took: list[float] = []
        self.failed: list[str] = []
        self.ending = threading.Event()

    def run(self) -> None:
        with database.connect(self.url, autocommit=True) as conn:
            while not self.ending.wait(0.005):
                began = time.monotonic()
                try:
                    self.act(conn, len(self.took))
                except psycopg.Error as error:
                    self.failed.append(str(error))
                self.took.append(time.monotonic() - began)

    def stop(self) -> None:
        self.ending.set()
        self.join()


def write(conn, number):
    key = TRADES + 1 + number
    conn.execute(
        "insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)"
        " values ('2026-11-15T12:00Z', (select min(market_key) from markets), 0, %s, %s, 1, 500000, 1000000, 1000000)",
        [key, key << 20],
    )


def read(conn, number):
    conn.execute(READS[number % len(READS)]).fetchall()


@pytest.fixture
def server(tmp_path):
    """A server that keeps its promises: with fsync, unlike that of the other tests."""
    if given := os.environ.get("PRESAGE_TEST_DATABASE_URL"):
        from tests.conftest import GivenServer

        yield GivenServer(given)
        return
    with Cluster(tmp_path / "database", settings={"shared_buffers": "512MB", "max_wal_size": "4GB"}) as cluster:
        yield cluster
    cluster.erase()


@pytest.fixture
def url(server):
    with new_database(server) as url:
        yield url


def fill(conn):
    conn.execute(
        "insert into markets (market_id, slug, question, status, outcomes, token_ids, source)"
        " select '0x' || lpad(to_hex(n), 64, '0'), 'm-' || n, 'Market ' || n, 'ACTIVE', array['Yes', 'No'],"
        "  array['1' || n, '2' || n], 'simulated'"
        " from generate_series(1, %s) n",
        [MARKETS],
    )
    for first in range(1, TRADES + 1, PIECE):
        conn.execute(FILL, {"first": first, "last": min(first + PIECE - 1, TRADES)})
    conn.execute("vacuum analyze")


def upgraded(url):
    """Upgrade; return the seconds of each revision."""
    steps, at = {}, time.monotonic()

    def progress(line):
        nonlocal at
        steps[line.split(":")[0]], at = round(time.monotonic() - at, 2), time.monotonic()

    migrate.upgrade(url, progress=progress)
    return steps


@pytest.mark.timeout(3600)
def test_five_million_trades_are_upgraded_while_they_are_read_and_written(url):
    migrate.upgrade(url, RELEASED)
    with database.connect(url, autocommit=True) as conn:
        licence = database.license(conn)
        began = time.monotonic()
        fill(conn)
        filled_s = time.monotonic() - began
        before, candles = conn.execute(HELD).fetchone(), conn.execute(CANDLES.format("candles_1h")).fetchone()
    work = [Work(url, write), Work(url, read), Work(url, read)]
    for each in work:
        each.start()
    time.sleep(2)
    calm = [max(each.took) for each in work]
    began = time.monotonic()
    steps = upgraded(url)
    upgrade_s = time.monotonic() - began
    time.sleep(2)
    for each in work:
        each.stop()
    written = len(work[0].took) - len(work[0].failed)
    print(
        f"\n{licence}: {TRADES:,} trades, filled in {filled_s:.0f} s; upgrade {upgrade_s:.1f} s, by revision {steps}\n"
        f"writes: {written:,}, longest {max(work[0].took):.3f} s (calm {calm[0]:.3f}), failed {len(work[0].failed)}\n"
        f"reads: {sum(len(each.took) for each in work[1:]):,}, median {statistics.median(work[1].took):.4f} s, longest "
        f"{max(max(each.took) for each in work[1:]):.3f} s (calm {max(calm[1:]):.3f}), "
        f"failed {sum(len(each.failed) for each in work[1:])}"
    )

    assert [each.failed[:3] for each in work] == [[], [], []]
    assert max(work[0].took) < MAX_WRITE_S
    with database.connect(url, autocommit=True) as conn:
        conn.execute("delete from trades where trade_id > %s", [TRADES])
        assert conn.execute(HELD).fetchone() == before
        assert conn.execute(CANDLES.format("candles_1h") + " where bucket < '2026-11-15T12:00Z'").fetchone() == candles

    began = time.monotonic()
    migrate.downgrade(url, RELEASED)
    print(f"back to {RELEASED}: {time.monotonic() - began:.1f} s")
    with database.connect(url, autocommit=True) as conn:
        assert conn.execute(HELD).fetchone() == before
