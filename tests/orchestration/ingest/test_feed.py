import re
import time

import pytest

from orchestration.ingest import committer, figures, session
from orchestration.ingest.committer import MARGIN_MS
from tests.orchestration.ingest.live_world import (
    MIN_COMPARED,
    MIN_COMPARED_BY_HASH,
    NO_DIFFERENCES,
    World,
    disable_listings,
    now_ms,
    wait_until,
)
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation import simulation


@pytest.fixture(autouse=True)
def fast_polling(monkeypatch):
    """Poll more often than needed, so that tests do not wait."""
    disable_listings(monkeypatch)
    for interval in ("BEAT_S", "TOKENS_S", "GAPS_S", "NEWS_S"):
        monkeypatch.setattr(session, interval, 0.2)


@pytest.fixture
def world(database_url, tmp_path):
    log = tmp_path / "truth.jsonl"
    with (
        Sandbox(simulate=11, rate=150, markets=15, log=log) as sandbox,
        World(sandbox, database_url, log) as made,
    ):
        yield made


def test_everything_the_exchange_sends_is_in_the_database_once(world):
    feed = world.feed()
    wait_until(lambda: world.leader() == feed.run_id)
    began = now_ms()
    world.wait_until_sent(began, more_than=40)
    until = world.caught_up()
    totals = feed.stop()

    assert world.differences(began, until) == NO_DIFFERENCES
    assert (totals["mismatches"], totals["refused"], totals["unknown_tokens"], world.gaps()) == (0, 0, 0, [])
    assert {figures["role"] for figures in feed.observations} >= {"leader"}


def test_prices_are_live_while_a_leader_lives_and_no_longer(world):
    def live():
        return world.conn.execute("select count(*) from price_records").fetchone()[0]

    leader = world.process()
    wait_until(lambda: world.leader() == leader.run_id)
    tokens = world.conn.execute("select count(*) from live_prices").fetchone()[0]
    wait_until(lambda: live() >= max(1, tokens // 2))
    leader.kill()
    world.conn.execute("update stage_clocks set beat_at = beat_at - interval '10 s' where stage = 'ingestion'")

    assert live() == 0
    assert world.conn.execute("select count(*) > 0 from live_books where verified").fetchone() == (True,)


@pytest.mark.parametrize("defers", [False, True])
def test_a_killed_leader_is_replaced_and_nothing_is_lost_or_doubled(world, defers):
    leader = world.process()
    wait_until(lambda: world.leader() == leader.run_id)
    standby = world.feed(live_standby_defers=defers)
    wait_until(lambda: world.ready(standby))
    began = world.caught_up(MARGIN_MS)  # the leader has committed what the standby need not have received
    world.wait_until_sent(began, more_than=10)

    wait_until(lambda: world.ready(standby))
    leader.kill()
    wait_until(lambda: world.leader() == standby.run_id)
    world.wait_until_sent(now_ms(), more_than=10)

    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert world.gaps() == []


@pytest.mark.parametrize("ahead_s", [5.0, -5.0])
def test_a_leader_whose_clock_is_wrong_is_replaced_and_nothing_is_lost_or_doubled(world, ahead_s):
    leader = world.process(clock_ahead_s=ahead_s)
    wait_until(lambda: world.leader() == leader.run_id)
    standby = world.feed()
    wait_until(lambda: world.ready(standby))
    began = world.caught_up(MARGIN_MS)
    world.wait_until_sent(began, more_than=10)

    wait_until(lambda: world.ready(standby))
    leader.kill()
    wait_until(lambda: world.leader() == standby.run_id)
    world.wait_until_sent(now_ms(), more_than=10)

    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert world.gaps() == []


def test_a_leader_whose_window_is_over_leaves_to_a_ready_successor(world, monkeypatch):
    monkeypatch.setattr(session, "MAX_OVERSTAY_WINDOWS", 100.0)  # it leaves to the other, however long that one takes
    first = world.feed(window_s=2)
    wait_until(lambda: world.leader() == first.run_id)
    began = now_ms()
    time.sleep(2.5)
    assert world.leader() == first.run_id, "there is no successor yet"

    second = world.feed()
    wait_until(lambda: world.leader() == second.run_id)
    wait_until(lambda: first.over)

    world.wait_until_sent(began, more_than=MIN_COMPARED)
    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert world.gaps() == []
    assert world.conn.execute("select role from feed_leases where run_id = %s", [first.run_id]).fetchone() == ("gone",)


def test_a_silent_socket_is_found_and_what_it_missed_comes_from_the_standby(world):
    leader = world.feed()
    wait_until(lambda: world.leader() == leader.run_id)
    standby = world.feed()
    wait_until(lambda: world.ready(standby))
    began = world.caught_up(MARGIN_MS)  # the leader has committed what the standby need not have received
    world.wait_until_sent(began, more_than=10)

    world.fault(kind="silent", target="/ws/market#1")
    wait_until(lambda: len(world.gaps()) == 2 and all(gap[3] for gap in world.gaps()))
    wait_until(lambda: all(gap[4] for gap in world.gaps()))
    world.wait_until_sent(began, more_than=MIN_COMPARED)

    assert [gap[:3] for gap in world.gaps()] == [("books", None, "silent"), ("trades", None, "silent")]
    assert {gap[4] for gap in world.gaps()} == {f"run {standby.run_id}"}
    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert wait_until(world.leader) == leader.run_id


def test_a_disconnected_leader_hands_the_lead_to_a_connected_run(world, monkeypatch):
    monkeypatch.setattr(session, "MAX_DISCONNECTED_S", 1.0)
    disconnected = world.feed()
    wait_until(lambda: world.leader() == disconnected.run_id)
    connected = world.feed()
    wait_until(lambda: world.ready(connected))
    began = world.caught_up(MARGIN_MS)
    world.wait_until_sent(began, more_than=10)

    world.fault(kind="refuse")
    world.fault(kind="close", target="/ws/market#1")
    wait_until(lambda: world.leader() == connected.run_id)
    world.wait_until_sent(began, more_than=MIN_COMPARED)

    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert {gap[4] for gap in world.gaps()} == {f"run {connected.run_id}"}
    assert not disconnected.over


def test_trades_that_nobody_received_come_from_the_exchange_afterwards(world):
    feed = world.feed(settle_s=1)
    wait_until(lambda: world.leader() == feed.run_id)
    began = now_ms()
    world.fault(kind="refuse")
    world.fault(kind="close", status=1001)
    wait_until(lambda: len(world.gaps()) == 2)
    world.wait_until_sent(now_ms(), more_than=10)
    world.end_faults()
    wait_until(lambda: world.filled("trades") == {"data_api"})
    world.wait_until_sent(began, more_than=MIN_COMPARED_BY_HASH)
    until = world.caught_up()

    assert world.gaps() == [("books", None, "closed", True, None), ("trades", None, "closed", True, "data_api")]
    missing, doubled = world.differences_by_hash(began, until)
    assert (missing, doubled) == ({}, {})


def test_a_restart_after_a_pause_says_what_is_missing_and_fetches_the_trades(world):
    first = world.feed(settle_s=1)
    wait_until(lambda: world.leader() == first.run_id)
    began = now_ms()
    world.wait_until_sent(began, more_than=10)
    first.stop()
    world.wait_until_sent(now_ms(), more_than=10)
    second = world.feed(settle_s=1)
    wait_until(lambda: world.filled("trades") == {"data_api"})
    world.wait_until_sent(began, more_than=MIN_COMPARED_BY_HASH)
    until = world.caught_up()

    assert world.gaps()[0] == ("books", None, "no feed running", True, None)
    assert world.differences_by_hash(began, until) == ({}, {})
    assert second.stop()["mismatches"] == 0


def test_books_that_disagree_are_not_shown_and_are_verified_again(world):
    feed = world.feed()
    wait_until(lambda: world.conn.execute("select count(*) > 20 from live_books where verified").fetchone()[0])
    unverified = "select count(*) from live_books where not verified"
    world.fault(kind="drop", probability=0.3)
    world.fault(kind="duplicate", probability=0.5)
    wait_until(lambda: world.conn.execute(unverified).fetchone() != (0,))
    wait_until(lambda: any(figures["reanchored"] and figures["repeats"] for figures in feed.observations))
    world.end_faults()
    wait_until(lambda: world.conn.execute(unverified).fetchone() == (0,))
    world.caught_up()

    totals = feed.stop()
    assert totals["mismatches"] > 0
    assert totals["reanchored"] > 0
    assert ("books", "mismatch") in {(gap[0], gap[2]) for gap in world.gaps()}
    assert totals["repeats"] > 0


@pytest.fixture
def early_listing(monkeypatch):
    monkeypatch.setattr(simulation, "FIRST_LISTING_MS", 5_000)
    monkeypatch.setattr(session, "FIGURES_S", 0.2)
    monkeypatch.setattr(committer, "BEGINNING_MS", 0)  # recording counts at once, before the listing


def test_new_markets_are_followed_at_once_and_no_trade_of_theirs_is_missing(early_listing, world):
    known = world.conn.execute("select max(market_key) from markets").fetchone()
    feed = world.feed(settle_s=1)
    began = world.recording_began()

    fresh = "select distinct market_key from trades where market_key > %s"
    wait_until(lambda: world.conn.execute(fresh, known).fetchone() is not None)
    world.wait_until_sent(began, more_than=MIN_COMPARED_BY_HASH)
    until = world.caught_up()
    wait_until(lambda: not world.differences_by_hash(began, until)[0])  # what was traded before we listened is fetched

    assert world.differences_by_hash(began, until) == ({}, {})
    assert feed.stop()["unknown_tokens"] == 0


def test_while_the_database_is_away_everything_is_kept(world):
    leader, standby = world.feed(), world.feed()
    wait_until(lambda: world.leader() and world.ready(leader) and world.ready(standby))
    began = world.caught_up(MARGIN_MS)
    world.wait_until_sent(began, more_than=10)

    with world.database_unavailable():
        world.wait_until_sent(now_ms(), more_than=10)
    wait_until(world.leader)
    world.wait_until_sent(began, more_than=MIN_COMPARED)

    assert world.differences(began, world.caught_up()) == NO_DIFFERENCES
    assert world.gaps() == []


def stage(world):
    return world.conn.execute(
        "select status, detail ->> 'reason', (detail ->> 'since')::bigint, beat_at is not null"
        " from pipeline_status where stage = 'ingestion'"
    ).fetchone()


def test_a_feed_that_follows_no_market_is_not_fresh_and_says_why(world):
    world.conn.execute("update markets set order_book = false")
    began_s = int(time.time())
    feed = world.feed()
    wait_until(lambda: stage(world)[3])

    status, reason, since, _ = stage(world)
    assert (status, reason) == ("missing", "follows no market")
    assert began_s <= since <= time.time()
    feed.stop()


def test_a_feed_that_cannot_reach_the_socket_says_so_until_it_can(world):
    world.fault(kind="refuse", for_s=600)
    feed = world.feed()
    wait_until(lambda: (stage(world)[1] or "").startswith("cannot "))

    status, reason, since, _ = stage(world)
    assert status == "missing"
    assert reason.startswith(f"cannot read 127.0.0.1:{world.sandbox.port}: cannot be opened")
    assert stage(world)[2] == since
    world.end_faults()
    wait_until(lambda: stage(world)[1] is None)
    feed.stop()


def test_a_feed_whose_commits_are_late_says_by_how_much_and_at_which_rate_until_they_are_not(world, monkeypatch):
    monkeypatch.setattr(session, "FIGURES_S", 1.0)
    monkeypatch.setattr(figures, "BEHIND_MS", 1)  # as each commit is
    began_s = int(time.time())
    feed = world.feed()
    _, reason, since, _ = wait_until(lambda: (found := stage(world))[1] and " behind, " in found[1] and found)

    assert re.fullmatch(r"\d+ s behind, at [\d,]+ messages a second", reason)
    assert began_s <= since <= time.time()
    monkeypatch.setattr(figures, "BEHIND_MS", 600_000)
    wait_until(lambda: stage(world)[1] is None)
    feed.stop()
