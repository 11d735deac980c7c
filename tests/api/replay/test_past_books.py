"""Past order books, compared with the live feed's books at the time."""

from __future__ import annotations

import datetime as dt

import hypothesis.strategies as st
import pytest
from hypothesis import given

from api.data.lookup import MarketRef
from api.replay.past_books import PastBooks
from orchestration.ingest.storage.writer import Writer
from orchestration.maintenance import anchors, packs
from sql import database
from tests.factories import insert
from tests.orchestration.ingest.builders import NOW, book, change, make_normalizer, token

BIDS, ASKS = [(400_000, 5_000_000), (390_000, 1_000_000)], [(420_000, 2_000_000)]
PRICES = [380_000, 390_000, 400_000, 410_000, 420_000, 430_000]


def instant(ms):
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


class Lived:
    """A market whose messages went through the live feed's normalizer and writer, and the books it had meanwhile."""

    def __init__(self, conn, market_key):
        self.conn, self.key = conn, market_key
        self.token = token(market_key, 0)
        self.normalizer = make_normalizer(self.token)
        self.writer = Writer(conn)
        self.had = {}  # instant in ms → bids, asks

    def hear(self, *messages, ms):
        self.normalizer.apply(messages)
        state = self.normalizer.states[self.token.token_id]
        self.had[ms] = (dict(state.book.bids), dict(state.book.asks))
        live = [state.live_book()] if state.book.state == "verified" else []
        self.writer.write(self.normalizer.cut_batch(), live)

    def anchor(self):
        return anchors.keep(self.conn)

    def pack(self, before_ms):
        """Pack what is older, as is done each day."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packs, "horizon", lambda _: instant(before_ms))
            return packs.bring_up_to_date(self.conn, instant(NOW))

    def at(self, ms):
        """Return the feed's book at an instant."""
        return self.had[max(known for known in self.had if known <= ms)]

    @property
    def past(self):
        def rows(query, **asked):
            return list(query(self.conn, **asked))

        return PastBooks(rows, MarketRef(self.key, self.token.market_id, ["Yes", "No"], [self.token.token_id, "2"]), 0)


def sides(levels):
    return {round(level.price * 1e6): round(level.size * 1e6) for level in levels}


@pytest.fixture
def lived(database_url, conn):
    return Lived(conn, 7)


def test_a_past_book_is_what_the_feed_had_at_that_moment(lived):
    lived.hear(book(lived.token, BIDS, ASKS, NOW, "ab" * 20), ms=NOW)
    lived.hear(change(lived.token, 1, 410_000, 3_000_000, 410_000, 420_000, NOW + 10, "cd" * 20), ms=NOW + 10)
    lived.hear(change(lived.token, 1, 400_000, 0, 410_000, 420_000, NOW + 20, "ef" * 20), ms=NOW + 20)

    found = lived.past.book(instant(NOW + 15))

    assert [(level.price, level.size) for level in found.bids] == [(0.41, 3), (0.4, 5), (0.39, 1)]
    assert (found.best_bid, found.best_ask, found.mid, found.spread) == (0.41, 0.42, 0.415, 0.01)
    assert (found.ts, found.hash) == (NOW + 10, "cd" * 20)
    assert (found.integrity.status, found.integrity.anchor_ts, found.integrity.changes) == ("verified", NOW, 1)
    assert lived.past.book(instant(NOW - 1)) is None
    assert sides(lived.past.book(instant(NOW + 20)).bids) == {410_000: 3_000_000, 390_000: 1_000_000}


def test_books_that_are_kept_now_and_then_are_built_upon(lived):
    start = NOW - 400_000
    lived.hear(book(lived.token, BIDS, ASKS, start), ms=start)
    assert lived.anchor() == 0, "the exchange sent it whole"
    lived.hear(change(lived.token, 1, 410_000, 3_000_000, 410_000, 420_000, NOW - 6_000), ms=NOW - 6_000)
    assert lived.anchor() == 1
    assert lived.anchor() == 0, "it has not changed since"
    lived.hear(change(lived.token, 1, 410_000, 0, 400_000, 420_000, NOW), ms=NOW)
    assert lived.anchor() == 0, "it was kept a moment ago"

    found = lived.past.book(instant(NOW))

    assert found.integrity.anchor_ts == NOW - 6_000
    assert (sides(found.bids), sides(found.asks)) == lived.at(NOW)


def test_a_book_within_a_gap_says_so(lived):
    lived.hear(book(lived.token, BIDS, ASKS, NOW), ms=NOW)
    span = {"from_ts": instant(NOW + 1000), "to_ts": instant(NOW + 2000)}
    gap = insert(lived.conn, "coverage_gaps", {"kind": "books", "market_key": lived.key, "cause": "silent", **span})

    def status(ms):
        return lived.past.book(instant(ms)).integrity.status

    assert [status(NOW + ms) for ms in (999, 1000, 1999, 2000)] == ["verified", "gap", "gap", "verified"]
    inside = lived.past.book(instant(NOW + 1500)).integrity.gap
    assert (inside.from_ts, inside.to_ts, inside.cause) == (NOW + 1000, NOW + 2000, "silent")
    lived.conn.execute("update coverage_gaps set filled_at = now() where gap_id = %s", [gap["gap_id"]])
    assert status(NOW + 1500) == "verified"


def test_a_book_that_differs_from_what_was_told_at_the_time_is_not_vouched_for(lived):
    lived.hear(book(lived.token, BIDS, ASKS, NOW), ms=NOW)
    lived.conn.execute("update quotes set bid = 410000")

    assert lived.past.book(instant(NOW)).integrity.status == "unverified"


@pytest.fixture
def packed(lived):
    """Three changes upon a book; all but the last of them packed, the book left as a row."""
    lived.hear(book(lived.token, BIDS, ASKS, NOW, "ab" * 20), ms=NOW)
    for nth, size in enumerate((3_000_000, 0, 7_000_000), 1):
        ms = NOW + nth * 1000
        told = change(lived.token, 1, 410_000, size, None, None, ms, f"{nth:02x}" * 20)
        lived.hear(told, ms=ms)
    assert (lived.pack(NOW + 3000).events, lived.pack(NOW + 3000).events) == (2, 0)
    return lived


@pytest.mark.license("apache")
def test_a_packed_book_is_what_the_feed_had_at_that_moment(packed):
    for ms in (NOW, NOW + 999, NOW + 1000, NOW + 2500, NOW + 3000, NOW + 9000):
        found = packed.past.book(instant(ms))

        assert (sides(found.bids), sides(found.asks)) == packed.at(ms)
    found = packed.past.book(instant(NOW + 2500))
    assert (found.ts, found.hash) == (NOW + 2000, "02" * 20)
    assert packed.past.book(instant(NOW - 1)) is None


@pytest.mark.license("apache")
def test_anchors_of_days_that_are_packed_are_let_go(lived):
    day = NOW // 86_400_000 * 86_400_000
    lived.hear(book(lived.token, BIDS, ASKS, day - 400_000), ms=day - 400_000)
    lived.hear(change(lived.token, 1, 410_000, 3_000_000, None, None, day - 6_000), ms=day - 6_000)
    assert lived.anchor() == 1

    assert lived.pack(day).anchors == 1

    assert sides(lived.past.book(instant(day)).bids) == {410_000: 3_000_000, **dict(BIDS)}


steps = st.lists(
    st.tuples(
        st.sampled_from(["change", "change", "change", "late", "book", "anchor", "pack"]),
        st.sampled_from([1, -1]),
        st.sampled_from(PRICES),
        st.integers(0, 3),
        st.integers(0, 4000),
    ),
    min_size=1,
    max_size=25,
)


@pytest.fixture(scope="module")
def shared(new_database):
    with new_database() as url, database.connect(url, autocommit=True) as conn:
        yield conn


@pytest.fixture(scope="module")
def often():
    """Whole books may be kept at any time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anchors, "ANCHOR_INTERVAL", dt.timedelta(0))
        yield


@given(steps=steps)
def test_property_any_history_can_be_asked_for_at_any_moment_and_by_steps(shared, often, steps):
    for table in ("book_events", "book_packs", "book_anchors", "quotes", "live_books", "live_prices", "stream_blocks"):
        shared.execute(f"truncate {table}")
    lived = Lived(shared, 7)
    start = ms = NOW - 200_000
    lived.hear(book(lived.token, BIDS, ASKS, ms), ms=ms)
    for kind, side, price, size, later in steps:
        bids, asks = lived.at(ms)
        if kind == "anchor":
            lived.anchor()
            continue
        if kind == "pack":
            lived.pack(ms - later)
            continue
        ms += 0 if kind == "late" else later
        if kind == "book":
            whole = book(lived.token, sorted(bids.items(), reverse=True), sorted(asks.items()), ms, f"{ms:x}".zfill(40))
            lived.hear(whole, ms=ms)
            continue
        crosses = price >= min(asks, default=10**6) if side > 0 else price <= max(bids, default=0)
        if crosses:
            continue
        lived.hear(change(lived.token, side, price, size * 1_000_000, None, None, ms), ms=ms)

    assert lived.normalizer.counts.refused == 0
    span = range(start, ms + 1, max(1, (ms - start) // 20))
    for moment in span:
        found = lived.past.book(instant(moment))
        assert (sides(found.bids), sides(found.asks)) == lived.at(moment)
    data = lived.past.history(instant(start), instant(ms), step_s=1, depth=100).data
    assert [point.ts for point in data] == list(range(start, ms + 1, 1000))
    for point in data:
        assert (sides(point.bids), sides(point.asks)) == lived.at(point.ts)
