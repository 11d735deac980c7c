import asyncio
import datetime as dt
import time
from contextlib import contextmanager

import msgspec
import pytest

from orchestration.feeds.lease import Lease
from orchestration.ingest.committer import BEGINNING, BEGINNING_MS, MARGIN_MS, Recording
from orchestration.ingest.gaps.losses import Losses
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import BATCH_BYTES, CHANGE_BYTES, Batch
from orchestration.ingest.storage.writer import Writer
from tests.factories import insert
from tests.orchestration.ingest.making import NOW, book, change, token, tracker, trades

YES = token(7, 0)


@pytest.fixture
def leader(database_url):
    leader = LeaderConnection(database_url, "polymarket")
    yield leader
    leader.resign()


class NoHelp:
    needed_since_ms = 1 << 62

    async def inherit(self, now_ms):
        pass


def recording(leader, *, capacity=1_000_000, clock=None, run_id="me"):
    async def in_thread(call, *args, **named):
        return call(*args, **named)

    following = tracker(YES) if clock is None else tracker(YES, clock=clock)
    backlog, losses = Backlog(capacity), Losses(run_id)
    made = Recording(
        following, backlog, losses, leader, NoHelp(), in_thread=in_thread, run_id=run_id, book_flush_s=60.0, ring_s=15
    )
    return made, following, backlog, losses


def tick(made, **how):
    asyncio.run(made.tick(ready=True, **how))


def test_a_row_that_cannot_be_stored_goes_to_quarantine_and_the_others_are_stored(leader, conn):
    rows = trades(9, YES)
    rows[4] = msgspec.structs.replace(rows[4], size=1 << 70)
    assert leader.try_lead()

    written, refused = leader.write(Batch(trades=rows), (), (), replay=False)

    assert (written.trades, refused) == (8, 1)
    assert conn.execute("select count(*) from trades").fetchone() == (8,)
    assert str(1 << 70) in conn.execute("select payload from quarantine").fetchone()[0]


def test_only_one_leads_until_it_resigns(database_url, leader):
    with (
        closing(LeaderConnection(database_url, "polymarket")) as other,
        closing(LeaderConnection(database_url, "elsewhere")) as elsewhere,
    ):
        assert leader.try_lead()
        assert not other.try_lead()
        assert elsewhere.try_lead()

        leader.resign()
        assert other.try_lead()


@contextmanager
def closing(leader):
    try:
        yield leader
    finally:
        leader.resign()


def test_a_standby_writes_nothing_and_keeps_everything(leader, conn):
    made, following, backlog, _ = recording(leader)
    following.take([book(YES, [(400_000, 1)], [])])
    tick(made, may_lead=False)

    assert backlog.events == 1
    assert conn.execute("select count(*) from book_events").fetchone() == (0,)


def test_a_new_leader_writes_what_it_kept(leader, conn):
    made, following, backlog, _ = recording(leader)
    following.take([book(YES, [(400_000, 1)], [])])
    tick(made, may_lead=False)
    made.leases = []
    tick(made)
    tick(made)

    assert made.leading
    assert backlog.events == 0
    assert conn.execute("select bid_prices, verified from live_books").fetchall() == [([400_000], True)]


def test_a_new_leader_goes_on_from_what_the_last_lease_says_now_not_from_what_it_said_when_it_was_read(
    leader, database_url
):
    made, following, _, losses = recording(leader)
    last = Lease(database_url, "polymarket", "the last leader", 600.0)
    made.leases = last.touch("leader", {"written_ms": NOW - 5000}, ready=True)
    following.take([book(YES, [(400_000, 1)], [])])  # a second after NOW
    last.touch("leader", {"written_ms": NOW + 5000}, ready=True)
    last.close()
    tick(made)

    assert made.leading
    assert losses.all == []


def test_what_does_not_fit_while_the_database_is_away_becomes_one_gap(leader):
    made, following, backlog, losses = recording(leader, capacity=10 * (BATCH_BYTES + CHANGE_BYTES))
    following.take([book(YES, [(400_000, 1)], [])])
    for nth in range(30):
        following.take([change(YES, 1, 390_000, 1 + nth, ts_ms=NOW + nth)])
        tick(made, may_lead=False)

    assert backlog.events == 10
    assert [(loss.cause, loss.from_ms, loss.to_ms, loss.token_ids) for loss in losses.all] == [
        ("database away", NOW, NOW + 19, None)
    ]


def test_a_live_book_is_written_a_few_times_a_second_at_most_unless_it_is_wrong(leader, conn):
    made, following, _, _ = recording(leader)
    made.leases = []
    following.take([book(YES, [(400_000, 1)], [])])
    tick(made)
    tick(made)
    following.take([change(YES, 1, 390_000, 5, ts_ms=NOW + 1)])
    tick(made)
    assert conn.execute("select bid_prices from live_books").fetchall() == [([400_000],)]

    following.take([change(YES, 1, 380_000, 5, 410_000, None, ts_ms=NOW + 2)])
    tick(made)
    assert conn.execute("select verified from live_books").fetchall() == [(False,)]


def test_the_lead_is_lost_with_the_connection_and_nothing_is_written_without_it(leader, conn):
    made, following, backlog, _ = recording(leader)
    made.leases = []
    tick(made)
    assert made.leading
    conn.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name like '%leader'")
    following.take([book(YES, [(400_000, 1)], [])])
    tick(made)

    assert (made.role, backlog.events) == ("standby", 1)
    made._retry_at = 0
    tick(made)
    tick(made)
    assert made.leading
    assert backlog.events == 0
    assert conn.execute("select count(*) from book_events").fetchone() == (1,)


def led(conn, written_ms, *, ago):
    """Have a run have led, and committed what it heard up to an instant, some time ago."""
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
    led(conn, ended_ms, ago=dt.timedelta(hours=25))
    Writer(conn).write(Batch(trades=trades(1, YES, ts_ms=NOW - 3_600_000)), fill=True)  # by reconciliation
    made, _, _, losses = recording(leader)
    made.leases = []
    tick(made)

    assert [(loss.cause, loss.from_ms, loss.market_keys) for loss in losses.all] == [
        ("no feed running", ended_ms - MARGIN_MS, None)
    ]


def test_leases_that_are_forgotten_leave_the_progress_to_the_stage(leader, conn):
    conn.execute(
        "update stage_clocks set detail = jsonb_build_object('written_ms', %s::bigint) where stage = 'ingestion'", [NOW]
    )
    made, _, _, losses = recording(leader)
    made.leases = []
    tick(made)

    assert [loss.from_ms for loss in losses.all] == [NOW - MARGIN_MS]


def test_trades_from_before_any_feed_ran_make_no_gap_of_the_time_since(leader, conn):
    Writer(conn).write(Batch(trades=trades(1, YES, ts_ms=NOW - 86_400_000)), fill=True)
    made, following, _, losses = recording(leader)
    following.take([book(YES, [(400_000, 1)], [])])
    made.leases = []
    tick(made)

    assert (made.leading, losses.all) == (True, [])


def test_books_that_do_not_stand_when_recording_begins_are_a_gap_from_then_on(leader, conn):
    made, _, _, losses = recording(leader)
    made.leases = []
    tick(made)
    (loss,) = losses.all
    loss.from_ms = int(time.time() * 1000)
    losses.save(conn)
    assert not loss.gap_ids, "they may stand within moments, before recording counts"

    loss.from_ms -= BEGINNING_MS
    losses.save(conn)
    assert conn.execute("select count(*), min(cause) from coverage_gaps").fetchone() == (2, BEGINNING)


def test_books_that_stand_before_recording_counts_leave_no_gap(leader, conn):
    made, _, _, losses = recording(leader)
    made.leases = []
    tick(made)
    losses.all[0].to_ms = losses.all[0].from_ms + 1_000
    losses.save(conn)

    assert losses.all == []
    assert conn.execute("select count(*) from coverage_gaps").fetchone() == (0,)


def test_progress_is_not_told_beyond_a_loss_that_is_not_written(leader, conn):
    made, following, _, losses = recording(leader)
    made.leases = []
    following.take([book(YES, [(400_000, 1)], [])])
    tick(made)
    following.take([change(YES, 1, 390_000, 1, ts_ms=NOW)])
    tick(made)
    assert made.committed_ms() >= NOW

    losses.extend("database away", NOW - 9_000, NOW - 5_000)
    saving = losses.begin_saving()
    assert made.committed_ms() == NOW - 9_000
    losses.end_saving()  # as if the database had been lost again
    assert made.committed_ms() == NOW - 9_000

    losses.save(conn)
    assert made.committed_ms() >= NOW
    assert len(saving.new) == 1


@pytest.mark.parametrize("ahead_s", [5, -5], ids=["ahead", "behind"])
def test_a_standby_takes_over_from_a_leader_whose_clock_is_wrong_without_losing_anything(
    leader, conn, database_url, ahead_s
):
    now, lease = [NOW / 1000], Lease(database_url, "polymarket", "first", 600.0)
    with closing(LeaderConnection(database_url, "polymarket")) as other:
        first, of_first, _, _ = recording(other, clock=lambda: now[0] + ahead_s, run_id="first")
        second, of_second, _, missed = recording(leader, clock=lambda: now[0])
        first.leases = []
        both = [(first, of_first), (second, of_second)]
        for nth in range(100):  # ten seconds, of which the first one is alive for eight
            now[0] += 0.1
            said = [change(YES, 1, 390_000, 1 + nth, ts_ms=int(now[0] * 1000) - 50)]
            for made, following in both[nth >= 80 :]:
                following.take([book(YES, [(400_000, 1)], [], ts_ms=NOW)] if nth == 0 else said)
                tick(made, may_lead=made is first)
            if nth == 79:
                other.resign()
            if nth < 80:
                progress = {"written_ms": first.committed_ms(), "led_ms": first.led_ms}
                second.leases = lease.touch("leader", progress, ready=True)
            second.stand_by()
        tick(second)
        tick(second)
    lease.close()

    assert second.leading
    assert conn.execute("select count(*) from book_events where side is not null").fetchone() == (99,)
    assert missed.all == []
