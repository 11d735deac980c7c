from hypothesis import assume, given
from hypothesis import strategies as st

from orchestration.ingest.books.order_book import OrderBook

prices = st.integers(1, 30).map(lambda tick: tick * 10_000)
sizes = st.integers(0, 5).map(lambda lots: lots * 1_000_000)
changes = st.tuples(st.sampled_from([1, -1]), prices, sizes)
sides = st.dictionaries(prices, st.integers(1, 9), max_size=8)


class NaiveBook:
    """A reference order book, implemented in the simplest way."""

    def __init__(self, bids, asks):
        self.sides = {1: dict(bids), -1: dict(asks)}

    def change(self, side, price, size):
        self.sides[side][price] = size
        self.sides[side] = {at: left for at, left in self.sides[side].items() if left}

    def best(self):
        return max(self.sides[1], default=None), min(self.sides[-1], default=None)


@given(bids=sides, asks=sides, given_changes=st.lists(changes, max_size=40))
def test_a_book_is_what_its_snapshot_and_every_change_since_make_it(bids, asks, given_changes):
    assume(max(bids, default=0) < min(asks, default=1_000_000))
    book, naive = OrderBook(), NaiveBook(bids, asks)
    book.snapshot(list(bids.items()), list(asks.items()), ts_ms=1)

    for nth, (side, price, size) in enumerate(given_changes):
        book.change(side, price, size, ts_ms=2 + nth)
        naive.change(side, price, size)

        assert (book.best_bid, book.best_ask) == naive.best()
        assert (book.bid_size, book.ask_size) == (naive.sides[1].get(book.best_bid), naive.sides[-1].get(book.best_ask))
    assert (book.bids, book.asks) == (naive.sides[1], naive.sides[-1])
    assert book.depth == sum(price * size for side in naive.sides.values() for price, size in side.items())
    assert book.arrays() == (
        sorted(naive.sides[1], reverse=True),
        [naive.sides[1][price] for price in sorted(naive.sides[1], reverse=True)],
        sorted(naive.sides[-1]),
        [naive.sides[-1][price] for price in sorted(naive.sides[-1])],
    )


def test_a_crossed_snapshot_is_not_verified_and_the_next_right_one_is():
    book = OrderBook()

    book.snapshot([(500_000, 1)], [(500_000, 1)], ts_ms=1)
    assert book.state == "broken"

    book.snapshot([(490_000, 1)], [(500_000, 1)], ts_ms=2)
    assert book.state == "verified"


@given(bids=sides, asks=sides, early=st.lists(changes, max_size=10), late=st.lists(changes, max_size=10))
def test_a_snapshot_from_rest_may_be_behind_the_changes_that_waited_for_it(bids, asks, early, late):
    book, naive = OrderBook(), NaiveBook(bids, asks)

    for side, price, size in early:
        book.change(side, price, size, ts_ms=5)  # the snapshot has these already
    for side, price, size in late:
        book.change(side, price, size, ts_ms=11)
        naive.change(side, price, size)
    book.snapshot(list(bids.items()), list(asks.items()), ts_ms=10)

    assert (book.bids, book.asks) == (naive.sides[1], naive.sides[-1])


def anchored():
    book = OrderBook()
    book.snapshot([(400_000, 7), (390_000, 1)], [(420_000, 5)], ts_ms=10)
    return book


def test_a_book_that_agrees_with_the_exchange_stays_verified():
    assert anchored().verify(400_000, 420_000)
    assert anchored().verify(None, None)


def test_a_book_that_disagrees_is_broken_until_the_next_snapshot():
    book = anchored()

    assert not book.verify(410_000, 420_000)
    assert book.state == "broken"
    book.snapshot([(410_000, 7)], [(420_000, 5)], ts_ms=12)
    assert book.verify(410_000, 420_000)


def test_a_crossed_book_is_broken_even_if_the_exchange_says_nothing():
    book = anchored()
    book.change(1, 430_000, 5, ts_ms=11)

    assert not book.verify(None, None)


def test_an_empty_side_is_reported_as_zero_or_one():
    book = OrderBook()
    book.snapshot([], [], ts_ms=1)

    assert book.verify(0, 1_000_000)
    assert book.verify(0, 0)


def test_a_change_that_was_overtaken_does_not_undo_the_newer_one():
    book = anchored()
    book.change(1, 390_000, 50, ts_ms=20)
    book.change(1, 390_000, 40, ts_ms=15)
    book.change(1, 380_000, 30, ts_ms=15)  # another level, nothing newer known of it

    assert book.bids == {400_000: 7, 390_000: 50, 380_000: 30}


def test_a_snapshot_older_than_a_verified_book_is_left_out():
    book = anchored()
    book.change(1, 395_000, 5, ts_ms=20)

    assert not book.snapshot([(400_000, 7)], [(420_000, 5)], ts_ms=15)
    assert 395_000 in book.bids


def test_a_snapshot_returns_whether_it_changed_anything():
    book = anchored()

    assert not book.snapshot([(400_000, 7), (390_000, 1)], [(420_000, 5)], ts_ms=11)
    assert book.snapshot([(400_000, 8), (390_000, 1)], [(420_000, 5)], ts_ms=12)
