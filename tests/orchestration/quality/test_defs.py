"""Data quality in Dagster's terms: a check a table on the asset that brings its rows, and a job that is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from orchestration.definitions import defs
from orchestration.defs import quality
from orchestration.live.keeper import Run
from orchestration.quality.suites import SUITES
from orchestration.resources import Database
from sql import database
from tests.factories import add_market, add_trades

NOW = datetime.now(UTC)


@pytest.fixture(scope="module")
def checked(new_database):
    with (
        new_database() as url,
        database.connect(url, autocommit=True, name="presage test") as conn,
        dg.instance_for_test() as instance,
    ):
        add_trades(conn, add_market(conn), [{"price": "1.5"}, {"tx_hash": b"short"}, {}])
        yield dg.materialize(
            [quality.quality_checks],
            selection=dg.AssetSelection.all_asset_checks(),
            resources={"database": Database(url=url)},
            instance=instance,
        )


def test_every_suite_is_answered_with_its_rows_its_severity_and_samples(checked):
    answered = {result.check_name: result for result in checked.get_asset_check_evaluations()}

    assert set(answered) == {suite.name for suite in SUITES}
    trades = answered["trades_quality"]
    assert (trades.passed, trades.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert trades.description == "broken: price (1), tx_hash (1)"
    plotted = {name: trades.metadata[name].value for name in ("rows_checked", "rows_failed", "checks_failed")}
    assert plotted == {"rows_checked": 3, "rows_failed": 2, "checks_failed": 2}
    assert "| 1500000 |" in trades.metadata["price"].value
    assert "0x73686f7274" in trades.metadata["tx_hash"].value
    assert answered["quotes_quality"].passed


def test_every_suite_has_an_asset_and_says_what_it_expects():
    graph = defs().get_repository_def().asset_graph

    assets = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert {suite.asset for suite in SUITES} <= assets
    described = {key.name: graph.get(key).description or "" for key in graph.asset_check_keys}
    unsaid = [
        f"{suite.table}.{check.name}"
        for suite in SUITES
        for check in suite.checks
        if check.says not in described[suite.name] or check.name not in described[suite.name]
    ]
    assert unsaid == []


def test_checks_of_one_table_have_names_of_their_own():
    twice = [suite.table for suite in SUITES if len({check.name for check in suite.checks}) < len(suite.checks)]

    assert twice == []


def test_the_job_of_each_minute_leaves_the_suites_to_their_own():
    repository = defs().get_repository_def()
    each_minute = repository.get_job("aggregates").asset_layer.asset_graph.asset_check_keys
    own = repository.get_job("quality").asset_layer.asset_graph.asset_check_keys

    assert {key.name for key in own} == {suite.name for suite in SUITES}
    assert own & each_minute == set()
    assert each_minute


@pytest.mark.parametrize(
    ("last", "computed", "runs", "why"),
    [
        (None, False, [], "there are no aggregates yet"),
        (None, True, [], None),
        (30, True, [], "the last pass ended 30 s ago"),
        (130, True, [], None),
        (130, True, [Run("r", "STARTED", NOW.timestamp() - 5)], "a pass is started"),
        (130, True, [Run("r", "STARTED", NOW.timestamp() - 600)], None),
    ],
)
def test_a_pass_is_due_every_so_often(last, computed, runs, why):
    ended = None if last is None else NOW - timedelta(seconds=last)

    assert quality.wait(ended, NOW, every_s=120, computed=computed, runs=runs) == why
