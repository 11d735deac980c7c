"""Rows corrupted in every way that the suites name: exactly the checks that should detect one do."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import psycopg
import pytest

from orchestration.quality import passes
from orchestration.quality.suites import SUITES
from sql import database
from tests.orchestration.quality import world
from tests.orchestration.quality.corruptions import markets, others

OF_MARKETS = markets.TRADES | markets.FEED | markets.CATALOGUE | markets.COMPUTED
EVERY = OF_MARKETS | others.CHAIN | others.OTHERS
# Candles are corrupted by writing into them, which continuous aggregates do not allow.
OF_CANDLES = {name for name, each in EVERY.items() if re.match(r"(update|delete from) candles_1", str(each.does))}


@pytest.fixture(scope="module")
def spoiled(new_database):
    """Findings of a pass over healthy data, and of one after each market and block has been corrupted in its way."""
    from orchestration.quality import judging  # Great Expectations takes seconds to import: not in every worker

    with (
        pytest.MonkeyPatch.context() as patch,
        new_database() as url,
        database.connect(url, autocommit=True, name="presage test") as conn,
    ):
        patch.setitem(judging.SUMMARY, "partial_unexpected_count", 1000)
        patch.setattr(passes, "SAMPLES", 1000)
        conn.execute("alter table markets drop constraint markets_status_check")
        world.add_shared_rows(conn)
        subjects = {name: world.healthy_market(conn) for name in OF_MARKETS}
        for nth in range(12):
            world.healthy_market(conn, f"pair-{nth}")
        subjects |= {name: world.healthy_block(conn) for name in others.CHAIN}
        whole = passes.run(url, datetime.now(UTC))

        named = {}
        spoilt = set(EVERY) - (OF_CANDLES if database.license(conn) == "timescale" else set())
        for name, corruption in EVERY.items():
            if name not in spoilt:
                continue
            subject = subjects.get(name)
            if callable(corruption.does):
                corruption.does(conn)
                named[name] = corruption.of
                continue
            cursor = psycopg.ClientCursor(conn).execute(corruption.does, {"key": subject, "block": subject})
            if corruption.of in ("event", "wallet"):
                named[name] = str(cursor.fetchone()[0])
            else:
                named[name] = f"{corruption.of} {subject}" if subject else corruption.of
        conn.execute("truncate quality_suites")  # so that the same rows are validated again
        yield whole, passes.run(url, datetime.now(UTC)), named


def subject_of(sample):
    """Return which market or block a row belongs to, as the corruptions name it."""
    yield f"market {sample.get('market_key')}"
    yield f"block {sample.get('block_number', sample.get('number'))}"
    for column in (
        "market_key",
        "number",
        "event_id",
        "seq",
        "low",
        "feed",
        "cause",
        "span",
        "kind",
        "type",
        "topic",
        "from_block",
    ):
        yield str(sample.get(column))
    yield str(sample.get("wallet")).removeprefix("0x")


def test_nothing_is_found_in_a_whole_world(spoiled):
    whole, _, _ = spoiled

    assert [(result.name, result.samples) for result in whole.failed] == []
    assert {suite.table for suite in SUITES if not whole.rows[suite.table]} == {"wallet_activity"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.license("apache")] if name in OF_CANDLES else []) for name in EVERY],
)
def test_what_is_spoiled_is_caught_by_the_checks_that_should(spoiled, name):
    _, found, named = spoiled
    corruption = EVERY[name]
    by = {result.name for result in found.failed if any(named[name] in subject_of(row) for row in result.samples)}
    if name in others.OTHERS and named[name] in {"orphan", "rank", "pairs", "nameless"}:
        by = {result.name for result in found.failed} & corruption.caught_by

    assert by == corruption.caught_by


@pytest.mark.license("apache")
def test_everything_that_is_expected_of_rows_is_broken_somewhere(spoiled):
    _, found, _ = spoiled

    broken = {result.check.name for result in found.failed}

    assert {result.check.name for result in found.results} - broken == {"columns"}
