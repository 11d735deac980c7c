"""Features of the Community licence only, and that nothing above the schema can tell the licences apart."""

from __future__ import annotations

import pytest

import tests.community
from sql import database, timescale
from tests.community import Community, CommunityError
from tests.sql import candles, schema


def kept(db):
    return [db.execute(candles.kept(table))[0][0] for table in candles.TABLES]


def computed(db):
    return [db.execute(candles.computed(table))[0][0] for table in candles.TABLES]


def test_the_licence_is_told(community):
    assert community.execute(database.LICENSE) == [("timescale",)]


def test_tables_and_aggregates_have_the_same_columns_and_types_under_both_licences(community, conn):
    assert community.execute(schema.COLUMNS) == conn.execute(schema.COLUMNS).fetchall()


@pytest.mark.parametrize("kind", ["indexes", "functions", "constraints"])
def test_what_stands_beside_the_candles_is_the_same_under_both_licences(community, conn, kind):
    apache = {tuple(row[:2]) for row in conn.execute(schema.EVERYTHING[kind]).fetchall()}
    ours = {tuple(row[:2]) for row in community.execute(schema.EVERYTHING[kind])}

    differences = {name for name in apache ^ ours if "candles" not in str(name) and name[0] != "note_insert"}
    assert differences == set()


def test_functions_and_views_answer_alike(community, conn):
    query = """
        select
            as_number(1234567)::text, as_ms('2026-11-21 12:00:00.1239Z')::text,
            as_unix('1969-12-31 23:59:59.5Z')::text,
            (select string_agg(stage || ' ' || status, ', ' order by stage) from pipeline_status)
    """

    assert community.execute(query) == conn.execute(query).fetchall()


def test_everything_goes_down_and_up_again(community):
    everything = {kind: query for kind, query in schema.EVERYTHING.items() if kind != "dimensions"}
    before = {kind: community.execute(query) for kind, query in everything.items()}

    for statement in timescale.drop("timescale"):
        community.execute(statement)
    assert community.execute(schema.COLUMNS) == []
    for statement in timescale.create("timescale"):
        community.execute(statement)

    # TimescaleDB numbers the names of objects under an aggregate.
    unnumbered = {kind: rows for kind, rows in before.items() if kind not in ("views", "triggers")}
    assert {kind: community.execute(everything[kind]) for kind in unnumbered} == unnumbered


def test_the_candles_are_real_time_aggregates_the_hours_of_the_minutes(community):
    aggregates = community.execute(
        "select view_name, hypertable_name, materialized_only "
        "from timescaledb_information.continuous_aggregates order by 1"
    )

    assert [(name, only) for name, _, only in aggregates] == [("candles_1h", False), ("candles_1m", False)]
    minutes = community.execute(
        "select materialization_hypertable_name from timescaledb_information.continuous_aggregates "
        "where view_name = 'candles_1m'"
    )[0][0]
    assert [source for _, source, _ in aggregates] == [minutes, "trades"]


def test_one_index_serves_a_market_s_candles_newest_first(community):
    indexes = community.execute(
        "select indexname, indexdef from pg_indexes where schemaname = '_timescaledb_internal' "
        "and tablename like '_materialized_hypertable_%' order by 1"
    )

    assert {name: definition.split(" USING ")[1] for name, definition in indexes if "bucket_idx" not in name} == {
        "candles_1h_market_idx": "btree (market_key, outcome, bucket DESC)",
        "candles_1m_market_idx": "btree (market_key, outcome, bucket DESC)",
    }


def test_the_safety_net_is_scheduled(community):
    jobs = community.execute("""
        select
            proc_name, coalesce(aggregate.view_name, jobs.hypertable_name),
            config->>'start_offset', config->>'compress_after'
        from timescaledb_information.jobs
        left join timescaledb_information.continuous_aggregates as aggregate
            on aggregate.materialization_hypertable_name = jobs.hypertable_name
        where job_id >= 1000
        order by 1, 2
    """)

    assert jobs == [
        ("policy_compression", "book_events", None, "7 days"),
        ("policy_compression", "quotes", None, "7 days"),
        ("policy_compression", "trades", None, "7 days"),
        ("policy_refresh_continuous_aggregate", "candles_1h", "3 days", None),
        ("policy_refresh_continuous_aggregate", "candles_1m", "1 day", None),
    ]


def test_late_and_repeated_trades_of_a_day_in_columns_are_counted_once(community):
    trades = candles.random_trades(seed=4, count=400)
    community.execute(candles.insert(trades[::2]))
    community.refresh()
    community.execute("select count(compress_chunk(chunk)) from show_chunks('trades') as chunk")
    chunks = community.execute(
        "select count(*) filter (where is_compressed), count(*) from timescaledb_information.chunks "
        "where hypertable_name = 'trades'"
    )
    assert chunks == [(2, 2)]
    assert kept(community) == computed(community)

    community.execute(candles.insert(trades))
    community.refresh()

    assert community.execute("select count(*) from trades") == [(400,)]
    assert kept(community) == computed(community)


def test_a_mistake_in_sql_is_told_as_the_server_tells_it(community):
    with pytest.raises(CommunityError, match='relation "nowhere" does not exist'):
        community.execute("select * from nowhere")


def test_without_its_package_the_tests_fail_and_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(tests.community, "PACKAGE", tmp_path / "pglite")

    with pytest.raises(AssertionError, match="pglite is missing: `make setup`"):
        Community()
