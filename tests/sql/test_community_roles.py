"""The roles of the pipeline and the API under the Community licence."""

from __future__ import annotations

import pytest
from psycopg import errors

from sql.roles import grants
from sql.roles.rights import API, PIPELINE
from tests.community import CommunityError
from tests.sql.community_connection import CommunityConnection


@pytest.fixture
def as_pipeline(community):
    """`as_pipeline(statement)` runs it with the pipeline's rights under the Community licence."""
    grants.apply(CommunityConnection(community))

    def execute(statement):
        community.execute(f"set role {PIPELINE}")
        try:
            return community.execute(statement)
        finally:
            community.execute("reset role")

    return execute


def test_the_pipeline_has_candles_of_the_community_licence_refreshed_and_the_api_reads_them(community, as_pipeline):
    assert grants.differences(CommunityConnection(community)) == (set(), set())
    as_pipeline("insert into trades values (now() - interval '3 hours', 1, 0, 1, 1, 1, 500000, 1000000, 500000)")
    for candles, hours in (("candles_1m", 3), ("candles_1h", 3)):
        as_pipeline(
            "insert into candle_refreshes (candles, since, until, forced) select "
            f"'{candles}', hour - interval '{hours} hours', hour + interval '1 hour', true "
            "from date_trunc('hour', now()) as hour"
        )

    as_pipeline("select start_candles_refresh()")
    assert community.execute(
        "select proc_name, owner::text, next_start from timescaledb_information.jobs where proc_schema = 'public'"
    ) == [("refresh_candles", "postgres", None)]
    community.run_job()

    assert as_pipeline("select error, ended_at >= started_at from candle_refreshes") == [(None, True)] * 2
    materialised = "select sum(trades)::int from _timescaledb_internal._materialized_hypertable_{}"
    numbers = "select mat_hypertable_id from _timescaledb_catalog.continuous_agg"
    assert [community.execute(materialised.format(number)) for (number,) in community.execute(numbers)] == [[(1,)]] * 2
    community.execute(f"set role {API}")
    read = "select trades from candles_1h where bucket > now() - interval '1 day'"
    assert [int(trades) for (trades,) in community.execute(read)] == [1]
    for refused in ("insert into candle_refreshes (candles) values ('candles_1m')", "select start_candles_refresh()"):
        with pytest.raises(CommunityError, match="permission denied"):
            community.execute(refused)
    community.execute("reset role")


@pytest.mark.parametrize(
    "window",
    [
        "'trades', '2026-11-01 00:00Z', '2026-11-01 01:00Z'",
        "'candles_1m; drop table trades', '2026-11-01 00:00Z', '2026-11-01 01:00Z'",
        "'candles_1m', '2026-11-01 00:00Z', '2026-11-02 00:01Z'",
        "'candles_1m', '2026-11-01 00:00Z', '2026-11-01 00:00Z'",
        "'candles_1m', '2026-11-01 00:00Z', 'infinity'",
        "'candles_1m', '-infinity', '2026-11-01 00:00Z'",
        "'candles_1m', null, '2026-11-01 00:00Z'",
    ],
)
def test_no_window_is_asked_for_but_of_candles_and_a_day_at_most(conn, window):
    conn.execute(f"set role {PIPELINE}")

    with pytest.raises((errors.DataError, errors.IntegrityError)):
        conn.execute(f"insert into candle_refreshes (candles, since, until, forced) values ({window}, true)")


BEHIND_CANDLES = (
    "create or replace view candles_1m as select * from candles_1h",
    "create rule spy as on insert to candles_1m do also select 1",
    "create trigger spy before insert on {behind} for each row execute function note_candles_due()",
    "create trigger spy before insert on candle_refreshes for each row execute function note_candles_due()",
    "alter table {behind} add column spy int",
    "insert into {behind} select * from {behind}",
    "alter materialized view candles_1m owner to current_user",
    "alter materialized view candles_1m set (timescaledb.materialized_only = true)",
    "drop materialized view candles_1m cascade",
    "create or replace procedure refresh_candles(job_id integer, config jsonb) language sql as 'select 1'",
    "alter procedure refresh_candles(integer, jsonb) owner to current_user",
    "call refresh_continuous_aggregate('candles_1m', null, null)",
    """call refresh_candles(1, '{{"idle_s": 0}}')""",
    "select alter_job({job}, config => null)",
    "select delete_job({job})",
    "update candle_refreshes set error = null",
)


def test_the_pipeline_puts_nothing_behind_the_candles(community, as_pipeline):
    as_pipeline("select start_candles_refresh()")
    ((number,),) = community.execute(
        "select mat_hypertable_id from _timescaledb_catalog.continuous_agg where user_view_name = 'candles_1m'"
    )
    ((job,),) = community.execute("select job_id from timescaledb_information.jobs where proc_name = 'refresh_candles'")
    behind = f"_timescaledb_internal._materialized_hypertable_{number}"

    for statement in BEHIND_CANDLES:
        with pytest.raises(CommunityError, match=r"must be owner|permission denied|insufficient permissions"):
            as_pipeline(statement.format(behind=behind, job=job))
