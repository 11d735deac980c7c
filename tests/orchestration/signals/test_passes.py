"""A pass analyses each minute once, whatever interrupts it and whoever else does it too."""

from __future__ import annotations

import json
import random
import re
import threading
from datetime import timedelta

import pytest

from config import tunables
from orchestration import stream
from orchestration.signals import again, measures, passes
from sql import database
from sql.queries import signals as queries
from tests import stream_rows
from tests.factories import add_market
from tests.orchestration.signals.histories import END, MINUTE_MS, History, millis, quiet
from tests.orchestration.signals.test_signals import EASY, all_columns, set_all, stored, told
from tests.orchestration.signals.test_signals import live as run_live
from tests.orchestration.wallets.chain import Chain

MINUTE = timedelta(minutes=1)


def clock(conn):
    return conn.execute(
        "select (detail ->> 'until')::timestamptz, last_data_at, (detail ->> 'behind_min')::int "
        "from stage_clocks where stage = 'analysis'"
    ).fetchone()


def jumping(minutes=20, markets=1, by=0.15):
    """Quiet markets whose price jumps some minutes before the end."""
    history, dice = History(), random.Random(1)
    for market in range(markets):
        quiet(history, market, dice, until=END - minutes * MINUTE, hours=10)
        for minute in range(minutes):
            ts = millis(END) + (minute - minutes) * MINUTE_MS + 30_000
            history.quote(market, ts, 0.5 + by - 0.005, 0.5 + by + 0.005)
            history.trade(market, ts, 0.5 + by, 50)
    return history


@pytest.fixture
def jumped(conn):
    jumping().store(conn)
    return conn


def test_a_minute_is_analysed_once_and_five_seconds_after_its_end(jumped):
    passes.analyse(jumped, END + timedelta(seconds=4.9))
    assert clock(jumped)[0] == END - MINUTE

    first = passes.analyse(jumped, END + timedelta(seconds=5))
    second = passes.analyse(jumped, END + timedelta(seconds=64))

    assert (first.minutes, first.until, second.minutes) == (1, END, 0)
    assert first.markets == 1


def test_minutes_that_were_missed_are_caught_up_with_one_by_one(jumped):
    passes.analyse(jumped, END - 30 * MINUTE + passes.SETTLE)

    passed = passes.analyse(jumped, END + passes.SETTLE)

    assert (passed.minutes, passed.behind) == (30, 0)
    assert [(ts, type_, direction) for ts, _, type_, _, _, direction in stored(jumped)] == [
        (END - 19 * MINUTE, "momentum", 1)
    ]


def test_what_a_day_has_left_behind_is_not_caught_up_with(jumped):
    passes.analyse(jumped, END - timedelta(days=3))

    passed = passes.analyse(jumped, END + passes.SETTLE, budget_s=0.0)

    assert (passed.minutes, passed.until, passed.behind) == (1, END - timedelta(days=1), 1440)


def test_a_pass_that_runs_out_of_time_says_how_far_it_came(jumped):
    passes.analyse(jumped, END - 30 * MINUTE + passes.SETTLE)

    passed = passes.analyse(jumped, END + passes.SETTLE, budget_s=0.0)

    assert (passed.minutes, passed.behind) == (1, 29)
    until, data_at, behind = clock(jumped)
    assert (until, data_at, behind) == (END - 29 * MINUTE, END - 29 * MINUTE, 29)
    passes.analyse(jumped, END + passes.SETTLE)
    assert clock(jumped) == (END, END + passes.SETTLE, 0)


def test_a_minute_that_the_feed_has_not_brought_is_waited_for_without_being_late(jumped):
    jumped.execute("update stage_clocks set last_data_at = %s where stage = 'ingestion'", [END - timedelta(seconds=1)])
    passes.analyse(jumped, END + passes.SETTLE)

    passed = passes.analyse(jumped, END + 10 * MINUTE)

    assert (passed.minutes, passed.until) == (0, END - MINUTE)
    assert clock(jumped)[1] == END + 10 * MINUTE


@pytest.mark.parametrize(
    ("late_s", "silent_s", "backlog", "is_waited_for"),
    [(15, 1, 7, True), (15, 1, 0, False), (15, 12, 7, False), (25, 1, 7, False)],
    ids=["late", "quiet", "gone", "too late"],
)
def test_another_exchanges_feed_that_is_late_is_waited_for_a_little(conn, late_s, silent_s, backlog, is_waited_for):
    conn.execute("update stage_clocks set last_data_at = now() where stage = 'ingestion'")
    conn.execute(
        "update stage_clocks set last_data_at = now() - make_interval(secs => %s),"
        " beat_at = now() - make_interval(secs => %s), detail = jsonb_build_object('backlog_events', %s::int)"
        " where stage = 'ingestion_kalshi'",
        [late_s, silent_s, backlog],
    )
    (late,) = conn.execute(
        "select now() - make_interval(secs => %s) = %s", [late_s, queries.ingested_until(conn)]
    ).fetchone()

    assert late is is_waited_for


def test_before_the_feed_has_brought_anything_there_is_nothing_to_analyse(conn):
    passed = passes.analyse(conn, END)

    assert (passed.minutes, passed.until) == (0, None)


def test_what_is_told_is_the_record_that_the_api_shows(jumped):
    run_live(jumped)

    (message,) = (json.loads(row.message) for row in stream_rows.rows(jumped, "signal"))
    ((record, market_id),) = jumped.execute(
        "select r.record, m.market_id from signal_records r join markets m using (market_key)"
    ).fetchall()

    assert (message["type"], message["market_id"], message["data"]) == ("signal", market_id, record)
    assert message["ts"] == record["ts"] == millis(END - 19 * MINUTE)
    assert record["direction"] == "up"
    assert record["detail"]["price_move"] == pytest.approx(record["value"])
    assert record["score"] == pytest.approx(record["value"] / record["threshold"], abs=1e-6)


def test_killed_in_between_nothing_is_kept_told_or_passed_over(database_url, conn, monkeypatch):
    jumping().store(conn)
    passes.analyse(conn, END - 30 * MINUTE + passes.SETTLE)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(stream, "publish", killed)  # the last step before the commit
    with pytest.raises(KeyboardInterrupt):
        passes.analyse(conn, END + passes.SETTLE)
    assert (stored(conn), told(conn), clock(conn)[0]) == ([], 0, END - 30 * MINUTE)
    monkeypatch.undo()
    passes.analyse(conn, END + passes.SETTLE)

    assert (len(stored(conn)), told(conn), clock(conn)[0]) == (1, 1, END)


def test_two_at_once_double_nothing(database_url, conn):
    jumping(markets=3).store(conn)
    passes.analyse(conn, END - 30 * MINUTE + passes.SETTLE)
    minutes = []

    def analyse():
        with database.connect(database_url, autocommit=True) as other:
            minutes.append(passes.analyse(other, END + passes.SETTLE).minutes)

    threads = [threading.Thread(target=analyse) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(minutes) == 30
    assert (len(stored(conn)), told(conn)) == (3, 3)


def test_a_clock_that_is_set_back_finds_the_same_and_tells_nothing_twice(jumped):
    run_live(jumped)
    before, events = all_columns(jumped), told(jumped)

    jumped.execute(
        "update stage_clocks set detail = detail || '{\"until\": \"2026-03-10T14:30:00Z\"}' where stage = 'analysis'"
    )
    passes.analyse(jumped, END + passes.SETTLE)

    assert (all_columns(jumped), told(jumped)) == (before, events)
    assert len(before) == 1


def test_a_parameter_acts_from_the_next_minute_and_the_past_keeps_its_own(jumped):
    tunables.set_(jumped, "momentum_min_move", "0.5")
    run_live(jumped, until=END - 15 * MINUTE)
    assert stored(jumped) == []

    tunables.set_(jumped, "momentum_min_move", "0.1")
    passes.analyse(jumped, END + passes.SETTLE)

    (found,) = stored(jumped)
    assert (found[0], found[4]) == (END - 14 * MINUTE, 0.1)
    history = jumped.execute("select since, parameters ->> 'momentum_min_move' from analysis_parameters order by 1")
    assert [value for _, value in history.fetchall()] == ["0.5", "0.1"]
    done = again.recompute(jumped, END - 29 * MINUTE, span=29 * MINUTE)
    assert (done.added, done.taken_out, dict(done.found)) == (0, 0, {"momentum": 1})


def test_a_cool_down_is_of_a_market_a_type_and_a_direction(conn):
    history = jumping(minutes=40, markets=2)
    history.quotes = [row for row in history.quotes if row[0] == 0 or row[2] < millis(END) - 40 * MINUTE_MS]
    for minute in range(40):  # the other one goes up, and down below where it was
        at = 0.65 if minute < 20 else 0.3
        history.quote(1, millis(END) + (minute - 40) * MINUTE_MS + 30_000, at - 0.005, at + 0.005)
    history.store(conn)
    one, other = history.markets
    tunables.set_(conn, "momentum_cooldown_min", "15")
    tunables.set_(conn, "price_reversal_min_move", "0.9")

    run_live(conn, first=END - 39 * MINUTE)

    found = [(round((ts - END) / MINUTE), market, direction) for ts, market, _, _, _, direction in stored(conn)]
    assert [row for row in found if row[1] == one] == [(-39, one, 1), (-24, one, 1), (-9, one, 1)]
    assert [row for row in found if row[1] == other] == [
        (-39, other, 1),
        (-24, other, 1),
        (-19, other, -1),
        (-4, other, -1),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [("signal_min_trades", "1000"), ("signal_min_volume_usd", "100000"), ("signal_min_history_h", "12")],
)
def test_thin_data_says_nothing(jumped, name, text):
    set_all(jumped, EASY | {name: text})

    run_live(jumped, first=END - 20 * MINUTE)

    assert [row for row in stored(jumped) if row[2] in {"momentum", "volume_spike", "price_reversal"}] == []


@pytest.mark.parametrize(
    ("missed_s", "filled_after_s", "found_after"),
    [
        (170, None, 1),  # too little to matter
        (200, None, None),
        (200, 230, 4),  # known as a gap until it was filled
        (200, 5000, None),
    ],
)
def test_a_gap_counts_as_it_was_known_at_the_time(conn, missed_s, filled_after_s, found_after):
    history = jumping()
    jumped_ms = millis(END) - 20 * MINUTE_MS
    filled = None if filled_after_s is None else jumped_ms + filled_after_s * 1000
    history.gaps.append(("books", None, jumped_ms - missed_s * 1000, jumped_ms, filled))
    history.store(conn)

    run_live(conn)

    found = [(ts - END) / MINUTE + 20 for ts, *_ in stored(conn)]
    assert found == ([] if found_after is None else [found_after])


def test_late_trades_are_taken_in_when_the_day_is_computed_again(jumped):
    run_live(jumped)
    (before,) = all_columns(jumped)

    jumped.execute("delete from quotes where ts > %s", [END - 20 * MINUTE])
    jumped.execute("delete from trades where ts > %s", [END - 20 * MINUTE])
    done = again.recompute(jumped, END - 29 * MINUTE, span=29 * MINUTE)
    assert (done.added, done.taken_out, all_columns(jumped)) == (0, 1, [])
    assert told(jumped) == 1
    assert before is not None


def test_a_day_that_is_not_over_is_not_computed_again(jumped):
    passes.analyse(jumped, END + passes.SETTLE)

    with pytest.raises(LookupError, match="has not reached the end of 2026-03-10"):
        again.recompute(jumped, END.replace(hour=0))


def test_a_day_whose_quotes_are_gone_stays_as_it_is(jumped):
    run_live(jumped)
    before = all_columns(jumped)

    with pytest.raises(LookupError, match="are no longer kept: 2026-03-10 stays as it is"):
        again.recompute(jumped, END - 29 * MINUTE, span=29 * MINUTE, kept_since=END - timedelta(hours=24))
    assert all_columns(jumped) == before


def alerts(conn):
    return [row for row in all_columns(conn) if "whale_alert" in row]


def match(token="71"):
    return {"token": token, "price": "0.4", "size": 1000, "maker": "ann", "taker": "bob"}


def test_whale_alerts_are_made_again_of_settlements_and_those_of_markets_known_later_are_added(jumped):
    tunables.set_(jumped, "whale_alert_usd", "400")
    run_live(jumped)
    known, chain = add_market(jumped, token_ids=["71", "72"]), Chain(jumped, END - 10 * MINUTE)
    chain.block(1, match(), match(token="91"))
    tunables.set_(jumped, "whale_alert_usd", "100")
    day = {"day": END - 29 * MINUTE, "span": 29 * MINUTE}
    (live,) = alerts(jumped)

    same = again.recompute(jumped, **day)
    assert (same.added, same.taken_out, dict(same.found)) == (0, 0, {"momentum": 1, "whale_alert": 1})
    assert alerts(jumped) == [live]
    late = add_market(jumped, token_ids=["91", "92"])
    done = again.recompute(jumped, **day)
    assert (done.added, done.taken_out) == (1, 0)
    assert {row[1] for row in alerts(jumped)} == {known["market_key"], late["market_key"]}
    assert live in alerts(jumped)
    jumped.execute("delete from signals where type = 'whale_alert'")
    again.recompute(jumped, **day)
    assert live[:-1] in [row[:-1] for row in alerts(jumped)], "the same but for when it was found"
    jumped.execute("delete from settlements where token_key = %s", [chain.key("91")])
    done = again.recompute(jumped, **day)
    assert (done.added, done.taken_out) == (0, 1)
    assert [row[1] for row in alerts(jumped)] == [known["market_key"]]


def test_whale_alerts_are_made_again_by_the_threshold_of_their_time(jumped):
    tunables.set_(jumped, "whale_alert_usd", "1000")
    run_live(jumped, until=END - 15 * MINUTE)
    tunables.set_(jumped, "whale_alert_usd", "100")
    passes.analyse(jumped, END + passes.SETTLE)
    tunables.set_(jumped, "whale_alert_usd", "1e9")
    add_market(jumped, token_ids=["71", "72"])
    chain = Chain(jumped, END - 25 * MINUTE)
    for four_a_minute in (
        20,
        44,
        48,
        80,
    ):  # the change is recorded with the minute that ended 14 minutes before the end
        chain.block(four_a_minute, match())

    again.recompute(jumped, END - 29 * MINUTE, span=29 * MINUTE)

    found = [(row[0], row[6], row[7]) for row in alerts(jumped)]
    assert found == [(END - 13 * MINUTE, 100, 4), (END - 5 * MINUTE, 100, 4)]


def test_a_whale_alert_of_a_block_that_is_no_longer_kept_stays(jumped):
    passes.analyse(jumped, END + passes.SETTLE)
    (key,) = jumped.execute("select market_key from markets").fetchone()
    jumped.execute(
        "insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, window_s) "
        "values (%s, %s, 0, 7, 'whale_alert', 30000, 25000, 1.2, 0)",
        [END - 5 * MINUTE, key],
    )

    again.recompute(jumped, END - 29 * MINUTE, span=29 * MINUTE)

    assert jumped.execute("select count(*) from signals where type = 'whale_alert'").fetchone() == (1,)


def test_no_set_of_measures_is_compared_row_by_row_with_another(conn, monkeypatch):
    plans = []

    def plan(conn, **parameters):
        plans.append("\n".join(row for (row,) in conn.execute(f"explain (costs off) {measured.sql}", parameters)))
        return []

    measured = queries.measures
    monkeypatch.setattr(queries, "measures", plan)
    assert measures.read(conn, END, measures.Parameters.of(tunables.values(conn))) == []

    assert re.findall(r"Join Filter: .*\w\.market_key = .*", plans[0]) == []
    assert not re.search(r"(Hash|Merge) Cond: .*\bm\.market_key", plans[0]), "all markets ever are read"
    assert conn.execute("show enable_nestloop").fetchone() == ("on",)
