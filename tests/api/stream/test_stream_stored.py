"""Replays read from pages that those who are behind share."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.stream import stored
from api.stream.stored import WIDTH, EventStore
from api.stream.subscriber import Subscriber, SubscriptionFilter
from sql.stream_reader import StreamEvent

MARKETS, TYPES, WALLETS = ("a", "b", None), ("trade", "price"), (None, None, None, b"w", b"x")


def event(seq, dice=None):
    if dice is None:
        return StreamEvent(seq, "trade", "a", None, None, b"<%d>" % seq)
    wallet = dice.choice(WALLETS)
    watchers = None if wallet is None else dice.choice([None, [1], [2, 1]])
    return StreamEvent(seq, dice.choice(TYPES), dice.choice(MARKETS), wallet, watchers, b"<%d>" % seq)


def reader(account_id=1, wants=None, wallets=()):
    subscriber = Subscriber(SimpleNamespace(), 0, account_id, lambda: True)
    subscriber.wants = wants or SubscriptionFilter()
    subscriber.wallets = frozenset(wallets)
    return subscriber


class Database:
    def __init__(self, events):
        self.events = events
        self.asked = []

    def between(self, after, upto):
        self.asked.append((after, upto))
        return [each for each in self.events if after < each.seq <= upto]


def replay(pages, subscriber, after, upto):
    """The numbers that a subscriber is sent on its way, and whether it is promised that nothing is missing."""
    told, whole = [], True
    while after < upto:
        part = pages.page(after, upto).part(subscriber, after)
        for frame, last in part.packed:
            text = frame[2 if frame[1] < 126 else 4 :].decode()
            told += [int(line[1:-1]) for line in text.split("\n")]
            assert told[-1] == last
        assert after < part.last <= upto
        after, whole = part.last, whole and part.whole
    return told, whole


def test_those_who_come_back_together_have_each_event_read_once():
    database = Database([event(seq) for seq in range(1, 2501)])
    pages = EventStore(database.between)

    for number in range(50):
        assert replay(pages, reader(), 3 * number, 2500) == (list(range(3 * number + 1, 2501)), True)

    assert database.asked == [(0, 1000), (1000, 2000), (2000, 2500)]


def test_what_was_added_to_the_newest_page_alone_is_read():
    database = Database([event(seq) for seq in range(1, 31)])
    pages = EventStore(database.between)
    for upto in (10, 25, 30, 30):
        assert replay(pages, reader(), 5, upto) == (list(range(6, upto + 1)), True)

    assert database.asked == [(0, 10), (10, 25), (25, 30)]


def test_a_page_that_another_reads_meanwhile_is_not_read_into_twice():
    database = Database([event(seq) for seq in range(1, 101)])

    def between(after, upto):
        found = database.between(after, upto)
        if len(database.asked) == 1:  # while this is under way, someone else comes by
            assert replay(pages, reader(), 0, 70)[0] == list(range(1, 71))
        return found

    pages = EventStore(between)

    assert replay(pages, reader(), 0, 100) == (list(range(1, 101)), True)


def test_a_page_whose_reads_end_early_is_read_to_its_end():
    database = Database([event(seq) for seq in range(1, 101) if seq not in {40, 100}])
    pages = EventStore(lambda after, upto: database.between(after, upto)[:30])

    told, whole = replay(pages, reader(), 0, 100)

    assert (told, whole) == ([*range(1, 40), *range(41, 100)], False)
    assert database.asked == [(0, 100), (30, 100), (61, 100), (91, 100), (99, 100)]


def test_pages_are_forgotten_beyond_a_bound(monkeypatch):
    monkeypatch.setattr(stored, "MAX_CACHED_BYTES", 3 * WIDTH)
    database = Database([event(seq) for seq in range(1, 10_001)])
    pages = EventStore(database.between)

    for _ in range(2):
        assert replay(pages, reader(), 0, 10_000) == (list(range(1, 10_001)), True)

    assert len(database.asked) == 20


def test_frames_packed_for_many_filters_count_among_what_is_kept(monkeypatch):
    events = [StreamEvent(seq, "trade", "a", None, None, b"<%060d>" % seq) for seq in range(1, 5001)]
    monkeypatch.setattr(stored, "MAX_CACHED_BYTES", 5 * WIDTH * 500)  # five pages, each with its frames for one filter
    database = Database(events)
    pages = EventStore(database.between)
    for _ in range(2):
        assert replay(pages, reader(), 0, 5000) == (list(range(1, 5001)), True)
    assert len(database.asked) == 5

    for number in range(4):
        replay(pages, reader(wants=SubscriptionFilter(frozenset(["a", f"b{number}"]))), 0, 5000)
    replay(pages, reader(), 0, 5000)

    assert len(database.asked) > 5


@given(seed=st.integers(0, 10**6), after=st.integers(0, 180), more=st.integers(1, 80))
def test_property_a_replay_tells_what_is_kept_and_wanted_and_whether_that_is_all(seed, after, more):
    dice = random.Random(seed)
    kept = [event(seq, dice) for seq in range(1, 301) if seq > 15 and not 108 <= seq <= 112]
    upto = after + more
    asked = [each for each in kept if after < each.seq <= upto]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stored, "WIDTH", 40)
        pages = EventStore(Database(kept).between)
        for _ in range(4):
            wants = SubscriptionFilter(
                dice.choice([None, frozenset("a"), frozenset()]),
                dice.choice([None, frozenset(["price"]), frozenset(TYPES)]),
            )
            subscriber = reader(dice.choice([1, 2, 3]), wants, dice.choice([(), (b"w",)]))

            told, whole = replay(pages, subscriber, after, upto)

            assert told == [each.seq for each in asked if subscriber.passes(each)]
            assert whole == (len(asked) == more)
