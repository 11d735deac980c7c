"""Results of the checks on data that is healthy, late, crossed, incomplete or refused."""

import time
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from orchestration import checks
from orchestration.assets.pipeline import SPECS, pipeline_checks
from orchestration.ingest.gaps.starts import LISTED
from orchestration.ingest.lag import Lag
from orchestration.resources import Database
from sql.roles.rights import PIPELINE
from tests.factories import insert
from tests.roles import login_url

NOW = datetime.now(UTC)


def beat(conn, stage, seconds):
    conn.execute(
        "update stage_clocks set beat_at = now() - %(ago)s, last_data_at = now() - %(ago)s where stage = %(stage)s",
        {"ago": timedelta(seconds=seconds), "stage": stage},
    )


@pytest.mark.parametrize(
    ("seconds", "holds", "severity", "word"),
    [(1, True, "error", "fresh"), (30, False, "warn", "late"), (90, False, "error", "stale")],
)
def test_a_stage_is_judged_by_its_own_clock(conn, seconds, holds, severity, word):
    beat(conn, "ingestion", seconds)

    judged = checks.stages(conn)["ingestion"]

    assert (judged.holds, judged.severity) == (holds, severity)
    assert judged.summary.startswith(word)
    assert judged.figures["lag_s"] == pytest.approx(seconds, abs=1)


def test_a_stage_that_never_ran_fails(conn):
    judged = checks.stages(conn)["aggregates"]

    assert (judged.holds, judged.severity, judged.summary) == (False, "error", "missing: nothing yet")
    assert "lag_s" not in judged.figures


def test_a_stage_says_which_checks_of_its_rows_are_broken(conn):
    beat(conn, "ingestion", 1)
    check = {"suite": "trades", "name": "price", "stage": "ingestion", "severity": "warn", "rows_checked": 5}
    insert(conn, "quality_checks", {**check, "rows_failed": 2})

    judged = checks.stages(conn)["ingestion"]

    assert (judged.holds, judged.severity) == (False, "warn")
    assert judged.summary.startswith("late: ")
    assert judged.summary.endswith(" s behind, broken: trades.price")


def stats(conn, lags_ms, ago=timedelta(minutes=1), feed="polymarket/1of2"):
    lag = Lag()
    lag.add(1_000_000, [1_000_000 - ms for ms in lags_ms])
    row = {"ts": NOW - ago, "feed": feed, "run_id": "r", "messages": 1, "rows": 1, "lag_counts": lag.trimmed()}
    insert(conn, "feed_stats", row)


@pytest.mark.parametrize(
    ("lags_ms", "holds", "severity"),
    [
        ([100] * 99 + [3000], True, "warn"),
        ([100] * 97 + [3000] * 3, False, "warn"),
        ([100] * 97 + [9000] * 3, False, "error"),
    ],
)
def test_lag_is_judged_by_its_99th_percentile(conn, lags_ms, holds, severity):
    stats(conn, lags_ms[:40])
    stats(conn, lags_ms[40:])
    stats(conn, [60_000] * 100, ago=timedelta(minutes=6))  # long ago
    stats(conn, [60_000] * 100, feed="kalshi")

    judged = checks.lag_p99(conn, NOW, "polymarket")

    assert (judged.holds, judged.severity) == (holds, severity)
    assert judged.figures["messages"] == 100
    assert judged.figures["p50_ms"] == pytest.approx(100, rel=0.06)


def test_no_lag_is_no_fault(conn):
    assert checks.lag_p99(conn, NOW, "polymarket").holds


def book(conn, market, bid, ask, *, verified=True, outcome=0):
    row = {"market_key": market["market_key"], "outcome": outcome, "seq": 1, "ts": NOW, "verified": verified}
    levels = {"bid_prices": bid, "bid_sizes": [1] * len(bid), "ask_prices": ask, "ask_sizes": [1] * len(ask)}
    insert(conn, "live_books", row | levels)


def test_a_crossed_book_is_found_unless_it_is_in_doubt_already(conn, add_market):
    book(conn, add_market(), [400_000], [410_000])
    book(conn, add_market(), [], [410_000])
    book(conn, add_market(), [500_000], [500_000], verified=False)
    assert checks.not_crossed(conn, "polymarket").holds

    book(conn, add_market(), [500_000], [500_000])
    judged = checks.not_crossed(conn, "polymarket")

    assert not judged.holds
    assert (judged.figures["books"], judged.figures["crossed"], judged.figures["not_verified"]) == (3, 1, 1)


def price(conn, market, outcome, bid, ask, ts=NOW):
    mid = None if bid is None else (bid + ask) // 2
    row = {"market_key": market["market_key"], "outcome": outcome, "ts": ts, "bid": bid, "ask": ask, "mid": mid}
    insert(conn, "live_prices", row)


def test_prices_of_yes_and_no_add_up_to_one(conn, add_market):
    def pair(yes, no, **columns):
        market = add_market(**columns)
        price(conn, market, 0, yes, yes + 10_000)
        price(conn, market, 1, no, no + 10_000)

    for _ in range(20):
        pair(400_000, 590_000)
    pair(400_000, 400_000, status="RESOLVED")
    one_sided = add_market()
    price(conn, one_sided, 0, None, None)
    price(conn, one_sided, 1, 100_000, 110_000)
    assert checks.complementary(conn, "polymarket").figures["pairs"] == 20

    pair(400_000, 450_000)
    assert checks.complementary(conn, "polymarket").holds  # one in twenty may be between two messages
    pair(400_000, 450_000)
    judged = checks.complementary(conn, "polymarket")

    assert not judged.holds
    assert (judged.figures["apart"], judged.figures["worst"]) == (2, 0.14)


def test_an_open_gap_warns_and_after_a_minute_fails(conn):
    now = datetime.now(UTC)
    insert(
        conn, "coverage_gaps", {"kind": "books", "from_ts": now - timedelta(hours=1), "to_ts": now, "cause": "socket"}
    )
    assert checks.no_open_gaps(conn, "polymarket").holds

    insert(conn, "coverage_gaps", {"kind": "books", "from_ts": now, "cause": "socket"})
    assert (checks.no_open_gaps(conn, "polymarket").holds, checks.no_open_gaps(conn, "polymarket").severity) == (
        False,
        "warn",
    )
    insert(conn, "coverage_gaps", {"kind": "trades", "from_ts": now - timedelta(minutes=3), "cause": "socket"})

    judged = checks.no_open_gaps(conn, "polymarket")
    assert judged.severity == "error"
    assert judged.figures == {"open": 2, "open_over_60_s": 1, "last_24h": 3, "last_24h_unfilled": 3}


def test_the_start_of_a_market_found_a_moment_ago_is_no_open_gap_until_a_minute_later(conn):
    now = datetime.now(UTC)
    row = {"kind": "books", "from_ts": now - timedelta(hours=3), "cause": LISTED}
    insert(conn, "coverage_gaps", {**row, "created_at": now})
    assert checks.no_open_gaps(conn, "polymarket").holds

    insert(conn, "coverage_gaps", {**row, "created_at": now - timedelta(minutes=3)})
    judged = checks.no_open_gaps(conn, "polymarket")
    assert (judged.holds, judged.severity, judged.figures["open"]) == (False, "error", 1)


def test_what_was_refused_lately_is_counted_by_reason(conn):
    for ago, reason in ((1, "not a price"), (2, "not a price"), (3, "no token"), (11, "long ago")):
        row = {"ts": NOW - timedelta(minutes=ago), "source": "gamma", "reason": reason, "payload": "{}"}
        insert(conn, "quarantine", row)

    judged = checks.nothing_refused(conn, NOW)

    assert (judged.holds, judged.severity) == (False, "warn")
    assert judged.figures == {"refused": 3, "reasons": "2x gamma: not a price\n1x gamma: no token"}
    assert checks.nothing_refused(conn, NOW, of_chain=True).holds


def test_logs_of_the_chain_that_were_refused_are_held_against_the_chain_alone(conn):
    insert(conn, "quarantine", {"ts": NOW, "source": "chain", "reason": "unknown event", "payload": "{}"})

    judged = checks.nothing_refused(conn, NOW, of_chain=True)

    assert (judged.holds, judged.figures) == (False, {"refused": 1, "reasons": "1x chain: unknown event"})
    assert checks.nothing_refused(conn, NOW).holds


def test_passes_of_data_quality_that_stop_are_told_of_while_ingestion_runs(conn):
    def judged(every_s=120):
        found = checks.quality_passes(conn, every_s)
        return found.holds, found.severity

    beat(conn, "ingestion", 1)
    nothing = judged()
    stats(conn, [100], ago=timedelta(minutes=16))
    never = judged()
    suite = {"suite": "trades", "stage": "ingestion", "until": NOW, "rows": 1, "seconds": 1}
    now = conn.execute("select now()").fetchone()[0]
    insert(conn, "quality_suites", {**suite, "ran_at": now - timedelta(minutes=14)})
    lately = judged()
    conn.execute("update quality_suites set ran_at = ran_at - interval '2 minutes'")
    silent, seldom = judged(), judged(600)
    beat(conn, "ingestion", 3600)

    assert (nothing, never, lately) == ((True, "warn"), (False, "warn"), (True, "warn"))
    assert (silent, seldom) == ((False, "warn"), (True, "warn"))
    assert judged() == (True, "warn"), "nothing comes in"


def test_every_check_is_answered_in_dagsters_terms(database_url, conn):
    began = time.monotonic()
    beat(conn, "ingestion", 30)
    beat(conn, "aggregates", 1)
    insert(conn, "quarantine", {"source": "chain", "reason": "unknown event", "payload": "{}"})

    run = dg.materialize(
        [pipeline_checks],
        selection=dg.AssetSelection.all_asset_checks(),
        resources={"database": Database(url=login_url(database_url, PIPELINE))},
    )

    answered = {(result.asset_key, result.check_name): result for result in run.get_asset_check_evaluations()}
    assert set(answered) == {(spec.asset_key, spec.name) for spec in SPECS}
    late = answered[dg.AssetKey("trades"), "ingestion_fresh"]
    assert (late.passed, late.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert 30 <= late.metadata["lag_s"].value <= 30 + time.monotonic() - began
    assert answered[dg.AssetKey("market_rankings"), "aggregates_fresh"].passed
    assert answered[dg.AssetKey("markets"), "nothing_refused"].passed, "that was the chain's"


def test_an_exchange_is_judged_by_its_own_gaps(conn):
    row = {"kind": "books", "cause": "sequence", "from_ts": NOW - timedelta(minutes=2), "exchange": "kalshi"}
    insert(conn, "coverage_gaps", row)

    assert checks.no_open_gaps(conn, "polymarket").holds
    assert not checks.no_open_gaps(conn, "kalshi").holds
