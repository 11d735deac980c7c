"""What a committer writes, keeps and announces."""

import asyncio
import contextlib
from contextlib import contextmanager

import msgspec
import psycopg
import pytest

from orchestration.feeds.lease import FeedLease
from orchestration.feeds.lease import progress as progress_of
from orchestration.feeds.shards import Shard
from orchestration.ingest.committer import MARGIN_MS, Committer
from orchestration.ingest.gaps.losses import Loss
from orchestration.ingest.housekeeping import Housekeeping
from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import BATCH_BYTES, CHANGE_BYTES, WriteBatch
from sql.roles.rights import PIPELINE
from tests.orchestration.ingest.builders import NOW, book, change, save, trades
from tests.orchestration.ingest.committer_world import YES, make_committer, tick
from tests.patience import until
from tests.roles import login_url


def test_a_row_that_cannot_be_stored_goes_to_quarantine_and_the_others_are_stored(leader, conn):
    rows = trades(9, YES)
    rows[4] = msgspec.structs.replace(rows[4], size=1 << 70)
    assert leader.try_lead()

    written, refused = leader.write(WriteBatch(trades=rows), (), (), replay=False)

    assert (written.trades, refused) == (8, 1)
    assert conn.execute("select count(*) from trades").fetchone() == (8,)
    assert str(1 << 70) in conn.execute("select payload from quarantine").fetchone()[0]


def test_shards_lead_beside_each_other_and_never_beside_another_number_of_shards(database_url, leader):
    def connection(shard):
        return closing(LeaderConnection(database_url, "polymarket", shard))

    with connection(Shard(1, 2)) as first, connection(Shard(2, 2)) as second, connection(Shard(2, 3)) as third:
        assert leader.try_lead()
        assert not first.try_lead()
        leader.resign()
        assert first.try_lead()
        assert second.try_lead()
        assert not leader.try_lead()
        assert not third.try_lead()
        first.resign()
        assert not leader.try_lead()
        second.resign()
        assert third.try_lead()


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


def test_the_database_says_whether_a_run_still_holds_the_lead(database_url, conn):
    database_url = login_url(database_url, PIPELINE)
    shard = Shard(1, 2)
    lease = FeedLease(database_url, shard.feed("polymarket"), "me", 60.0)
    housekeeping = Housekeeping(lease, "polymarket", shard, compare_s=60.0)
    with (
        closing(LeaderConnection(database_url, "polymarket", shard)) as first,
        closing(LeaderConnection(database_url, "polymarket", Shard(2, 2))) as second,
        contextlib.closing(lease),
    ):
        assert first.try_lead()
        assert second.try_lead()
        assert housekeeping.leads(first.pid)
        assert not housekeeping.leads(second.pid)

        conn.execute("select pg_terminate_backend(%s, 5000)", [first.pid])

        assert not first.broken  # it has not noticed
        assert not housekeeping.leads(first.pid)


def test_what_a_run_missed_while_it_did_not_lead_is_recorded_once_it_leads_again(leader, conn):
    committer, _, _, losses = make_committer(leader)
    committer.leases = []
    tick(committer)
    losses.add(Loss.of("silent", [YES], NOW))

    session = leader.pid
    committer.lose_lead()
    committer.stand_by(0)  # nobody else has committed anything
    until(lambda: tick(committer) or committer.leading)

    assert leader.pid != session
    losses.write(conn, losses.begin_saving(NOW + 1000))
    assert conn.execute(
        "select distinct cause from coverage_gaps where from_ts = to_timestamp(%s)", [NOW / 1000]
    ).fetchall() == [("silent",)]


def test_what_a_run_missed_while_another_led_is_not_recorded_once_it_leads_again(leader, conn, database_url):
    committer, normalizer, _, losses = make_committer(leader, clock=lambda: NOW / 1000 + 60)
    committer.leases = []
    tick(committer)
    losses.all.clear()  # that no book stood yet
    losses.add(Loss.of("silent", [YES], NOW, NOW + 9_000))
    losses.add(Loss.of("closed", [YES], NOW, NOW + 60_000))
    committer.lose_lead()
    other = FeedLease(database_url, "polymarket", "other", 600.0)
    progress = {"written_ms": NOW + 20_000, "led_ms": committer.led_ms + 1}
    committer.leases = other.touch("leader", progress, ready=True)
    other.close()
    normalizer.apply([book(YES, [(400_000, 1)], [])])

    until(lambda: tick(committer) or committer.leading)

    began_ms = NOW + 20_000 - MARGIN_MS
    assert {loss.cause: loss.from_ms for loss in losses.all} == {
        "closed": began_ms,
        "taken over before every book stood": began_ms,
    }


@contextmanager
def closing(leader):
    try:
        yield leader
    finally:
        leader.resign()


def test_a_standby_writes_nothing_and_keeps_everything(leader, conn):
    committer, normalizer, backlog, _ = make_committer(leader)
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer, may_lead=False)

    assert backlog.events == 1
    assert conn.execute("select count(*) from book_events").fetchone() == (0,)


def test_a_new_leader_writes_what_it_kept(leader, conn):
    committer, normalizer, backlog, _ = make_committer(leader)
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer, may_lead=False)
    committer.leases = []
    tick(committer)
    tick(committer)

    assert committer.leading
    assert backlog.events == 0
    assert conn.execute("select bid_prices, verified from live_books").fetchall() == [([400_000], True)]


def test_a_new_leader_goes_on_from_what_the_last_lease_says_now_not_from_what_it_said_when_it_was_read(
    leader, database_url
):
    committer, normalizer, _, losses = make_committer(leader)
    last = FeedLease(database_url, "polymarket", "the last leader", 600.0)
    committer.leases = last.touch("leader", {"written_ms": NOW - 5000}, ready=True)
    normalizer.apply([book(YES, [(400_000, 1)], [])])  # a second after NOW
    last.touch("leader", {"written_ms": NOW + 5000}, ready=True)
    last.close()
    tick(committer)

    assert committer.leading
    assert losses.all == []


def test_what_does_not_fit_while_the_database_is_away_becomes_one_gap(leader):
    committer, normalizer, backlog, losses = make_committer(leader, capacity=10 * (BATCH_BYTES + CHANGE_BYTES))
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    for nth in range(30):
        normalizer.apply([change(YES, 1, 390_000, 1 + nth, ts_ms=NOW + nth)])
        tick(committer, may_lead=False)

    assert backlog.events == 10
    assert [(loss.cause, loss.from_ms, loss.to_ms, loss.token_ids) for loss in losses.all] == [
        ("database away", NOW, NOW + 19, None)
    ]


def test_a_live_book_is_written_a_few_times_a_second_at_most_unless_it_is_wrong(leader, conn):
    committer, normalizer, _, _ = make_committer(leader)
    committer.leases = []
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)
    tick(committer)
    normalizer.apply([change(YES, 1, 390_000, 5, ts_ms=NOW + 1)])
    tick(committer)
    assert conn.execute("select bid_prices from live_books").fetchall() == [([400_000],)]

    normalizer.apply([change(YES, 1, 380_000, 5, 410_000, None, ts_ms=NOW + 2)])
    tick(committer)
    assert conn.execute("select verified from live_books").fetchall() == [(False,)]


def test_the_lead_is_lost_with_the_connection_and_nothing_is_written_without_it(leader, conn):
    committer, normalizer, backlog, _ = make_committer(leader)
    committer.leases = []
    tick(committer)
    assert committer.leading
    conn.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name like '%leader' and datname = current_database()"
    )
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)

    assert (committer.role, backlog.events) == ("standby", 1)
    assert committer.obstacle() == {}  # not this run's any more
    committer._retry_at = 0
    tick(committer)
    tick(committer)
    assert committer.leading
    assert backlog.events == 0
    assert conn.execute("select count(*) from book_events").fetchone() == (1,)


def test_progress_is_not_reported_beyond_a_loss_that_is_not_written(leader, conn):
    committer, normalizer, _, losses = make_committer(leader)
    committer.leases = []
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)
    normalizer.apply([change(YES, 1, 390_000, 1, ts_ms=NOW)])
    tick(committer)
    assert committer.committed_ms() >= NOW

    losses.extend("database away", NOW - 9_000, NOW - 5_000)
    saving = losses.begin_saving(NOW)
    assert committer.committed_ms() == NOW - 9_000
    losses.end_saving()  # as if the database had been lost again
    assert committer.committed_ms() == NOW - 9_000

    save(losses, conn)
    assert committer.committed_ms() >= NOW
    assert len(saving.new) == 1


async def announced():
    pass


@pytest.mark.parametrize("end", [Committer.drain, lambda committer: committer.step_down(announced)])
def test_a_run_that_ends_announces_no_more_than_its_slowest_socket_has_delivered(leader, conn, end):
    committer, normalizer, _, _ = make_committer(leader, sockets=(NOW - 7_000, NOW))
    committer.leases = []
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)
    normalizer.apply([change(YES, 1, 390_000, 1, ts_ms=NOW)])
    asyncio.run(end(committer))

    assert conn.execute("select count(*) from book_events where side is not null").fetchone() == (1,)
    assert committer.committed_ms() == NOW - 7_000


def test_a_run_that_was_asked_twice_to_step_down_keeps_what_it_receives_in_between(leader, conn):
    committer, normalizer, backlog, _ = make_committer(leader)
    committer.leases = []
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)
    asyncio.run(committer.step_down(announced))
    normalizer.apply([change(YES, 1, 390_000, 1, ts_ms=NOW)])
    asyncio.run(committer.step_down(announced))
    tick(committer, may_lead=False)

    assert (committer.role, backlog.events) == ("standby", 1)
    assert conn.execute("select count(*) from book_events where side is not null").fetchone() == (0,)


@pytest.mark.parametrize("ahead_s", [5, -5], ids=["ahead", "behind"])
def test_a_standby_takes_over_from_a_leader_whose_clock_is_wrong_without_losing_anything(
    leader, conn, database_url, ahead_s
):
    now, lease = [NOW / 1000], FeedLease(database_url, "polymarket", "first", 600.0)
    with closing(LeaderConnection(database_url, "polymarket")) as other:
        first, first_normalizer, _, _ = make_committer(other, clock=lambda: now[0] + ahead_s, run_id="first")
        second, second_normalizer, _, missed = make_committer(leader, clock=lambda: now[0])
        first.leases = []
        both = [(first, first_normalizer), (second, second_normalizer)]
        for nth in range(100):  # ten seconds, of which the first one is alive for eight
            now[0] += 0.1
            changes = [change(YES, 1, 390_000, 1 + nth, ts_ms=int(now[0] * 1000) - 50)]
            for committer, normalizer in both[nth >= 80 :]:
                normalizer.apply([book(YES, [(400_000, 1)], [], ts_ms=NOW)] if nth == 0 else changes)
                tick(committer, may_lead=committer is first)
            if nth == 79:
                other.resign()
            if nth < 80:
                progress = {"written_ms": first.committed_ms(), "led_ms": first.led_ms}
                second.leases = lease.touch("leader", progress, ready=True)
            second.stand_by(progress_of(second.leases, "me")[1])
        tick(second)
        tick(second)
    lease.close()

    assert second.leading
    assert conn.execute("select count(*) from book_events where side is not null").fetchone() == (99,)
    assert missed.all == []


def test_a_full_disk_is_reported_and_what_was_received_is_written_once_there_is_room(leader, conn):
    committer, normalizer, backlog, _ = make_committer(leader)
    committer.leases = []
    tick(committer)
    conn.execute(
        """create function full_disk() returns trigger language plpgsql as $$
        begin raise exception 'could not extend file: No space left on device' using errcode = 'disk_full'; end $$"""
    )
    conn.execute("create trigger full_disk before insert on book_events for each row execute function full_disk()")

    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)

    reason = committer.obstacle()["reason"]
    assert reason == "the database's disk is full; what is received waits in memory"
    assert (committer.leading, len(backlog)) == (True, 1)
    conn.execute("drop trigger full_disk on book_events")
    tick(committer)
    assert committer.obstacle() != {}  # it is tried again after a while
    committer._retry_at = 0
    tick(committer)
    assert committer.obstacle() == {}
    assert conn.execute("select count(*) from book_events").fetchone() == (1,)


def test_a_run_that_fails_while_it_takes_the_lead_says_why_and_leaves_it_to_others(
    database_url, leader, conn, monkeypatch, caplog
):
    committer, *_ = make_committer(leader)
    committer.leases = []

    def failing(*_):
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout")

    monkeypatch.setattr(leader, "progress", failing)
    tick(committer)

    assert (committer.leading, committer.taking_over, committer.faults) == (False, False, 1)
    committer._retry_at = 0
    tick(committer)
    assert committer.faults == 2
    assert [record.getMessage() for record in caplog.records] == [  # once, though it failed twice
        "cannot take the lead: canceling statement due to statement timeout"
    ]
    with closing(LeaderConnection(database_url, "polymarket")) as other:
        assert other.try_lead()


def test_a_ring_is_written_as_a_replay_together_with_what_is_new(leader, conn):
    """A trade of the ring may be stored already under the timestamp of the exchange's list."""
    committer, normalizer, backlog, _ = make_committer(leader)
    committer.leases = []
    (trade,) = trades(1, YES)
    listed = msgspec.structs.replace(trade, ts_ms=trade.ts_ms + 900)
    with closing(LeaderConnection(leader._url, "elsewhere")) as other:
        assert other.try_lead()
        assert other.write(WriteBatch(trades=[listed]), (), (), replay=False)[0].trades == 1
    backlog.add(WriteBatch(trades=[trade], received_ms=NOW))
    tick(committer)
    normalizer.apply([book(YES, [(400_000, 1)], [])])
    tick(committer)

    assert committer.leading
    assert len(backlog) == 0
    assert conn.execute("select count(*) from trades").fetchone() == (1,)
