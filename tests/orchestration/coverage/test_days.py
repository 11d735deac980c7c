"""A day of trades reconciled with the exchange's own list."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import httpx
import psycopg
import pytest

from orchestration.coverage import days, filling, judging, tape
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from sql import database
from sql.queries import coverage as queries
from tests import stream_rows
from tests.factories import insert
from tests.orchestration.coverage.conftest import DAY, MINUTES, NOON
from upstream.transport.errors import UpstreamError

AFTER = dt.datetime(DAY.year, DAY.month, DAY.day, 5, tzinfo=dt.UTC) + dt.timedelta(days=1)


def recorded_since(conn, instant):
    insert(
        conn,
        "feed_stats",
        {"ts": instant, "feed": "polymarket", "run_id": "r", "messages": 1, "rows": 1, "lag_counts": []},
    )


def counted(day):
    return {"day": day, "listed": 0, "held": 0, "added": 0, "unlisted": 0, "unknown": 0, "agrees": True}


def alike(traded):
    return Counter(each[:5] for each in traded)


def gaps(conn):
    return conn.execute(
        "select market_key, cause, filled_by, (detail ->> 'trades')::int from coverage_gaps order by gap_id"
    ).fetchall()


def test_a_day_from_before_anything_was_recorded_is_filled_in_whole(db, exchange, traded, held):
    told = days.reconcile_trades(db, exchange, DAY)

    assert held() == alike(traded)
    assert (told.listed, told.held, told.added, told.unlisted, told.unknown) == (
        len(traded),
        len(traded),
        len(traded),
        0,
        0,
    )
    assert told.agrees
    assert gaps(db) == []
    assert stream_rows.rows(db, "trade") == [], "old news is not told"


def test_done_again_it_agrees_and_adds_nothing(db, exchange, traded, held):
    first = days.reconcile_trades(db, exchange, DAY)
    again = days.reconcile_trades(db, exchange, DAY)

    assert (again.listed, again.held, again.added, again.agrees) == (len(traded), len(traded), 0, True)
    assert held() == alike(traded)
    kept = db.execute("select listed, held, added, agrees from coverage_days where kind = 'trades'").fetchall()
    assert kept == [(first.listed, first.held, first.added, True)]
    by_market = "select sum(listed), sum(held), sum(added), sum(unlisted) from coverage_market_days where day = %s"
    assert db.execute(by_market, [DAY]).fetchone() == (len(traded), len(traded), len(traded), 0)


def test_trades_that_nobody_knew_to_be_missing_are_found_and_their_gap_is_named(db, exchange, traded, held):
    recorded_since(db, NOON)
    days.reconcile_trades(db, exchange, DAY)
    lost = db.execute("select market_key, trade_id from trades order by ts offset 50 limit 7").fetchall()
    db.execute("delete from trades where trade_id = any(%s)", [[trade_id for _, trade_id in lost]])
    db.execute("delete from coverage_gaps")

    told = days.reconcile_trades(db, exchange, DAY)

    assert (told.added, told.held, told.agrees) == (7, len(traded), True)
    assert held() == alike(traded)
    named = Counter({market_key: count for market_key, _, _, count in gaps(db)})
    assert named == Counter(market_key for market_key, _ in lost)
    assert {(cause, filled_by) for _, cause, filled_by, _ in gaps(db)} == {(days.MISSED, days.COUNTED)}


def test_what_a_known_gap_explains_is_no_gap_of_its_own_and_the_known_one_is_closed(db, exchange, traded):
    recorded_since(db, NOON - dt.timedelta(hours=1))
    insert(
        db,
        "coverage_gaps",
        {
            "kind": "trades",
            "from_ts": NOON - dt.timedelta(hours=1),
            "to_ts": NOON + dt.timedelta(hours=1),
            "cause": "asleep",
        },
    )

    told = days.reconcile_trades(db, exchange, DAY)

    assert told.added == len(traded)
    assert [gap[1:3] for gap in gaps(db)] == [("asleep", days.COUNTED)]


def test_a_gap_over_two_days_is_closed_with_the_second(db, exchange):
    insert(
        db,
        "coverage_gaps",
        {"kind": "trades", "from_ts": NOON - dt.timedelta(days=1), "to_ts": NOON, "cause": "asleep"},
    )

    days.reconcile_trades(db, exchange, DAY)
    one_day = gaps(db)[0][2]
    days.reconcile_trades(db, exchange, DAY - dt.timedelta(days=1))

    assert (one_day, gaps(db)[0][2]) == (None, days.COUNTED)


def test_a_trade_that_the_exchange_does_not_list_is_counted(db, exchange, traded):
    days.reconcile_trades(db, exchange, DAY)
    db.execute(
        "insert into trades"
        " select ts + interval '1 ms', market_key, outcome, 42, seq, side, price, size, value_usd, tx_hash"
        " from trades order by ts limit 1"
    )

    told = days.reconcile_trades(db, exchange, DAY)

    assert (told.listed, told.held, told.unlisted, told.agrees) == (len(traded), len(traded), 1, False)


def test_a_trade_from_a_print_without_a_transaction_is_the_one_that_is_listed(db, exchange, traded, held):
    days.reconcile_trades(db, exchange, DAY)
    db.execute(
        "update trades set tx_hash = null, trade_id = 42"
        " where trade_id = (select trade_id from trades order by ts offset 9 limit 1)"
    )

    told = days.reconcile_trades(db, exchange, DAY)

    assert (told.listed, told.held, told.added, told.unlisted, told.agrees) == (len(traded), len(traded), 0, 0, True)
    assert held().total() == len(traded)


def test_trades_of_a_market_that_the_catalogue_lacks_are_said_to_be_unknown(db, exchange, traded):
    token_id = traded[0][0]
    db.execute("delete from tokens where token_id = %s", [token_id])
    unknown = sum(each[0] == token_id for each in traded)

    told = days.reconcile_trades(db, exchange, DAY)

    assert (told.unknown, told.listed, told.held, told.agrees) == (unknown, len(traded), len(traded) - unknown, False)
    assert told.detail["unknown_tokens"] == [token_id]


def test_a_list_that_does_not_end_is_read_in_halves(db, exchange, monkeypatch, traded, held):
    asked = []

    def listed(markets, from_ms, to_ms):
        asked.append(to_ms - from_ms)
        if to_ms - from_ms > 60_000:
            raise tape.Incomplete("a page that came before")
        return PolymarketClient.listed(exchange, markets, from_ms, to_ms)

    monkeypatch.setattr(exchange, "listed", listed)
    list(tape.TradeReconciler(db, exchange).fill(traded[0][-1], traded[-1][-1] + 1000, found=tape.Reconciliation()))

    assert held() == alike(traded)
    assert max(asked) > 60_000


def test_an_exchange_that_fails_leaves_the_day_to_be_counted_again(db, exchange, sandbox, monkeypatch):
    recorded_since(db, NOON)
    httpx.post(f"{sandbox.url}/sandbox/faults", json={"kind": "error", "target": "/data/v2/trades"}).raise_for_status()
    try:
        with pytest.raises(Exception, match="503"):
            days.reconcile_trades(db, exchange, DAY)
    finally:
        httpx.delete(f"{sandbox.url}/sandbox/faults").raise_for_status()

    assert [*days.due(db, AFTER, {"polymarket": ["trades"]})] == [DAY]
    assert days.reconcile_trades(db, exchange, DAY).agrees


def test_what_was_found_before_the_exchange_failed_is_named_all_the_same(db, exchange, traded, held, monkeypatch):
    recorded_since(db, NOON)

    def listed(markets, from_ms, to_ms):
        if held():
            raise UpstreamError("away")
        return PolymarketClient.listed(exchange, markets, from_ms, to_ms)

    with monkeypatch.context() as failing:
        failing.setattr(exchange, "listed", listed)
        with pytest.raises(UpstreamError):
            days.reconcile_trades(db, exchange, DAY)
    named = sum(count for *_, count in gaps(db))
    again = days.reconcile_trades(db, exchange, DAY)

    assert named == held().total() == len(traded)
    assert (again.added, again.agrees) == (0, True)


class RunTerminated(BaseException):
    """Raised as when Dagster terminates a run: no error, and nothing for which psycopg would cancel a statement."""


def interrupt(own, _):
    own.pgconn.send_query(b"select 1")  # sent, and its answer is not waited for
    raise RunTerminated


def break_off(own, db):
    db.execute("select pg_terminate_backend(%s)", [own.info.backend_pid])


@pytest.mark.parametrize(
    ("end", "of", "at", "named"),
    [
        (interrupt, tape.Writer, "write", 100),
        (break_off, tape.Writer, "write", 100),
        (interrupt, queries, "close_counted", None),
    ],
)
def test_a_count_that_is_ended_names_what_it_had_found_by_then(
    db, database_url, exchange, traded, held, monkeypatch, end, of, at, named
):
    recorded_since(db, NOON)
    monkeypatch.setattr(tape, "AT_ONCE", 100)
    go_on = getattr(of, at)

    def ended(*given, **more):
        if held():
            end(own, db)
        return go_on(*given, **more)

    with database.connect(database_url, autocommit=True) as own, monkeypatch.context() as ending:
        ending.setattr(of, at, ended)
        with pytest.raises((RunTerminated, psycopg.OperationalError)):
            days.reconcile_trades(own, exchange, DAY)
        own.close()
    by_then, noted = held().total(), sum(count for *_, count in gaps(db))
    again = days.reconcile_trades(db, exchange, DAY)

    assert noted == by_then == (named or len(traded))
    assert (again.added, again.agrees) == (len(traded) - by_then, True)


def test_trades_are_noted_in_the_transaction_that_stores_them_and_in_one_gap_per_market(
    db, database_url, exchange, traded, held, monkeypatch
):
    recorded_since(db, NOON)
    monkeypatch.setattr(tape, "AT_ONCE", 100)
    write, seen = tape.Writer.write, []

    def watched(*given, **more):
        seen.append((held().total(), sum(count for *_, count in gaps(db))))  # by another connection
        return write(*given, **more)

    monkeypatch.setattr(tape.Writer, "write", watched)
    with database.connect(database_url, autocommit=True) as own:
        days.reconcile_trades(own, exchange, DAY)

    assert len(seen) > 2
    assert all(stored == noted for stored, noted in seen), "killed here, the count leaves no trade without a gap"
    noted = db.execute(
        "select market_key, from_ts, to_ts, (detail ->> 'trades')::int from coverage_gaps order by 1"
    ).fetchall()
    assert (
        noted
        == db.execute("select market_key, min(ts), max(ts), count(*) from trades group by 1 order by 1").fetchall()
    )


def test_what_cannot_be_noted_is_not_stored(db, exchange, held, monkeypatch):
    recorded_since(db, NOON)

    def broken(*_, **__):
        raise psycopg.OperationalError("away")

    monkeypatch.setattr(queries, "note_missed", broken)
    with pytest.raises(psycopg.OperationalError):
        days.reconcile_trades(db, exchange, DAY)

    assert held().total() == 0


def test_days_are_due_once_they_are_over_and_until_they_are_counted(db, exchange):
    assert [*days.due(db, AFTER, {"polymarket": ["trades"]})] == [], "nothing was recorded"

    recorded_since(db, NOON)
    midnight = AFTER.replace(hour=0, minute=30)
    assert [*days.due(db, midnight, {"polymarket": ["trades"]})] == [], "the exchange may not list the end of it yet"
    assert [*days.due(db, AFTER + dt.timedelta(days=1), {"polymarket": ["trades"]})] == [
        DAY,
        DAY + dt.timedelta(days=1),
    ]

    days.reconcile_trades(db, exchange, DAY)
    assert [*days.due(db, AFTER, {"polymarket": ["trades"]})] == []
    assert [*days.due(db, AFTER, {"polymarket": ["trades", "settlements"]})] == [DAY]
    assert len(days.due(db, AFTER + dt.timedelta(days=30), {"polymarket": ["trades"]})) == days.DAYS_BACK


def test_the_check_holds_while_days_are_counted_in_time_and_agree(db, exchange):
    assert judging.reconciled(db, AFTER, {"polymarket": ["trades"]}).holds
    recorded_since(db, NOON)
    queries.remember_since(db)
    assert judging.reconciled(db, AFTER, {"polymarket": ["trades"]}).holds, "it is counted in the night"
    late = judging.reconciled(db, AFTER + dt.timedelta(days=1), {"polymarket": ["trades"]})
    assert (late.holds, str(DAY) in late.summary) == (False, True)

    days.reconcile_trades(db, exchange, DAY)
    assert judging.reconciled(db, AFTER + dt.timedelta(days=1), {"polymarket": ["trades"]}).holds

    uncounted = judging.reconciled(db, AFTER + dt.timedelta(days=1), {"polymarket": ["trades", "settlements"]})
    assert (uncounted.holds, str(DAY) in uncounted.summary) == (False, True), "no day of settlements was counted"
    insert(db, "coverage_days", {**counted(DAY - dt.timedelta(days=1)), "kind": "settlements"})
    behind = judging.reconciled(db, AFTER + dt.timedelta(days=1), {"polymarket": ["trades", "settlements"]})
    assert (behind.holds, behind.figures["newest_day"]) == (False, str(DAY - dt.timedelta(days=1)))
    db.execute("delete from coverage_days where kind = 'settlements'")

    db.execute("update coverage_days set agrees = false")
    differing = judging.reconciled(db, AFTER, {"polymarket": ["trades"]})
    assert (differing.holds, differing.summary) == (False, f"up to {DAY}, 1 of 30 days differ")


def test_known_gaps_are_filled_however_old_they_are(db, exchange, traded, held):
    middle = dt.datetime.fromtimestamp(traded[len(traded) // 2][-1] / 1000, dt.UTC)
    market_of = dict(db.execute("select token_id, market_key from tokens").fetchall())
    before = Counter(market_of[token_id] for token_id, *_ in traded[: len(traded) // 2])
    ((market_key, _),) = before.most_common(1)  # which one trades much depends on the simulated day
    of_market = Counter(each[:5] for each in traded if market_of[each[0]] == market_key)
    common = {"kind": "trades", "cause": "asleep", "created_at": NOON}
    insert(db, "coverage_gaps", {**common, "market_key": market_key, "from_ts": NOON, "to_ts": middle})
    first = filling.fill(db, exchange)
    mine = held()
    insert(db, "coverage_gaps", {**common, "from_ts": NOON, "to_ts": NOON + dt.timedelta(hours=1)})
    insert(db, "coverage_gaps", {**common, "kind": "books", "from_ts": NOON, "to_ts": middle})

    second = filling.fill(db, exchange)

    assert (first.gaps, first.added) == (1, mine.total())
    assert mine <= of_market
    assert mine.total() > 5
    assert (second.gaps, second.added, second.failed) == (1, len(traded) - first.added, 0)
    assert held() == alike(traded)
    assert [
        (kind, filled) for kind, filled in db.execute("select kind, filled_by from coverage_gaps order by 1, 2")
    ] == [
        ("books", None),
        ("trades", "data_api"),
        ("trades", "data_api"),
    ]
    assert filling.fill(db, exchange).gaps == 0


def test_a_gap_that_cannot_be_filled_for_now_says_why_and_is_tried_again(db, exchange, sandbox):
    insert(
        db,
        "coverage_gaps",
        {"kind": "trades", "cause": "asleep", "from_ts": NOON, "to_ts": NOON + dt.timedelta(minutes=5)},
    )
    httpx.post(f"{sandbox.url}/sandbox/faults", json={"kind": "error", "target": "/data/v2/trades"}).raise_for_status()
    try:
        failed = filling.fill(db, exchange)
    finally:
        httpx.delete(f"{sandbox.url}/sandbox/faults").raise_for_status()
    (fault,) = db.execute("select fault from coverage_gap_records").fetchone()
    at_once = filling.fill(db, exchange)
    db.execute("update coverage_gaps set detail = detail - 'next_at'")
    later = filling.fill(db, exchange)

    assert (failed.failed, failed.gaps, "503" in fault) == (1, 0, True)
    assert (at_once.gaps, later.gaps) == (0, 1)


def test_what_an_interrupted_pass_wrote_counts_when_the_gap_is_taken_up_again(db, exchange, traded, held, monkeypatch):
    monkeypatch.setattr(tape, "WINDOW_MS", MINUTES * 60_000 // 2)
    to_ts = NOON + dt.timedelta(minutes=MINUTES)
    insert(db, "coverage_gaps", {"kind": "trades", "cause": "asleep", "from_ts": NOON, "to_ts": to_ts})
    first = filling.fill(db, exchange, should_stop=lambda: held().total() > 0)
    written = held().total()
    (added,) = db.execute("select added from coverage_gap_records").fetchone()

    second = filling.fill(db, exchange)

    assert 0 < written < len(traded)
    assert (first.gaps, first.added, added) == (0, written, written)
    assert (second.gaps, second.added) == (1, len(traded) - written)
    assert first.listed + second.listed == len(traded), "what was done is not asked for again"
    assert db.execute("select status, added from coverage_gap_records").fetchone() == ("filled", len(traded))
