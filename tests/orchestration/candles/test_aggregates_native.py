"""Candles on a native server of the Community licence: late trades, and trades that TimescaleDB does not know of.

The pipeline's login has them refreshed, by a job of the owner's.
"""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from orchestration.candles import aggregates
from orchestration.candles.aggregates import LateHours, RefreshError
from orchestration.ingest.storage.rows import Token, TradeRow, WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql import database, migrate
from sql.roles import grants
from sql.roles.rights import PIPELINE
from tests.databases import start_jobs
from tests.orchestration.ingest.live_world import wait_until
from tests.roles import login_url
from tests.sql import candles
from tests.sql.test_community_roles import BEHIND_CANDLES

pytestmark = pytest.mark.license("timescale")

NOW = datetime(2026, 11, 20, 12, 7, 20, tzinfo=UTC)
KEPT = timedelta(days=3650)


@pytest.fixture
def pipeline(conn, database_url):
    """Return a connection with the pipeline's rights to a database in which TimescaleDB's jobs run."""
    start_jobs(conn)
    with database.connect(login_url(database_url, PIPELINE), autocommit=True) as connection:
        yield connection


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


def test_a_gap_of_twelve_days_ago_that_the_live_filler_fills_is_in_the_candles_after_the_next_pass(conn, pipeline):
    writer = Writer(conn)
    heard = trades(NOW - timedelta(days=13), NOW)
    for start in range(0, 300, 50):
        writer.write(WriteBatch(trades=heard[start : start + 50]))
    look(pipeline, NOW)
    began = NOW - timedelta(days=12)

    writer.write(WriteBatch(trades=trades(began, began + timedelta(hours=3), first=1_000)), fill=True)
    due = look(pipeline, NOW + timedelta(minutes=1))

    assert due.refreshed >= 3
    assert kept(conn) == computed(conn)


def test_what_timescaledb_missed_of_late_trades_is_refreshed_all_the_same(conn, pipeline):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(hours=5), NOW)))
    look(pipeline, NOW)

    began = NOW - timedelta(hours=4)
    writer.write(WriteBatch(trades=trades(began, began + timedelta(minutes=90), first=1_000)), fill=True)
    # As if they were committed while the first refresh passes over them.
    conn.execute("delete from _timescaledb_catalog.continuous_aggs_hypertable_invalidation_log")
    aggregates.refresh_candles(pipeline, NOW + timedelta(minutes=1), kept=KEPT)
    missed = kept(conn)
    look(pipeline, NOW + timedelta(minutes=1))

    assert missed != computed(conn)
    assert kept(conn) == computed(conn)


def test_hours_in_which_no_pass_ran_are_in_the_candles_after_the_next_one(conn, pipeline):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(days=20), NOW - timedelta(days=19))))
    look(pipeline, NOW - timedelta(days=19))
    for day in range(19):
        began = NOW - timedelta(days=19 - day)
        writer.write(WriteBatch(trades=trades(began, began + timedelta(days=1), first=1_000 * (day + 1))))
    conn.execute("delete from candles_due")  # as if all of it had come in time

    look(pipeline, NOW)

    assert kept(conn) == computed(conn)


def test_the_running_hour_is_not_materialised_along_with_late_trades_of_the_one_before(conn, pipeline):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(hours=5), NOW)))
    look(pipeline, NOW)

    late = NOW - timedelta(minutes=30)
    writer.write(WriteBatch(trades=trades(late, late + timedelta(minutes=5), first=1_000)), fill=True)
    look(pipeline, NOW + timedelta(minutes=1))
    writer.write(WriteBatch(trades=trades(NOW + timedelta(minutes=2), NOW + timedelta(minutes=3), first=2_000)))
    conn.execute("delete from candles_due")  # as if these had come in time

    assert kept(conn) == computed(conn)


def test_what_comes_in_time_is_not_noted(conn, pipeline):
    now = datetime.now(UTC)
    feed_span = trades(now - timedelta(seconds=30), now)

    Writer(conn).write(WriteBatch(trades=feed_span))

    assert conn.execute("select count(*) from candles_due").fetchone() == (0,)
    assert look(pipeline, now) == LateHours()


def test_candles_whose_trades_are_gone_stay_though_some_were_written_there_late(conn, pipeline):
    writer = Writer(conn)
    writer.write(WriteBatch(trades=trades(NOW - timedelta(days=20), NOW)))
    look(pipeline, NOW)
    before = kept(conn)
    conn.execute("select drop_chunks('trades', older_than => %s::timestamptz)", [NOW - timedelta(days=10)])

    writer.write(WriteBatch(trades=trades(NOW - timedelta(days=15), NOW - timedelta(days=14), first=5_000)), fill=True)
    aggregates.refresh_due(pipeline, NOW, kept=timedelta(days=10))

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


def test_the_aggregates_are_the_owners_and_the_pipeline_puts_nothing_behind_them(conn, pipeline):
    look(pipeline, NOW)
    look(pipeline, NOW)
    (number,) = conn.execute(
        "select mat_hypertable_id from _timescaledb_catalog.continuous_agg where user_view_name = 'candles_1m'"
    ).fetchone()
    (job,) = conn.execute(
        "select job_id from timescaledb_information.jobs where proc_name = 'refresh_candles'"
    ).fetchone()
    behind = f"_timescaledb_internal._materialized_hypertable_{number}"

    for statement in BEHIND_CANDLES:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            pipeline.execute(statement.format(behind=behind, job=job))
    owners = "select distinct relowner from pg_class where oid = any(%s::regclass[])"
    assert len(conn.execute(owners, [["trades", *candles.TABLES]]).fetchall()) == 1


def test_a_refresh_that_fails_fails_the_pass_with_its_reason_and_the_next_pass_goes_on(conn, pipeline):
    Writer(pipeline).write(WriteBatch(trades=trades(NOW - timedelta(hours=5), NOW)))
    conn.execute("alter materialized view candles_1m rename to candles_away")

    with pytest.raises(RefreshError, match=r'candles_1m .* relation "public.candles_1m" does not exist'):
        look(pipeline, NOW)
    conn.execute("alter materialized view candles_away rename to candles_1m")
    look(pipeline, NOW)

    assert kept(conn) == computed(conn)
    assert conn.execute("select count(*) from candle_refreshes").fetchone() == (0,)


def test_a_job_that_the_servers_end_interrupted_is_made_anew(conn, pipeline):
    Writer(pipeline).write(WriteBatch(trades=trades(NOW - timedelta(hours=5), NOW)))
    look(pipeline, NOW)
    jobs = "select job_id from timescaledb_information.jobs where proc_name = 'refresh_candles'"
    before = conn.execute(jobs).fetchall()
    idle = "select count(*) from timescaledb_information.job_stats where job_id = %s and job_status = 'Scheduled'"
    wait_until(lambda: conn.execute(idle, before[0]).fetchone() == (1,))
    # As the server's end leaves it; TimescaleDB would let five minutes pass, and five more after each request.
    conn.execute(
        "update _timescaledb_internal.bgw_job_stat set last_start = now() - interval '1 minute',"
        " last_finish = '-infinity', consecutive_crashes = 1 where job_id = %s",
        before[0],
    )

    look(pipeline, NOW + timedelta(minutes=1))

    assert len(after := conn.execute(jobs).fetchall()) == 1
    assert after != before


def test_an_aggregate_that_the_pipeline_owned_goes_back_to_the_owner(conn, database_url):
    owners = """
        select distinct pg_get_userbyid(relowner) from pg_class
        where oid in ('candles_1m'::regclass, 'candles_1h'::regclass) or oid in (
            select format('%I.%I', schema_name, table_name)::regclass from _timescaledb_catalog.hypertable h
            join _timescaledb_catalog.continuous_agg on mat_hypertable_id = h.id
        )
    """
    migrate.downgrade(database_url, "0019")
    conn.execute("grant create on schema public to presage_pipeline")
    for name in candles.TABLES:
        conn.execute(f"alter materialized view {name} owner to presage_pipeline")
    conn.execute("revoke create on schema public from presage_pipeline")
    assert conn.execute(owners).fetchall() == [("presage_pipeline",)]

    migrate.upgrade(database_url)

    assert conn.execute(owners).fetchall() == conn.execute("select current_user").fetchall()
    assert grants.differences(conn) == (set(), set())
