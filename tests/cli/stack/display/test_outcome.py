"""The JSON for scripts, and the problems reported at the end."""

from __future__ import annotations

import json
from datetime import datetime

import msgspec
import pytest

from cli.stack.display.figures import BackfillFigures, PipelineFigures, StageLag
from cli.stack.display.outcome import Outcome, problems, summary

FRESH = [StageLag("ingestion", "fresh", 0.1)]
FIELDS = [
    "time_to_first_market_s",
    "time_to_first_price_s",
    "live_lag_p50_s",
    "live_lag_p99_s",
    "by_exchange",
    "rows",
    "past",
    "past_at_60_s",
    "coverage_gaps",
    "gaps_by_cause",
    "quarantined",
    "stages",
    "reasons",
    "urls",
    "api_key",
    "tape",
    "source",
]


@pytest.fixture
def well():
    return Outcome(
        source="simulated",
        time_to_first_market_s=3.0,
        time_to_first_price_s=4.0,
        live_lag_p50_s=0.1,
        live_lag_p99_s=0.2,
        rows={"trades": 5},
        coverage_gaps=0,
        quarantined=0,
        stages={"discovery": "fresh", "ingestion": "fresh", "aggregates": "fresh"},
        urls={"api": "http://127.0.0.1:8080", "stream": "ws://127.0.0.1:8080/stream", "dagster": None, "site": None},
        api_key="k",
    )


def test_the_json_has_its_fields_from_the_first_second_on(tmp_path):
    file = tmp_path / "out.json"

    Outcome(source="tape").save(file)

    written = json.loads(file.read_text())
    assert list(written) == FIELDS
    assert written["source"] == "tape"
    assert written["time_to_first_market_s"] is None
    assert list(tmp_path.iterdir()) == [file]


def test_a_look_at_the_pipeline_goes_into_the_json(well):
    figures = PipelineFigures(
        rows={"trades": 9},
        lag_p50_s=0.3,
        lag_p99_s=0.4,
        stages=[StageLag("discovery", "late", 901.0)],
        gaps=2,
        gaps_by_cause={"listed before it was followed": 2},
        quarantined=1,
    )

    well.take(figures)

    assert (well.rows, well.live_lag_p50_s, well.live_lag_p99_s) == ({"trades": 9}, 0.3, 0.4)
    assert (well.stages, well.coverage_gaps, well.quarantined) == ({"discovery": "late"}, 2, 1)
    assert "coverage gaps 2 (2 listed before it was followed), quarantined 1" in summary(well, [])


def test_what_keeps_a_stage_from_going_on_is_told(well):
    reason = "cannot reach gamma-api.polymarket.com: name not known"
    at = datetime(2026, 11, 22, 12, 3, 11).astimezone()
    well.take(PipelineFigures(stages=[StageLag("discovery", "missing", None, reason, int(at.timestamp()))]))

    assert well.reasons == {"discovery": f"{reason}, since 12:03:11"}
    assert f"stage discovery is missing: {reason}, since 12:03:11" in problems(well, [])


def test_without_anybody_who_asked_the_api_the_stages_count():
    idle = Outcome(source="exchange", stages={"discovery": "fresh", "ingestion": "missing"})

    assert problems(idle, ["site"], served=False) == ["site is down", "stage ingestion is missing"]
    assert problems(Outcome(source="exchange", stages={"discovery": "fresh"}), [], served=False) == []


def test_a_run_in_which_everything_is_fresh_has_no_problems(well):
    assert problems(well, []) == []


@pytest.mark.parametrize(
    ("change", "down", "said"),
    [
        ({"stages": {"discovery": "fresh", "ingestion": "stale"}}, [], "stage ingestion is stale"),
        ({"stages": {}}, [], "no stage has reported"),
        ({"time_to_first_market_s": None}, [], "the API served no market"),
        ({"time_to_first_price_s": None}, [], "the API served no price"),
        ({"live_lag_p99_s": None}, [], "no live row was committed"),
        ({}, ["daemon"], "daemon is down"),
    ],
)
def test_whatever_is_not_well_is_a_problem_and_stands_in_the_summary(well, change, down, said):
    found = problems(msgspec.structs.replace(well, **change), down)

    assert found == [said]
    assert f"  {said}" in summary(well, found)


def test_of_several_exchanges_each_has_its_figures_and_its_problems(well):
    well.of("polymarket").time_to_first_price_s = 4.0
    well.of("kalshi").time_to_first_price_s = 9.0
    well.take(PipelineFigures(lag_p99_s=0.3, lags_p99_s={"polymarket": 0.2, "kalshi": 0.4}, stages=FRESH))

    assert problems(well, []) == []
    assert "Kalshi: first price after 9.00 s, live lag p99 0.40 s" in summary(well, [])

    well.of("kalshi").time_to_first_price_s = None
    assert problems(well, []) == ["the API served no price of Kalshi"]


def test_what_there_is_of_the_past_is_written_and_summed_up(tmp_path, well):
    past = BackfillFigures(
        days=14,
        doing=None,
        share=1.0,
        signals=300,
        leaderboard_wallets_with_profit=100,
        markets_with_14_days_of_candles=52,
        trending_ratios=25,
        filled_days=14,
        trades=48_384,
        settlements=110_000,
    )

    well.take(PipelineFigures(past=past))
    well.save(tmp_path / "out.json")

    written = json.loads((tmp_path / "out.json").read_text())
    assert written["past"]["markets_with_14_days_of_candles"] == 52
    assert written["past_at_60_s"] is None
    assert "back-fill: 100% of 14 days, 48,384 trades, 110,000 settlements, 300 signals" in summary(well, [])
