"""New Community-licence databases, written to at once: in the end every candle matches the trades."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from orchestration.candles import aggregates
from orchestration.ingest.storage.rows import Token, TradeRow, WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql import database, migrate
from tests.databases import new_database
from tests.sql import candles

pytestmark = [pytest.mark.soak, pytest.mark.license("timescale")]

DATABASES = 100
WRITTEN_S = 2.0
RETENTION = timedelta(days=3650)


def trade(number: int, ts_ms: int) -> TradeRow:
    return TradeRow(
        token=Token("1", "m", 1 + number % 5, 0),
        ts_ms=ts_ms,
        trade_id=number,
        seq=(ts_ms << 20) + number,
        side=1,
        price=1_000 * (number % 900 + 1),
        size=1_000_000 + number,
        value_usd=number,
        tx_hash=None,
    )


def write(url: str, numbers: itertools.count[int], ages_s: list[float], ended: threading.Event) -> None:
    """Write trades as fast as possible, each in its own transaction: current or of some age."""
    with database.connect(url, autocommit=True) as conn:
        writer = Writer(conn)
        for age_s in itertools.cycle(ages_s):
            if ended.is_set():
                return
            writer.write(WriteBatch(trades=[trade(next(numbers), int((time.time() - age_s) * 1000))]), publish=False)


def refresh_repeatedly(url: str, ended: threading.Event) -> int:
    """Run refresh passes as orchestration does, one after the other."""
    with database.connect(url, autocommit=True) as conn:
        passes = 0
        while not ended.is_set():
            one_pass(conn, datetime.now(UTC))
            passes += 1
    return passes


def one_pass(conn, now) -> None:
    aggregates.refresh_candles(conn, now, kept=RETENTION)
    aggregates.refresh_due(conn, now, kept=RETENTION)
    conn.execute("update stage_clocks set beat_at = %s where stage = 'aggregates'", [now])


def wrong(url: str) -> list[str]:
    """Write right after the migration, alongside passes; return the candle tables that are wrong after a last pass."""
    ended, numbers = threading.Event(), itertools.count(1)
    late = [131.0, 3_700.0, 125.0, 9_000.0, 185.0, 40_000.0, 600.0]
    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write, url, numbers, ages, ended) for ages in ([0.0], late, late[::-1])]
        passes = pool.submit(refresh_repeatedly, url, ended)
        time.sleep(WRITTEN_S)
        ended.set()
        for writing in running:
            writing.result()
        assert passes.result() > 0
    with database.connect(url, autocommit=True) as conn:
        one_pass(conn, datetime.now(UTC) + timedelta(minutes=3))
        stored = next(numbers) - 1
        assert conn.execute("select count(*) from trades").fetchone() == (stored,)
        assert stored > 50
        return [
            table
            for table in candles.TABLES
            if conn.execute(candles.kept(table)).fetchone() != conn.execute(candles.computed(table)).fetchone()
        ]


def test_a_new_database_written_to_at_once_has_no_wrong_candle_in_the_end(cluster):
    found = {}
    for number in range(DATABASES):
        with new_database(cluster) as url:
            migrate.upgrade(url)
            found[number] = wrong(url)
        print(f"{number + 1} of {DATABASES}: {found[number] or 'right'}", flush=True)

    assert {number: tables for number, tables in found.items() if tables} == {}
