"""Analysis under Dagster: the asset, its sensor, and the job of a past day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from config.settings import Settings
from orchestration.assets import signals as analysis
from orchestration.feeds.keeper import Run
from orchestration.resources import Database
from orchestration.signals import passes
from sql.roles.rights import PIPELINE
from tests.orchestration.signals.histories import END
from tests.orchestration.signals.test_passes import jumping
from tests.orchestration.signals.test_signals import all_columns, stored
from tests.roles import login_url

NOW = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def resources(database_url):
    return {"database": Database(url=login_url(database_url, PIPELINE))}


@pytest.fixture
def materialise(instance, resources):
    def materialise():
        run = dg.materialize([analysis.signals], instance=instance, resources=resources)
        (event,) = run.get_asset_materialization_events()
        return {name: value.value for name, value in event.materialization.metadata.items()}

    return materialise


def test_a_run_says_what_it_found_and_how_long_it_took(materialise, conn):
    jumping().store(conn)  # long ago: what was missed since is more than a day, so that there is nothing to find now
    first = materialise()
    assert (first["minutes"], first["behind_min"], first["momentum"], first["until"] > 0) == (1, 0, 0, True)
    assert 0 < first["slowest_minute_s"] <= first["seconds"]

    conn.execute(
        "update stage_clocks set detail = jsonb_build_object('until', %s::timestamptz) where stage = 'analysis'",
        [END - 30 * MINUTE],
    )
    conn.execute("update stage_clocks set last_data_at = %s where stage = 'ingestion'", [END])
    second = materialise()

    assert (second["minutes"], second["dagster/row_count"], second["momentum"]) == (30, 1, 1)
    assert second["volume_spike"] == 0
    status = conn.execute("select status, lag_s from pipeline_status where stage = 'analysis'").fetchone()
    assert status == ("fresh", pytest.approx(5, abs=5))


def test_the_page_of_a_run_lists_the_strongest_of_a_day(materialise, conn, add_market):
    market = add_market("rain", question="Will it rain | or\nsnow?")
    conn.execute(
        "insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, window_s) "
        "values (now(), %s, 0, 7, 'momentum', 0.2, 0.05, 4, 3900)",
        [market["market_key"]],
    )

    told = materialise()

    assert told["last_24h"] == {"momentum": 1}
    assert "momentum | Will it rain \\| or snow? | 0.2 | 0.05 | 4.00 |" in told["strongest"]


def test_a_past_day_is_computed_again_by_its_partition(instance, resources, conn, monkeypatch):
    monkeypatch.setattr(analysis.settings, "get", lambda: Settings(books_retention_days=36_500))
    jumping().store(conn)
    passes.analyse(conn, END - 30 * MINUTE + passes.SETTLE)
    passes.analyse(conn, END + passes.SETTLE)
    conn.execute("update stage_clocks set detail = '{\"until\": \"2026-03-11T00:00Z\"}' where stage = 'analysis'")
    before = all_columns(conn)

    def again():
        return analysis.signals_of_a_day.execute_in_process(
            instance=instance,
            resources=resources,
            partition_key="2026-03-10",
            run_config={"ops": {"recompute": {"config": {"hours": 15.5}}}},
        )

    run = again()
    assert run.success
    assert all_columns(conn) == before
    assert len(before) == 1
    conn.execute("delete from signals")
    again()
    assert [row[2] for row in stored(conn)] == ["momentum"]


def test_a_pass_is_due_when_a_minute_has_ended_and_is_in(instance, resources, conn):
    context = dg.build_sensor_context(instance=instance)

    skipped = analysis.analysis_due(context, **resources)
    conn.execute("update stage_clocks set last_data_at = now() where stage = 'ingestion'")
    started = analysis.analysis_due(context, **resources)

    assert skipped.skip_message == "the feed has received nothing yet"
    assert started.run_key.startswith("analysis 20")


@pytest.mark.parametrize(
    ("until", "looked", "ingested", "why"),
    [
        (None, None, None, "the feed has received nothing yet"),
        (None, None, NOW, None),
        (NOW.replace(second=0) - 2 * MINUTE, NOW - MINUTE / 2, NOW, None),
        (NOW.replace(second=0) - MINUTE, NOW - MINUTE / 2, NOW, None),
        (NOW.replace(second=0), NOW - MINUTE / 2, NOW, "the minute's end is 35 s away"),
        (
            NOW.replace(second=0) - MINUTE,
            NOW - MINUTE / 2,
            NOW - MINUTE,
            "the feed has not received the whole minute yet",
        ),
        (NOW.replace(second=0) - MINUTE, NOW - MINUTE, NOW - MINUTE, None),  # to show that the stage is alive
    ],
)
def test_when_a_pass_is_due(until, looked, ingested, why):
    assert analysis.reason_to_wait(until, looked, ingested, NOW, runs=[]) == why


@pytest.mark.parametrize("age_s", [0, 600])
def test_one_pass_at_a_time(age_s):
    given = (NOW - 3 * MINUTE, NOW, NOW, NOW)

    assert analysis.reason_to_wait(*given, runs=[]) is None
    run = Run("a", "STARTED", NOW.timestamp() - age_s)
    assert analysis.reason_to_wait(*given, runs=[run]) == "a pass is started"
