"""Which rows a pass reads, how far it has come, and how its findings make a stage late or stale."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from config import tunables
from orchestration.quality import passes
from orchestration.quality.suites import SUITES
from sql import database
from sql.queries import quality as queries
from tests.factories import insert
from tests.orchestration.quality import world

MINUTE = timedelta(minutes=1)


def run(url, ago=timedelta(0), **given):
    return passes.run(url, datetime.now(UTC) - ago, **given)


def failed(passed):
    return {result.name for result in passed.failed}


def status(conn, stage):
    conn.execute("update stage_clocks set beat_at = now(), last_data_at = now()")
    return conn.execute("select status, detail -> 'quality' from pipeline_status where stage = %s", [stage]).fetchone()


def test_each_row_is_looked_at_once_and_a_minute_s_latecomers_too(database_url, conn, add_market, add_trades):
    market = add_market()
    now = datetime.now(UTC)
    add_trades(market, [{"ts": now - 5 * MINUTE, "price": "1.5"}, {"ts": now - 4 * MINUTE}])

    first = run(database_url, 2 * MINUTE)
    add_trades(market, [{"ts": now - 2.5 * MINUTE, "price": "1.6"}, {"ts": now - 4 * MINUTE, "price": "1.7"}])
    second = run(database_url)

    assert (first.rows["trades"], second.rows["trades"]) == (2, 1)
    assert [row["price"] for result in second.failed if result.name == "trades.price" for row in result.samples] == [
        1_600_000
    ]


def test_after_a_long_rest_an_hour_is_looked_at_and_the_rest_is_said_to_be_skipped(
    database_url, conn, add_market, add_trades
):
    market, now = add_market(), datetime.now(UTC)
    passes.run(database_url, now - 180 * MINUTE)
    add_trades(market, [{"ts": now - 90 * MINUTE, "price": "1.5"}, {"ts": now - 30 * MINUTE}])

    passed = passes.run(database_url, now)
    after = run(database_url)

    assert passed.rows["trades"] == 1
    assert passed.skipped["trades"] == (now - 180 * MINUTE, now - 60 * MINUTE)
    assert "markets" not in passed.skipped, "they are numbered"
    assert after.skipped == {}


def test_a_failure_counts_against_the_stage_of_the_exchange_whose_rows_failed(
    database_url, conn, add_market, add_trades
):
    now = datetime.now(UTC)
    polymarket, kalshi = add_market(), add_market(exchange="kalshi", market_id="KXFED-27APR-T4.25")
    conn.execute("update stage_clocks set detail = '{}' where stage = 'ingestion_kalshi'")
    tunables.set_(conn, "quality_hold_min", "1")

    def spoiled(market, number):
        add_trades(market, [{"ts": now, "price": "1.5"}] * number)
        run(database_url)
        return status(conn, "ingestion"), status(conn, "ingestion_kalshi")

    theirs = spoiled(kalshi, 250)  # more than are looked at
    conn.execute("delete from trades")
    ours = spoiled(polymarket, 2)
    conn.execute("update quality_checks set counts_until = now() where suite = 'trades_kalshi'")
    later = status(conn, "ingestion"), status(conn, "ingestion_kalshi")

    assert theirs[0] == ("fresh", None)
    assert (theirs[1][0], theirs[1][1]["trades_kalshi.price"]["rows"]) == ("stale", 250)
    assert (ours[0][0], ours[0][1]["trades.price"]["rows"]) == ("stale", 2)
    assert (ours[1][0], ours[1][1]["trades_kalshi.price"]["rows"]) == ("stale", 0), "it still counts"
    assert (later[0][0], later[1]) == ("stale", ("fresh", None))


def test_a_failed_row_whose_market_is_unknown_counts_against_the_suites_own_stage(
    database_url, conn, add_market, add_trades
):
    market = add_market(exchange="kalshi", market_id="KXFED-27APR-T4.25")
    add_trades(market, [{"ts": datetime.now(UTC) - MINUTE}])
    conn.execute("update trades set market_key = 77777")
    run(database_url)

    assert status(conn, "ingestion")[0] == "stale"
    assert status(conn, "ingestion_kalshi")[1] is None


def test_what_is_filled_in_later_is_looked_at_when_it_is(database_url, conn, add_market, add_trades):
    market, now = add_market(), datetime.now(UTC)
    run(database_url)

    add_trades(market, [{"ts": now - timedelta(hours=3), "price": "1.5"}])
    unnoticed = run(database_url)
    span = {"from_ts": now - timedelta(hours=4), "to_ts": now - timedelta(hours=2)}
    insert(
        conn, "coverage_gaps", {"kind": "trades", "cause": "outage", **span, "filled_at": now, "filled_by": "data_api"}
    )
    filled = run(database_url)

    assert (unnoticed.rows["trades"], filled.rows["trades"]) == (0, 1)
    assert "trades.price" in failed(filled)


def test_of_too_many_rows_a_pass_checks_those_of_some_markets_and_the_next_one_goes_on_with_others(
    database_url, conn, add_market, add_trades, monkeypatch
):
    monkeypatch.setattr(passes, "MAX_ROWS", 100)
    tunables.set_(conn, "quality_hold_min", "1")
    now = datetime.now(UTC)
    for group in (0, 299, 300, 699, 700, 999):
        conn.execute(f"alter table markets alter column market_key restart with {7000 + group}")
        add_trades(
            add_market(), [{"ts": now + 8 * MINUTE, "price": "1.5"}]
        )  # in the future, so that each pass finds them
    stats = {"ts": now + 8 * MINUTE, "feed": "polymarket", "run_id": "me", "messages": 1, "lag_counts": []}
    insert(conn, "feed_stats", {**stats, "rows": 0})
    insert(conn, "feed_stats", {**stats, "rows": 10**15, "feed": "impossible"})

    found = []
    for nth, rows in enumerate((330, 250, 250, 100)):
        conn.execute("update feed_stats set rows = %s where feed = 'polymarket'", [rows])
        passed = passes.run(database_url, now + nth * 2 * MINUTE)
        (samples,) = (result.samples for result in passed.failed if result.name == "trades.price")
        (held,) = conn.execute(
            "select counts_until - ran_at from quality_checks where (suite, name) = ('trades', 'price')"
        ).fetchone()
        found.append((sorted(row["market_key"] - 7000 for row in samples), passed.share.percent, held))

    assert found == [
        ([0, 299, 300], "30.3 %", MINUTE),
        ([699, 700], "40 %", 8 * MINUTE),
        ([0, 999], "40 %", 8 * MINUTE),
        ([0, 299, 300, 699, 700, 999], "100 %", MINUTE),
    ]


def test_of_very_many_rows_a_pass_still_checks_those_of_some_markets(database_url, conn, monkeypatch):
    monkeypatch.setattr(passes, "MAX_ROWS", 1)
    stats = {"ts": datetime.now(UTC), "feed": "polymarket", "run_id": "me", "messages": 1, "lag_counts": []}
    insert(conn, "feed_stats", {**stats, "rows": 10**9})

    assert run(database_url).share.percent == "1 %"


def test_a_failure_stands_while_only_some_markets_are_checked_and_the_hold_of_other_tables_is_the_usual_one(
    database_url, conn, add_market, add_trades, monkeypatch
):
    monkeypatch.setattr(passes, "MAX_ROWS", 100)
    now, market = datetime.now(UTC), add_market()
    add_trades(market, [{"ts": now, "price": "1.5"}])
    insert(conn, "coverage_gaps", {"kind": "trades", "cause": "", "from_ts": now})
    first = run(database_url)
    stats = {"ts": datetime.now(UTC), "feed": "polymarket", "run_id": "me", "messages": 1, "lag_counts": []}
    insert(conn, "feed_stats", {**stats, "rows": 200})
    conn.execute("delete from trades")
    later = run(database_url, -5 * MINUTE)

    assert first.standing == []
    assert ("trades", "price", "fail") in [(one.suite, one.name, one.severity) for one in later.standing]
    holds = dict(
        conn.execute(
            "select suite, counts_until - ran_at from quality_checks where counts_until > now() and rows_failed > 0"
        ).fetchall()
    )
    assert holds == {"coverage_gaps": 10 * MINUTE}


@pytest.fixture
def of_chain(monkeypatch):
    """Run passes over blocks and settlements alone, some blocks at a time."""

    def run_of(url, most=5000):
        suites = [replace(suite, most=most) for suite in SUITES if suite.table == "chain_blocks"]
        suites += [suite for suite in SUITES if suite.table == "settlements"]
        monkeypatch.setattr(passes, "SUITES", tuple(suites))
        return run(url, suites=suites).rows["settlements"]

    return run_of


def test_holes_of_the_chain_are_looked_at_when_they_are_filled_in(database_url, conn, of_chain):
    world.add_shared_rows(conn)
    conn.execute("delete from chain_ranges")
    lower, upper = world.healthy_block(conn), world.healthy_block(conn)
    insert(conn, "chain_blocks", {"number": upper + 500, "hash": bytes(32), "ts": datetime.now(UTC), "logs": 0})
    insert(conn, "chain_ranges", {"from_block": upper - 1, "to_block": upper + 500, "logs": 1})

    head, again = of_chain(database_url), of_chain(database_url)
    insert(conn, "chain_ranges", {"from_block": lower - 1, "to_block": lower, "logs": 1})
    hole, nothing = of_chain(database_url), of_chain(database_url)

    assert [head, again, hole, nothing] == [2, 0, 2, 0]


def test_many_blocks_at_once_are_taken_in_pieces(database_url, conn, of_chain):
    world.add_shared_rows(conn)
    for _ in range(5):
        world.healthy_block(conn)
    insert(conn, "chain_blocks", {"number": 9000, "hash": bytes(32), "ts": datetime.now(UTC), "logs": 0})

    rows = [of_chain(database_url, most=4) for _ in range(4)]

    assert sum(rows) == 10
    assert max(rows) < 10
    assert rows[-1] == 0


def test_a_share_of_rows_that_may_fail_is_of_their_exchange(database_url, conn, add_market):
    now, best = datetime.now(UTC), {"bid": 490_000, "ask": 510_000, "bid_size": 10, "ask_size": 10}
    for exchange, markets, apart in (("polymarket", 100, 0), ("kalshi", 10, 4)):
        for nth in range(markets):
            key = add_market(exchange=exchange)["market_key"]
            for outcome in (0, 1):
                mid = 600_000 if outcome == 0 and nth < apart else 500_000
                insert(conn, "live_prices", {"market_key": key, "outcome": outcome, "ts": now, "mid": mid, **best})

    (found,) = (result for result in run(database_url).failed if result.name == "live_prices.complementary")

    # Of all 110 pairs, 4 are less than one in twenty.
    assert {exchange: count for exchange, (count, _) in found.by_exchange.items()} == {"kalshi": 4}


def test_a_look_at_some_tables_leaves_the_next_pass_where_it_was(database_url, conn, add_market, add_trades):
    add_trades(add_market(), [{"price": "1.5"}])
    trades = [suite for suite in SUITES if suite.table == "trades"]

    by_hand = run(database_url, suites=trades)
    whole = run(database_url)

    assert {result.suite.table for result in by_hand.results} == {"trades"}
    assert (by_hand.rows["trades"], whole.rows["trades"]) == (1, 1)


def test_two_passes_at_once_take_turns(database_url, conn, add_market, add_trades):
    add_trades(add_market(), [{"price": "1.5"}])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: run(database_url), range(2)))

    found = conn.execute("select count(*) from quality_results where name = 'price' and rows_failed > 0").fetchone()
    assert found == (2,)  # within the minute of overlap both read it; neither waits for ever


@pytest.mark.parametrize(
    "drift",
    [
        "alter table feed_stats drop column reconnects",
        "alter table feed_stats add column mood text",
        "alter table feed_stats alter column rows type numeric",
    ],
)
def test_columns_that_are_not_as_declared_are_found_and_stop_nothing_else(database_url, conn, add_market, drift):
    add_market(status="ACTIVE", market_id="0xZZ")
    conn.execute(drift)

    passed = run(database_url)

    assert failed(passed) == {"feed_stats.columns", "markets.market_id"}
    assert {result.check.name for result in passed.results if result.suite.table == "feed_stats"} == {"columns"}


@pytest.mark.parametrize(("price", "tx_hash", "expected"), [("1.5", None, "stale"), ("0.5", b"short", "late")])
def test_severity_decides_whether_a_stage_is_late_or_stale(
    database_url, conn, add_market, add_trades, price, tx_hash, expected
):
    add_trades(add_market(), [{"price": price, "tx_hash": tx_hash}])
    before = status(conn, "ingestion")

    run(database_url)

    now, checks = status(conn, "ingestion")
    assert before == ("fresh", None)
    assert now == expected
    (check,) = checks
    assert check == ("trades.price" if expected == "stale" else "trades.tx_hash")
    assert checks[check]["rows"] == 1
    assert status(conn, "discovery") == ("fresh", None)


def test_a_stage_recovers_by_itself_some_minutes_after_its_rows_are_right_again(
    database_url, conn, add_market, add_trades
):
    (bad,) = add_trades(add_market(), [{"price": "1.5"}])
    run(database_url)
    conn.execute("delete from trades where trade_id = %s", [bad["trade_id"]])

    run(database_url)
    still = status(conn, "ingestion")[0]
    held = conn.execute(
        "select max(counts_until - failed_at), max(rows_failed) from quality_checks where failed_at is not null"
    ).fetchone()
    conn.execute("update quality_checks set counts_until = counts_until - interval '10 minutes'")

    assert still == "stale"
    assert held == (timedelta(minutes=10), 0)
    assert status(conn, "ingestion") == ("fresh", None)


def test_while_the_newest_pass_fails_no_time_heals_it(database_url, conn, add_market, add_trades):
    add_trades(add_market(), [{"price": "1.5"}])
    tunables.set_(conn, "quality_hold_min", "0")

    run(database_url)
    conn.execute(
        "update quality_checks set failed_at = failed_at - interval '1 year', ran_at = ran_at - interval '1 year'"
    )

    assert status(conn, "ingestion")[0] == "stale"


def test_a_check_that_is_no_more_is_not_held_against_its_stage(database_url, conn):
    gone = {"suite": "trades", "name": "colour", "stage": "ingestion", "severity": "fail", "rows_checked": 1}
    insert(conn, "quality_checks", {**gone, "rows_failed": 1})
    assert status(conn, "ingestion")[0] == "stale"

    run(database_url)

    assert status(conn, "ingestion") == ("fresh", None)


@pytest.mark.parametrize("followed", [True, False])
def test_trades_are_held_against_a_book_that_was_being_followed(database_url, conn, followed):
    key = world.healthy_market(conn)
    conn.execute(
        "insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)"
        " select max(ts), %s, 0, -nth, (as_ms(max(ts)) << 20) + nth, 1, 900000, 1000000, 900000"
        " from book_events, generate_series(1, 60) as nth group by nth",
        [key],
    )
    if not followed:  # as in a recording of books that were requested now and then
        conn.execute("delete from book_events")

    assert ("trades.within_book" in failed(run(database_url))) is followed


def test_history_is_kept_of_what_was_looked_at(database_url, conn, add_market, add_trades):
    add_trades(add_market(), [{"price": "1.5"}, {}])
    run(database_url)

    kept = conn.execute(
        "select rows_checked, rows_failed, samples -> 0 -> 'price' from quality_results "
        "where (suite, name) = ('trades', 'price')"
    ).fetchall()
    quiet = conn.execute("select count(*) from quality_results where suite = 'quotes'").fetchone()
    assert kept == [(2, 1, 1_500_000)]
    assert quiet == (0,)
    (hour,) = [row for row in queries.history(conn, since=datetime.now(UTC) - timedelta(hours=2)) if row[0] == "trades"]
    assert hour[2:] == (1, 2, 1)


def test_an_expectation_that_cannot_be_judged_fails_the_pass_and_notes_nothing(
    database_url, conn, add_market, add_trades, monkeypatch
):
    add_trades(add_market(), [{}])
    broken = replace(SUITES[0], checks=(replace(SUITES[0].checks[3], arguments={"condition": "price / 0 = 1"}),))

    with pytest.raises(RuntimeError, match=r"trades\.worth: division by zero"):
        run(database_url, suites=[broken])

    assert conn.execute("select count(*) from quality_results").fetchone() == (0,)
    with database.connect(database_url) as another:
        held = """
            select count(*) from pg_locks where locktype = 'advisory'
                and database = (select oid from pg_database where datname = current_database())
        """
        assert another.execute(held).fetchone() == (0,)
