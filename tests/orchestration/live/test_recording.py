import asyncio
from contextlib import contextmanager

import msgspec
import pytest

from orchestration.live.backlog import Backlog
from orchestration.live.leader import LeaderConnection
from orchestration.live.losses import Losses
from orchestration.live.recording import Recording
from orchestration.live.rows import Batch
from orchestration.live.writer import Writer
from tests.orchestration.live.making import NOW, book, change, token, tracker, trades

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


def recording(leader, *, capacity=1000):
    async def in_thread(call, *args, **named):
        return call(*args, **named)

    following, backlog, losses = tracker(YES), Backlog(capacity), Losses("me")
    made = Recording(
        following, backlog, losses, leader, NoHelp(), in_thread=in_thread, run_id="me", book_flush_s=60.0, ring_s=15
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


def test_what_does_not_fit_while_the_database_is_away_becomes_a_gap(leader):
    made, following, backlog, losses = recording(leader, capacity=10)
    following.take([book(YES, [(400_000, 1)], [])])
    for nth in range(30):
        following.take([change(YES, 1, 390_000, 1 + nth, ts_ms=NOW + nth)])
        tick(made, may_lead=False)

    assert backlog.events == 10
    assert [(loss.cause, loss.from_ms, loss.to_ms, loss.token_ids) for loss in losses.all][-1] == (
        "database away",
        NOW + 19,
        NOW + 19,
        None,
    )


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


def test_the_newest_event_is_looked_for_only_where_no_progress_is_known(monkeypatch, leader, conn):
    made, *_ = recording(leader)
    made.leases, asked = [], []
    monkeypatch.setattr(leader, "newest_ms", lambda: asked.append("once") or 0)

    tick(made)
    made.written_ms, made.role = NOW, "standby"
    tick(made)

    assert (made.role, asked) == ("leader", ["once"])


def test_the_newest_event_is_that_of_the_books_where_they_go_on_after_the_trades(leader, conn):
    assert leader.try_lead()
    conn.execute("truncate trades, book_events")
    assert leader.newest_ms() == 0
    writer, follower = Writer(conn), tracker(YES)
    writer.write(Batch(trades=trades(1, YES, ts_ms=NOW - 60_000)))
    assert leader.newest_ms() == NOW - 60_000

    follower.take([change(YES, 1, 410_000, 1, ts_ms=NOW - 5000)])
    writer.write(follower.cut())

    assert leader.newest_ms() == NOW - 5000
