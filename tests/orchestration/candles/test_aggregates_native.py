"""Candles on a native server of the Community licence: late trades, and trades that TimescaleDB does not know of."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from orchestration.candles import aggregates
from orchestration.candles.aggregates import LateHours
from orchestration.ingest.storage.rows import Token, TradeRow, WriteBatch
from orchestration.ingest.storage.writer import Writer
from tests.sql import candles

pytestmark = pytest.mark.license("timescale")

NOW = datetime(2026, 11, 20, 12, 7, 20, tzinfo=UTC)
KEPT = timedelta(days=3650)


def trades(since, until, *, count=300, first=1):
    """Return trades of one outcome, evenly spaced from one instant to another."""
    first_ms, step = since.timestamp() * 1000, (until - since).total_seconds() * 1000 / count
    return [
        TradeRow(
            token=Token("1", "m", 1, 0),
            trade_id=number,
            seq=(ts_ms << 20) + number,
            ts_ms=ts_ms,
            side=1,
            price=1_000 * (number % 900 + 1),
            size=1_000_000 + number,
            value_usd=number,
            tx_hash=b"",
        )
        for number, ts_ms in ((first + n, round(first_ms + n * step)) for n in range(count))
    ]


def kept(conn):
    return [conn.execute(candles.kept(table)).fetchone() for table in candles.TABLES]


def computed(conn):
    return [conn.execute(candles.computed(table)).fetchone() for table in candles.TABLES]


def look(conn, now):
    """Run a complete pass: the stage's clock is touched at its end."""
    aggregates.refresh_candles(conn, now, kept=KEPT)
    due = aggregates.refresh_due(conn, now, kept=KEPT)
    conn.execute("update stage_clocks set beat_at = %s where stage = 'aggregates'", [now])
    return due


def test_a_gap_of_twelve_days_ago_that_the_live_filler_fills_is_in_the_candles_after_the_next_pass(conn, database_url):
    writer = Writer(conn)
    heard = trades(NOW - timedelta(days=13), NOW)
    for start in range(0, 300, 50):
        writer.write(WriteBatch(trades=heard[start : start + 50]))
    look(conn, NOW)
    began = NOW - timedelta(days=12)

    writer.write(WriteBatch(trades=trades(began, began + timedelta(hours=3), first=1_000)), fill=True)
    due = look(conn, NOW + timedelta(minutes=1))

    assert due.refreshed >= 3
    assert kept(conn) == computed(conn)


def test_what_timescaledb_missed_of_late_trades_is_refreshed_all_the_same(conn, database_url):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(hours=5), NOW)))
    look(conn, NOW)

    began = NOW - timedelta(hours=4)
    writer.write(WriteBatch(trades=trades(began, began + timedelta(minutes=90), first=1_000)), fill=True)
    # As if they were committed while the first refresh passes over them.
    conn.execute("delete from _timescaledb_catalog.continuous_aggs_hypertable_invalidation_log")
    aggregates.refresh_candles(conn, NOW + timedelta(minutes=1), kept=KEPT)
    missed = kept(conn)
    look(conn, NOW + timedelta(minutes=1))

    assert missed != computed(conn)
    assert kept(conn) == computed(conn)


def test_hours_in_which_no_pass_ran_are_in_the_candles_after_the_next_one(conn, database_url):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(days=20), NOW - timedelta(days=19))))
    look(conn, NOW - timedelta(days=19))
    for day in range(19):
        began = NOW - timedelta(days=19 - day)
        writer.write(WriteBatch(trades=trades(began, began + timedelta(days=1), first=1_000 * (day + 1))))
    conn.execute("delete from candles_due")  # as if all of it had come in time

    look(conn, NOW)

    assert kept(conn) == computed(conn)


def test_the_running_hour_is_not_materialised_along_with_late_trades_of_the_one_before(conn, database_url):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(hours=5), NOW)))
    look(conn, NOW)

    late = NOW - timedelta(minutes=30)
    writer.write(WriteBatch(trades=trades(late, late + timedelta(minutes=5), first=1_000)), fill=True)
    look(conn, NOW + timedelta(minutes=1))
    writer.write(WriteBatch(trades=trades(NOW + timedelta(minutes=2), NOW + timedelta(minutes=3), first=2_000)))
    conn.execute("delete from candles_due")  # as if these had come in time

    assert kept(conn) == computed(conn)


def test_what_comes_in_time_is_not_noted(conn, database_url):
    now = datetime.now(UTC)
    feed_span = trades(now - timedelta(seconds=30), now)

    Writer(conn).write(WriteBatch(trades=feed_span))

    assert conn.execute("select count(*) from candles_due").fetchone() == (0,)
    assert look(conn, now) == LateHours()


def test_candles_whose_trades_are_gone_stay_though_some_were_written_there_late(conn, database_url):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(days=20), NOW)))
    look(conn, NOW)
    before = kept(conn)
    conn.execute("select drop_chunks('trades', older_than => %s::timestamptz)", [NOW - timedelta(days=10)])

    writer.write(WriteBatch(trades=trades(NOW - timedelta(days=15), NOW - timedelta(days=14), first=5_000)), fill=True)
    aggregates.refresh_due(conn, NOW, kept=timedelta(days=10))

    assert kept(conn) == before
    assert conn.execute("select count(*) from candles_due").fetchone() == (0,)


def test_the_notes_of_a_transaction_are_kept_with_its_trades(conn, database_url):
    began = NOW - timedelta(days=12)
    writer = Writer(conn)
    with conn.transaction():
        writer.write(WriteBatch(trades=trades(began, began + timedelta(hours=3))), fill=True)
        raise psycopg.Rollback
    assert conn.execute("select count(*) from candles_due").fetchone() == (0,)

    writer.write(WriteBatch(trades=trades(began, began + timedelta(hours=3))), fill=True)

    assert conn.execute("select count(distinct date_trunc('hour', since, 'UTC')) from candles_due").fetchone() == (4,)


def test_refresh_policies_first_run_when_the_database_has_been_in_use_for_a_while(conn, database_url):
    policies = conn.execute("""
        select schedule_interval, initial_start - now() > interval '30 minutes'
        from timescaledb_information.jobs where proc_name = 'policy_refresh_continuous_aggregate' order by 1
    """).fetchall()

    assert policies == [(timedelta(minutes=10), True), (timedelta(minutes=30), True)]
