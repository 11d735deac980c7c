"""The JSON that scripts wait for, and the verdict at the end."""

from __future__ import annotations

import json

import msgspec
import pytest

from cli.figures import Figures, Stage
from cli.outcome import Outcome, problems, summary

FIELDS = [
    "time_to_first_market_s",
    "time_to_first_price_s",
    "live_lag_p50_s",
    "live_lag_p99_s",
    "rows",
    "coverage_gaps",
    "quarantined",
    "stages",
    "urls",
    "api_key",
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
    figures = Figures(
        rows={"trades": 9},
        lag_p50_s=0.3,
        lag_p99_s=0.4,
        stages=[Stage("discovery", "late", 901.0)],
        gaps=2,
        quarantined=1,
    )

    well.take(figures)

    assert (well.rows, well.live_lag_p50_s, well.live_lag_p99_s) == ({"trades": 9}, 0.3, 0.4)
    assert (well.stages, well.coverage_gaps, well.quarantined) == ({"discovery": "late"}, 2, 1)


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
