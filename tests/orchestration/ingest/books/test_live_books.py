"""A live book is written now and then; what readers get from it and from the stored changes is the feed's own book."""

import asyncio
import random
import time

import pytest

from orchestration.ingest.books.live_books import MAX_BOOKS_PER_COMMIT, MAX_UNWRITTEN_CHANGES, LiveBookQueue
from orchestration.ingest.storage.leader import LeaderConnection
from tests.orchestration.ingest.builders import NOW, book, change, make_normalizer, token
from tests.orchestration.ingest.committer_world import make_committer

YES = token(7, 0)
LEVELS = range(300_000, 700_000, 10_000)


@pytest.fixture
def start():
    """When the test begins, in ms: readers do not look for older changes."""
    return int(time.time() * 1000) // 1000 * 1000


@pytest.fixture
def clock(start):
    """The time, in ms, in a list of one."""
    return [start + 1000]


@pytest.fixture
def committer(database_url, clock):
    leader = LeaderConnection(database_url, "polymarket")
    committer, *_ = make_committer(leader, clock=lambda: clock[0] / 1000)
    committer.leases = []
    yield committer
    leader.resign()


def tick(committer):
    asyncio.run(committer.tick(ready=True))


def served(conn):
    """Return the book as readers get it."""
    return conn.execute(
        "select bid_prices, bid_sizes, ask_prices, ask_sizes, seq, as_ms(ts), encode(hash, 'hex'), verified"
        " from book_current where market_key = %s and outcome = %s",
        [YES.market_key, YES.outcome],
    ).fetchone()


def held(committer):
    """Return the feed's own book, in the same form."""
    state = committer._normalizer.states[YES.token_id]
    return (*state.book.arrays(), state.seq, state.book.ts_ms, state.book.hash, state.book.state == "verified")


def written(conn):
    return conn.execute("select seq from live_books").fetchone()[0]


def test_readers_get_the_changes_since_the_book_was_written(committer, conn, start):
    committer._normalizer.apply([book(YES, [(400_000, 1_000_000)], [(420_000, 2_000_000)], start, hash_="aa")])
    tick(committer)
    tick(committer)
    first = written(conn)
    committer._normalizer.apply([change(YES, 1, 390_000, 5, 400_000, 420_000, start + 1, "bb")])
    committer._normalizer.apply([change(YES, -1, 420_000, 0, 400_000, 1_000_000, start + 2, "cc")])
    tick(committer)

    assert written(conn) == first
    assert served(conn) == held(committer)
    assert served(conn)[:4] == ([400_000, 390_000], [1_000_000, 5], [], [])


@pytest.mark.parametrize("seed", range(8))
def test_readers_get_the_feeds_own_book_after_any_changes_late_ones_and_snapshots(committer, conn, clock, start, seed):
    dice = random.Random(seed)
    normalizer = committer._normalizer
    normalizer.apply([book(YES, [(400_000, 1_000_000)], [(420_000, 2_000_000)], start, hash_="aa")])
    tick(committer)
    tick(committer)
    ts_ms = start
    for _ in range(40):
        for _ in range(dice.randrange(1, 12)):
            ts_ms += dice.randrange(0, 400)
            clock[0] = ts_ms + 1000
            late_ms = dice.choice([0, 0, 0, dice.randrange(0, 3000)])
            ours = normalizer.states[YES.token_id].book
            price, size = dice.choice(LEVELS), dice.choice([0, dice.randrange(1, 10**9)])
            side = 1 if price < (ours.best_ask or 1_000_000) and dice.random() < 0.5 else -1
            if side < 0 and price <= (ours.best_bid or 0):
                side = 1
            hash_ = f"{dice.getrandbits(32):08x}"
            if dice.random() < 0.04:
                bids = [(at, 7) for at in LEVELS if at < 500_000 and dice.random() < 0.5]
                asks = [(at, 7) for at in LEVELS if at > 500_000 and dice.random() < 0.5]
                normalizer.apply([book(YES, bids, asks, ts_ms, hash_=hash_)])
            else:
                normalizer.apply([change(YES, side, price, size, ts_ms=ts_ms - late_ms, hash_=hash_)])
        tick(committer)
        state = normalizer.states[YES.token_id]
        if state.book.state == "verified":
            *levels, seq, ts = served(conn)[:6]
            assert (levels, ts) == ([*held(committer)[:4]], state.book.ts_ms), seed
            assert start << 20 <= seq <= state.seq  # one that came too late to change anything has the latest number
        else:
            assert served(conn)[-1] is False


def test_a_book_is_written_after_many_changes_or_some_time_and_not_before():
    normalizer = make_normalizer(YES)
    normalizer.apply([book(YES, [(400_000, 1_000_000)], [(420_000, 2_000_000)], NOW)])
    queue = normalizer.live_books
    assert [row.token for row in queue.take(0).books] == [YES]

    for nth in range(MAX_UNWRITTEN_CHANGES):
        assert queue.take(0).books == []
        normalizer.apply([change(YES, 1, 390_000, 1 + nth, ts_ms=NOW + nth)])
    assert [row.token for row in queue.take(0).books] == [YES]

    normalizer.apply([change(YES, 1, 390_000, 9, ts_ms=NOW + 1000)])
    changed_ms = normalizer.states[YES.token_id].unwritten_since_ms
    assert queue.take(changed_ms - 1).books == []
    assert [row.token for row in queue.take(changed_ms).books] == [YES]
    assert queue.take(changed_ms + 10**6).books == []


def test_a_book_is_not_written_before_all_that_it_was_built_from():
    normalizer = make_normalizer(YES)
    normalizer.apply([book(YES, [(400_000, 1_000_000)], [(420_000, 2_000_000)], NOW)])

    assert normalizer.live_books.take(0, books=False).books == []
    assert [row.token for row in normalizer.live_books.take(0).books] == [YES]


def test_a_commit_takes_a_bounded_number_of_books():
    tokens = [token(nth, 0) for nth in range(MAX_BOOKS_PER_COMMIT + 5)]
    normalizer = make_normalizer(*tokens)
    for each in tokens:
        normalizer.apply([book(each, [(400_000, 1_000_000)], [(420_000, 2_000_000)], NOW)])

    taken = [len(normalizer.live_books.take(0).books) for _ in range(3)]
    assert taken == [MAX_BOOKS_PER_COMMIT, 5, 0]


def test_what_a_former_leader_has_written_is_not_written_again():
    normalizer = make_normalizer(YES)
    normalizer.apply([book(YES, [(400_000, 1_000_000)], [(420_000, 2_000_000)], NOW)])
    state, queue = normalizer.states[YES.token_id], normalizer.live_books
    assert isinstance(queue, LiveBookQueue)
    normalizer.apply([change(YES, 1, 390_000, 9, ts_ms=NOW + 1000)])

    queue.take_over(state, shown_verified=True, unwritten_after_ms=NOW + 2000)
    assert queue.take(1 << 62).books == []

    normalizer.apply([change(YES, 1, 390_000, 8, ts_ms=NOW + 3000)])
    queue.take_over(state, shown_verified=True, unwritten_after_ms=NOW + 2000)
    assert [row.seq for row in queue.take(1 << 62).books] == [state.seq]
    queue.take_over(state, shown_verified=False, unwritten_after_ms=NOW + 9000)
    assert [row.token for row in queue.take(0).books] == [YES]


def test_a_book_that_came_whole_or_whose_commit_failed_is_written_on_takeover():
    normalizer = make_normalizer(YES)
    normalizer.apply([book(YES, [(400_000, 1_000_000)], [(420_000, 2_000_000)], NOW)])
    state, queue = normalizer.states[YES.token_id], normalizer.live_books

    queue.take_over(state, shown_verified=True, unwritten_after_ms=NOW - 1)
    assert [row.token for row in queue.take(0).books] == [YES]
    queue.take_over(state, shown_verified=True, unwritten_after_ms=NOW - 1)  # the commit has failed
    assert [row.token for row in queue.take(0).books] == [YES]
    queue.take_over(state, shown_verified=True, unwritten_after_ms=NOW + 1)
    assert queue.take(0).books == []
