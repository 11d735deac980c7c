"""Data quality in Dagster's terms: one check per table on the asset that writes its rows, and a job that is due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from orchestration.assets import quality
from orchestration.definitions import defs
from orchestration.feeds.keeper import Run
from orchestration.quality.expecting import SCHEMA
from orchestration.quality.passes import PassResult, Result, Share, StandingFailure
from orchestration.quality.suites import SUITES
from orchestration.resources import Database
from sql import database
from sql.roles.rights import PIPELINE
from sql.tables import metadata
from tests.factories import add_market, add_trades
from tests.roles import login_url

NOW = datetime.now(UTC)
MADE = "made anew from rows that were looked at"
OWN = "what the service keeps for itself: no data, and no stage that brings it"
NAMES = "looked at with the rows that name them"
WITHOUT = {
    "analysis_parameters": OWN,
    "api_keys": OWN,
    "account_tokens": OWN,
    "accounts": OWN,
    "audit_counts": OWN,
    "audit_log": OWN,
    "book_packs": MADE,
    "candle_refreshes": OWN,
    "candles_due": OWN,
    "category_days": MADE,
    "chain_contracts": NAMES,
    "chain_heads": OWN,
    "chain_tokens": NAMES,
    "credit_leases": OWN,
    "credit_usage": OWN,
    "data_incidents": "what sources did wrong: whatever it is",
    "ended_keys": OWN,
    "feed_hosts": OWN,
    "feed_leases": OWN,
    "iceberg_namespace_properties": OWN,
    "iceberg_tables": OWN,
    "lake_days": "`presage lake verify` looks at it, with the files that it is about",
    "market_bitmaps": MADE,
    "market_weeks": MADE,
    "open_markets": MADE,
    "positions_due": OWN,
    "positions_head": OWN,
    "quality_checks": OWN,
    "quality_results": OWN,
    "quality_suites": OWN,
    "quarantine": "what was refused: nothing holds of it",
    "registrations": OWN,
    "settings": OWN,
    "stage_clocks": OWN,
    "stream_head": OWN,
    "equivalents": MADE,
    "name_counts": MADE,
    "taxonomy_counts": MADE,
    "tiers": OWN,
    "tokens": NAMES,
    "wallet_days": MADE,
    "wallet_hours": MADE,
    "wallet_totals": MADE,
    "wallets_followed": OWN,
    "wallets_watched": OWN,
    "webhook_head": OWN,
    "webhook_usage": OWN,
    "webhooks": OWN,
}
"""Tables that have no suite, and why."""


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
            resources={"database": Database(url=login_url(url, PIPELINE))},
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


def test_a_pass_over_some_of_the_markets_says_so_and_declares_none_well_that_it_has_not_checked_again():
    trades, quotes, exports = (
        next(suite for suite in SUITES if suite.table == table) for table in ("trades", "quotes", "exports")
    )
    tables = (trades.table, quotes.table, exports.table)
    passed = PassResult(rows=dict.fromkeys(tables, 7), seconds=dict.fromkeys(tables, 1.0), share=Share(0, 275))
    passed.results = [Result(suite, SCHEMA, 7, 0) for suite in (trades, quotes, exports)]
    passed.standing = [
        StandingFailure(suite, "price", "fail", datetime(2026, 11, 20, 9, 5, tzinfo=UTC))
        for suite in ("trades_kalshi", "exports")
    ]

    of_trades, of_quotes, of_exports = [quality.result(suite, passed) for suite in (trades, quotes, exports)]

    assert (of_trades.passed, of_trades.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert of_trades.description == (
        "failed lately, and not all of the markets have been checked again: price (09:05 UTC)"
    )
    assert of_quotes.passed
    assert of_quotes.description == "1 checks hold of 7 rows, of 27.5 % of the markets"
    assert of_quotes.metadata["markets_checked"].value == "27.5 %"
    assert of_exports.passed, "each pass checks all of them"
    assert "markets_checked" not in of_exports.metadata


def test_every_suite_has_an_asset_and_says_what_it_expects():
    graph = defs().get_repository_def().asset_graph

    assets = {key.to_user_string() for key in graph.get_all_asset_keys()}
    assert {suite.asset for suite in SUITES} <= assets
    described = {key.name: graph.get(key).description or "" for key in graph.asset_check_keys}
    unsaid = [
        f"{suite.table}.{check.name}"
        for suite in SUITES
        for check in suite.checks
        if check.description not in described[suite.name] or check.name not in described[suite.name]
    ]
    assert unsaid == []


def test_every_table_has_a_suite_or_a_reason_to_have_none():
    assert sorted([*(suite.stored_in or suite.table for suite in SUITES), *WITHOUT]) == sorted(metadata.tables)


def test_checks_of_one_table_have_names_of_their_own():
    twice = [suite.table for suite in SUITES if len({check.name for check in suite.checks}) < len(suite.checks)]

    assert twice == []


def test_other_jobs_leave_the_suites_to_their_own():
    repository = defs().get_repository_def()
    checks = {
        job.name: {key.name for key in job.asset_layer.asset_graph.asset_check_keys}
        for job in repository.get_all_jobs()
        if not job.name.startswith("__")
    }

    own = checks.pop("quality")
    assert own == {suite.name for suite in SUITES}
    assert [name for name, others in checks.items() if own & others] == ["freshness"], "every check, by hand"
    assert checks["aggregates"]


@pytest.mark.parametrize(
    ("last", "computed", "runs", "why"),
    [
        (None, False, [], "there are no aggregates yet"),
        (None, True, [], None),
        (30, True, [], "the last pass ended 30 s ago"),
        (130, True, [], None),
        (130, True, [Run("r", "STARTED", NOW.timestamp() - 5)], "a pass is started"),
        (130, True, [Run("r", "STARTED", NOW.timestamp() - 600)], "a pass is started"),
    ],
)
def test_a_pass_is_due_every_so_often(last, computed, runs, why):
    ended = None if last is None else NOW - timedelta(seconds=last)

    assert quality.reason_to_wait(ended, NOW, every_s=120, computed=computed, runs=runs) == why
