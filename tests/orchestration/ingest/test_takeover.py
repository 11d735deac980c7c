"""Who takes the lead, and what a new leader records as missed."""

import asyncio
import datetime as dt
import json
from time import monotonic

import pytest

from orchestration.feeds.lease import ALIVE_S, read_leases
from orchestration.ingest.committer import BEGINNING, BEGINNING_MS, MARGIN_MS, MAX_BEAT_PAUSE_S
from orchestration.ingest.storage.rows import WriteBatch
from orchestration.ingest.storage.writer import Writer
from tests.factories import insert
from tests.orchestration.ingest.builders import NOW, book, save, token, trades
from tests.orchestration.ingest.committer_world import YES, make_committer, tick


def add_former_leader(conn, written_ms, *, ago):
    """Insert the lease of a former leader that committed up to an instant."""
    row = {
        "run_id": "gone",
        "feed": "polymarket",
        "role": "leader",
        "ready": True,
        "detail": {"written_ms": written_ms},
    }
    instants = dict.fromkeys(["started_at", "beat_at", "window_ends_at"], dt.datetime.now(dt.UTC) - ago)
    insert(conn, "feed_leases", {**row, **instants, "pid": 1, "host": "here"})


def test_after_a_day_without_a_feed_the_gap_begins_where_the_last_leader_ended(leader, conn):
    ended_ms = NOW - 25 * 3_600_000
    add_former_leader(conn, ended_ms, ago=dt.timedelta(hours=25))
    Writer(conn).write(WriteBatch(trades=trades(1, YES, ts_ms=NOW - 3_600_000)), fill=True)  # by reconciliation
    committer, _, _, losses = make_committer(leader)
    committer.leases = []
    tick(committer)

    assert [(loss.cause, loss.from_ms, loss.market_keys) for loss in losses.all] == [
        ("no feed running", ended_ms - MARGIN_MS, None)
    ]


@pytest.mark.parametrize(("newest", "gaps"), [(7, []), (8, [{8}])])
def test_a_market_whose_start_no_leader_has_seen_to_is_no_loss_of_the_new_leader(leader, conn, newest, gaps):
    conn.execute(
        "insert into settings (name, value)"
        " values ('followed', jsonb_build_object('market_key', %s::int, 'change_id', 0))",
        [newest],
    )
    add_former_leader(conn, NOW + 2_000 + MARGIN_MS, ago=dt.timedelta(seconds=20))
    begun = set()
    committer, normalizer, _, losses = make_committer(leader, begun=begun)
    normalizer.apply([book(YES, [(400_000, 1)], [])])  # a second after NOW
    normalizer.follow(token(8, 0))  # listed while nobody led: its book has not come yet
    committer.leases = []
    tick(committer)

    assert committer.leading
    assert [loss.market_keys for loss in losses.all] == gaps
    assert begun == ({8} if newest < 8 else set())
    committer.exchange_ms = NOW + 60_000
    losses.all.clear()
    assert committer.committed_ms() == (NOW + 2_000 if newest < 8 else NOW + 60_000), "its start is in no gap yet"


@pytest.mark.parametrize(("after_s", "missing"), [(1, []), (9, [{8}])])
def test_a_market_whose_listing_was_heard_misses_what_came_between_the_last_commit_and_its_first_book(
    leader, conn, after_s, missing
):
    seen = json.dumps({"market_key": 8, "change_id": 0})
    conn.execute("insert into settings (name, value) values ('followed', %s::jsonb)", [seen])
    add_former_leader(conn, NOW + 1_000 + MARGIN_MS, ago=dt.timedelta(seconds=20))
    now = [NOW / 1000]
    committer, normalizer, _, losses = make_committer(leader, clock=lambda: now[0])
    normalizer.exchange.local_ms = lambda: int(now[0] * 1000)
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    normalizer.follow(token(8, 0), listed_ms=NOW)
    now[0] += after_s  # later: the leader has committed what it had received from the listing on, and no more
    normalizer.apply([book(token(8, 0), [(400_000, 1)], [], ts_ms=NOW + 1_000 * after_s)])
    committer.leases = []
    tick(committer)

    assert [loss.market_keys for loss in losses.all] == missing


@pytest.mark.parametrize("paused", [True, False])
def test_a_run_is_in_touch_with_the_database_since_its_heartbeats_last_paused(leader, monkeypatch, paused):
    committer, *_ = make_committer(leader)
    for at in (100.0, 101.0, 101.0 + MAX_BEAT_PAUSE_S + paused):
        monkeypatch.setattr("orchestration.ingest.committer.monotonic", lambda at=at: at)
        committer.heard([], at)

    assert committer.in_touch_s == (0.0 if paused else 1.0 + MAX_BEAT_PAUSE_S)


@pytest.mark.parametrize(
    ("role", "ready", "leads"),
    [
        ("leader", True, False),
        ("leader", False, False),
        ("standby", True, False),
        ("standby", False, True),
        ("gone", True, True),
    ],
)
def test_a_run_without_every_book_waits_for_those_that_were_silent_while_the_database_was_away(
    leader, conn, role, ready, leads
):
    add_former_leader(conn, NOW, ago=dt.timedelta(seconds=20))
    conn.execute("update feed_leases set role = %s, ready = %s", [role, ready])
    committer, *_ = make_committer(leader)
    now, leases = monotonic(), read_leases(conn, "polymarket")
    committer.heard(leases, now)
    asyncio.run(committer.tick(ready=False))
    assert committer.leading == leads
    if not leads:
        for second in range(1, 1 + int(ALIVE_S)):
            assert not committer.leading
            committer._heard_at = now + second - 1
            committer.heard(leases, now + second)
            asyncio.run(committer.tick(ready=False))
        assert committer.leading, "they have had the time to say that they are alive"


def test_a_run_with_every_book_does_not_wait(leader, conn):
    add_former_leader(conn, NOW, ago=dt.timedelta(seconds=20))
    committer, *_ = make_committer(leader)
    committer.heard(read_leases(conn, "polymarket"), monotonic())
    tick(committer)

    assert committer.leading


@pytest.mark.parametrize("another", [False, True])
def test_progress_that_waits_for_starts_waits_in_the_next_lead_too_unless_another_run_has_led_between(
    leader, conn, another
):
    add_former_leader(conn, NOW + 2_000, ago=dt.timedelta(seconds=20))
    begun = set()
    committer, *_ = make_committer(leader, begun=begun)
    committer.leases, committer.unseen_ms = [], None
    tick(committer)
    begun.add(9)
    committer.unseen_ms, committer.exchange_ms = NOW + 2_000, NOW + 60_000
    committer._losses.all.clear()
    committer.lose_lead()
    if another:
        detail = json.dumps({"written_ms": NOW + 50_000, "led_ms": committer.led_ms + 1})
        conn.execute("update feed_leases set detail = %s::jsonb", [detail])
    committer._retry_at = 0.0
    tick(committer)

    assert committer.leading
    assert committer.unseen_ms == (None if another else NOW + 2_000)
    assert begun == (set() if another else {9})


def test_leases_that_are_forgotten_leave_the_progress_to_the_stage(leader, conn):
    conn.execute(
        "update stage_clocks set detail = jsonb_build_object('written_ms', %s::bigint) where stage = 'ingestion'", [NOW]
    )
    committer, _, _, losses = make_committer(leader)
    committer.leases = []
    tick(committer)

    assert [loss.from_ms for loss in losses.all] == [NOW - MARGIN_MS]


def test_trades_from_before_any_feed_ran_make_no_gap_of_the_time_since(leader, conn):
    Writer(conn).write(WriteBatch(trades=trades(1, YES, ts_ms=NOW - 86_400_000)), fill=True)
    committer, normalizer, _, losses = make_committer(leader)
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    committer.leases = []
    tick(committer)

    assert (committer.leading, losses.all) == (True, [])


def test_books_not_synced_when_recording_begins_are_a_gap_from_then_on(leader, conn):
    committer, _, _, losses = make_committer(leader)
    committer.leases = []
    tick(committer)
    (loss,) = losses.all
    save(losses, conn, loss.from_ms + BEGINNING_MS - 1)
    assert not loss.gap_ids, "they may be synced within moments, before recording counts"

    save(losses, conn, loss.from_ms + BEGINNING_MS)
    assert conn.execute("select count(*), min(cause) from coverage_gaps").fetchone() == (2, BEGINNING)


def test_books_synced_before_recording_counts_leave_no_gap(leader, conn):
    committer, _, _, losses = make_committer(leader)
    committer.leases = []
    tick(committer)
    losses.all[0].to_ms = losses.all[0].from_ms + 1_000
    save(losses, conn)

    assert losses.all == []
    assert conn.execute("select count(*) from coverage_gaps").fetchone() == (0,)
