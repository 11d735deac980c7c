"""Kalshi's feed: its sandbox, real sockets and a real database."""

import pytest

from orchestration.ingest import receiver, session
from orchestration.ingest.committer import MARGIN_MS
from tests.orchestration.ingest.kalshi_world import KalshiWorld
from tests.orchestration.ingest.live_world import NO_DIFFERENCES, now_ms, wait_until
from tests.upstream.kalshi.following import sandbox_books
from upstream.kalshi.fields import token_id
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.micro import ONE

SOCKET = "/trade-api/ws/v2"


@pytest.fixture(autouse=True)
def fast_polling(monkeypatch):
    for interval in ("BEAT_S", "TOKENS_S", "GAPS_S", "NEWS_S"):
        monkeypatch.setattr(session, interval, 0.2)


@pytest.fixture
def world(database_url, tmp_path):
    log = tmp_path / "truth.jsonl"
    with (
        KalshiSandbox(simulate=11, rate=150, markets=20, log=log) as sandbox,
        KalshiWorld(sandbox, database_url, log) as made,
    ):
        yield made


def both_outcomes(world):
    """Return the sandbox's books of stored markets, as they are stored."""
    found = {}
    for ticker, (yes, no) in sandbox_books(world.sandbox, sorted(world.followed())).items():
        for outcome, (bids, others) in enumerate(((yes, no), (no, yes))):
            found[token_id(ticker, outcome)] = (bids, [(ONE - price, size) for price, size in others])
    return found


def test_everything_the_exchange_sends_is_in_the_database_once(world):
    feed = world.feed()
    wait_until(lambda: world.leader() == feed.run_id)
    began = world.caught_up()
    world.wait_until_sent(began, more_than=40)
    until = world.caught_up()
    totals = feed.stop()

    assert world.differences(began, until) == NO_DIFFERENCES
    assert (totals["mismatches"], totals["refused"], world.gaps()) == (0, 0, [])
    stage = world.conn.execute("select beat_at is not null from stage_clocks where stage = 'ingestion_kalshi'")
    assert stage.fetchone() == (True,)
    other = world.conn.execute("select beat_at, last_data_at from stage_clocks where stage = 'ingestion'")
    assert other.fetchone() == (None, None)


def test_a_killed_leader_is_replaced_and_nothing_is_lost_or_doubled(world):
    leader = world.process()
    wait_until(lambda: world.leader() == leader.run_id)
    standby = world.feed()
    wait_until(lambda: world.ready(standby))
    began = world.caught_up(MARGIN_MS)  # the leader has committed what the standby need not have received
    world.wait_until_sent(began, more_than=10)

    leader.kill()
    wait_until(lambda: world.leader() == standby.run_id)
    world.wait_until_sent(now_ms(), more_than=10)

    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert world.gaps() == []


def test_withheld_messages_are_gaps_whose_trades_come_from_rest_and_books_are_right_again(world):
    feed = world.feed(settle_s=0.5)
    wait_until(lambda: world.leader() == feed.run_id)
    began = world.caught_up()
    world.fault(kind="drop", probability=0.05, target=SOCKET)
    world.wait_until_sent(began, more_than=100)
    wait_until(lambda: {kind for kind, _, cause, *_ in world.gaps() if cause == "sequence"} == {"books", "trades"})
    world.end_faults()
    until = world.caught_up()
    wait_until(lambda: world.filled("trades") == {"kalshi"} and all(closed for *_, closed, _ in world.gaps()))
    found = world.compared(began, until)

    assert not found["trades"].lost, "they were listed"
    assert not found["trades"].doubled
    assert not found["level changes"].doubled
    assert found["level changes"].lost, "nothing was withheld"
    for token, ts_ms, *_ in found["level changes"].lost:
        assert world.is_in_gap("books", token, ts_ms)
    world.fault(kind="pause")  # books stand still, or on a busy machine what is stored would always be behind them
    wait_until(lambda: world.books().items() <= both_outcomes(world).items() and world.books())


def test_a_silent_connection_is_found_and_what_it_missed_is_a_gap(world):
    feed = world.feed(settle_s=0.5, live_silence_s=0.5)
    wait_until(lambda: world.leader() == feed.run_id)
    began = world.caught_up()
    world.wait_until_sent(began, more_than=10)
    world.fault(kind="silent", target=SOCKET)
    silent = now_ms()
    world.wait_until_sent(silent, more_than=20)
    wait_until(lambda: {cause for _, _, cause, *_ in world.gaps()} == {"silent"})
    world.end_faults()
    until = world.caught_up()
    wait_until(lambda: world.filled("trades") == {"kalshi"} and all(closed for *_, closed, _ in world.gaps()))
    found = world.compared(began, until)

    assert not found["trades"].lost
    assert not found["trades"].doubled
    assert not found["level changes"].doubled
    assert found["level changes"].lost
    for token, ts_ms, *_ in found["level changes"].lost:
        assert world.is_in_gap("books", token, ts_ms)


def test_while_trading_is_paused_the_stage_says_so_and_stays_fresh(world, monkeypatch):
    monkeypatch.setattr(receiver, "QUIET_S", 1.0)
    monkeypatch.setattr(session, "PAUSE_S", 0.2)
    stage = "select as_ms(last_data_at), detail ->> 'reason' from stage_clocks where stage = 'ingestion_kalshi'"

    def told():
        return world.conn.execute(stage).fetchone()

    feed = world.feed()
    wait_until(lambda: world.leader() == feed.run_id)
    world.caught_up()
    assert told()[1] is None
    world.fault(kind="pause")
    wait_until(lambda: told()[1] == "trading is paused")
    paused_ms = now_ms()
    wait_until(lambda: told()[0] > paused_ms + 2_000)

    world.end_faults()
    world.wait_until_sent(now_ms(), more_than=10)
    wait_until(lambda: told()[1] is None)


def test_a_market_that_is_listed_is_followed_within_seconds(world):
    feed = world.feed()
    wait_until(lambda: world.leader() == feed.run_id)
    known = world.followed()

    new = wait_until(lambda: world.followed() - known)
    verified = "select count(*) from live_books b join markets m using (market_key) where m.market_id = any(%s)"
    wait_until(lambda: world.conn.execute(verified, [[*new]]).fetchone()[0] > 0)
    assert feed.stop()["refused"] == 0
