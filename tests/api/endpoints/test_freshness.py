"""A stage that stops turns late, then stale, wherever its state is shown, and recovers by itself."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise

import dagster as dg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from api.data.cache import Cache
from api.endpoints.service import exposition
from config import tunables as parameters
from orchestration.assets import stages
from orchestration.checks import Judgement
from orchestration.resources import Database
from sql.roles.rights import PIPELINE
from tests.roles import login_url

ALL = list(parameters.THRESHOLDS)


@pytest.fixture
def clocks(conn):
    """All six stages, as fresh as can be; `clocks(ingestion=90)` makes one as old as that."""
    conn.execute(
        "insert into stage_clocks (stage, warn_after_s, fail_after_s) values (%s, 30, 120) on conflict do nothing",
        ["delivery"],
    )
    conn.execute("update stage_clocks set detail = detail - 'off'")

    def set_(**seconds):
        for stage in ALL:
            ago = dt.timedelta(seconds=seconds.get(stage, 0))
            conn.execute(
                "update stage_clocks set last_data_at = now() - %(ago)s, beat_at = now() - %(ago)s"
                " where stage = %(stage)s",
                {"ago": ago, "stage": stage},
            )

    return set_


@pytest.fixture(autouse=True)
def every_scrape_reads(monkeypatch):
    monkeypatch.setattr(exposition, "SNAPSHOT_TTL_S", 0.0)


@pytest.fixture
def shown(conn, client, service, database_url):
    """What each place shows of every stage."""

    def look():
        service.cache = Cache()
        answered = client.ask("/v1/status/pipeline").json
        metrics = {
            family.name: family for family in text_string_to_metric_families(client.simulate_get("/metrics").text)
        }
        events, _ = stages.due(stages.judge_stages(Database(url=login_url(database_url, PIPELINE))), {}, 0.0)
        checks = [event for event in events if isinstance(event, dg.AssetCheckEvaluation)]
        told = {event.asset_key.path[-1] for event in events if isinstance(event, dg.AssetMaterialization)}
        words = {(True, "ERROR"): "fresh", (False, "WARN"): "late", (False, "ERROR"): "stale"}
        return {
            "answer": {stage["stage"]: stage["status"] for stage in answered["stages"]},
            "worst": answered["status"],
            "metrics": {
                sample.labels["stage"]: sample.labels["status"]
                for sample in metrics["presage_stage_status"].samples
                if sample.value
            },
            "fresh in metrics": {
                sample.labels["stage"] for sample in metrics["presage_stage_fresh"].samples if sample.value
            },
            "checks": {
                check.check_name.removesuffix("_fresh"): words[check.passed, check.severity.name] for check in checks
            },
            "fresh in dagster": told,
        }

    return look


def expected(worst="fresh", **others):
    each = {stage: others.get(stage, "fresh") for stage in ALL}
    fresh = {stage for stage, word in each.items() if word == "fresh"}
    return {
        "answer": each,
        "worst": worst,
        "metrics": each,
        "fresh in metrics": fresh,
        "checks": each,
        "fresh in dagster": fresh,
    }


def test_the_stage_that_stops_turns_late_then_stale_everywhere_and_recovers(clocks, shown):
    clocks()
    assert shown() == expected()

    for stage, (late, stale) in parameters.THRESHOLDS.items():
        clocks(**{stage: late + 2})
        assert shown() == expected("late", **{stage: "late"})
        clocks(**{stage: stale + 2})
        assert shown() == expected("stale", **{stage: "stale"})
        clocks()
        assert shown() == expected()


def test_a_total_stall_is_red_everywhere(clocks, shown):
    clocks(**dict.fromkeys(ALL, 3600))

    assert shown() == expected("stale", **dict.fromkeys(ALL, "stale"))


def test_a_stage_that_is_not_configured_is_off_and_holds_nothing_against_the_rest(conn, clocks, shown):
    clocks(settlement=3600)
    conn.execute("""update stage_clocks set detail = '{"off": "no RPC"}' where stage = 'settlement'""")

    seen = shown()

    assert (seen["worst"], seen["metrics"]["settlement"], seen["checks"]["settlement"]) == ("fresh", "off", "fresh")
    assert "settlement" not in seen["fresh in metrics"] | seen["fresh in dagster"]


def test_a_database_that_is_away_is_red_in_dagster():
    judged = stages.judge_stages(Database(url="postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=1"))

    assert set(judged) == set(ALL)
    assert not any(judgement.holds for judgement in judged.values())
    assert all(judgement.summary.startswith("unknown: ") for judgement in judged.values())


def lived(stage, *, fresh_s, late_s, stale_s):
    """How Dagster's policy would judge a stage, each second of a life of it: (second, its state, the policy's)."""
    window = stages.policy(stage)
    warn, fail = (each.to_timedelta().total_seconds() for each in (window.warn_window, window.fail_window))
    told, last = {}, None
    for second in range(fresh_s + late_s + stale_s + fresh_s):
        if second < fresh_s or second >= fresh_s + late_s + stale_s:
            judgement = Judgement(holds=True, summary="fresh: 1 s behind")
        elif second < fresh_s + late_s:
            judgement = Judgement(holds=False, summary="late: 20 s behind", severity="warn")
        else:
            judgement = Judgement(holds=False, summary="stale: 99 s behind")
        if second % 15 == 0:  # the sensor is asked for each ten seconds, and comes late
            events, told = stages.due({stage: judgement}, told, float(second))
            if any(isinstance(event, dg.AssetMaterialization) for event in events):
                last = second
        yield (
            second,
            judgement.summary[:5].rstrip(":"),
            "FAIL" if second - last >= fail else "WARN" if second - last >= warn else "PASS",
        )


@pytest.mark.parametrize("stage", ALL)
def test_dagsters_policy_follows_the_clock_within_two_minutes(stage):
    late, stale = parameters.THRESHOLDS[stage]
    life = list(lived(stage, fresh_s=900, late_s=stale - late, stale_s=900))

    assert {policy for _, state, policy in life[:900] if state == "fresh"} == {"PASS"}
    turned = [(second, after) for (_, _, before), (second, _, after) in pairwise(life) if before != after]
    assert [word for _, word in turned] == ["WARN", "FAIL", "PASS"]
    since = (900, 900 + stale - late, 900 + stale - late + 900)
    assert all(0 <= second - begun <= 120 for (second, _), begun in zip(turned, since, strict=True))


def test_a_check_is_told_at_once_when_it_changes_and_otherwise_seldom():
    fresh = {"ingestion": Judgement(holds=True, summary="fresh: 0.1 s behind")}
    late = {"ingestion": Judgement(holds=False, summary="late: 20.0 s behind", severity="warn")}

    first, told = stages.due(fresh, {}, 0.0)
    again, told = stages.due(fresh, told, 10.0)
    turned, told = stages.due(late, told, 20.0)
    still, told = stages.due(late, told, 30.0)
    much_later, _ = stages.due(late, told, 321.0)

    assert [len(events) for events in (first, again, turned, still, much_later)] == [2, 0, 1, 0, 1]
    assert (turned[0].check_name, turned[0].passed) == ("ingestion_fresh", False)
