"""Book events packed and unpacked: nothing is lost, and the book of any moment is what applying them gives."""

from __future__ import annotations

import gzip
import json
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sql import packs
from sql.book_hashes import BookText, HashSearch, book_hash, head
from sql.packs import BookEvent, pack, unpack

PRICES = st.integers(1, 99).map(lambda cents: cents * 10_000)
SIZES = st.integers(0, 10**12)
HASHES = st.one_of(
    st.none(),
    st.binary(min_size=20, max_size=20),
    st.sampled_from([b"\xab" * 20, b"not hex", b"\xcd" * 255, b"\xcd" * 1000]),
)
SIDES = st.dictionaries(PRICES, SIZES.filter(bool), max_size=5)
LEVELS = st.dictionaries(st.integers(2, 200).map(lambda key: key * 5000), SIZES.filter(bool), max_size=5)


def a_book(ts, seq, bids, asks, hash_=None):
    bids, asks = sorted(bids.items(), reverse=True), sorted(asks.items())
    columns = ([value[n] for value in side] for side in (bids, asks) for n in (0, 1))
    return BookEvent(ts, seq, None, None, None, *columns, hash_)


def a_change(ts, seq, side, price, size, hash_=None):
    return BookEvent(ts, seq, side, price, size, None, None, None, None, hash_)


@st.composite
def histories(draw):
    ts, events = 1_795_000_000_000_000, []
    for seq in range(draw(st.integers(1, 20))):
        ts += draw(st.sampled_from([0, 1000, 7000, 123_456]))
        place = (ts, (ts // 1000 << 20) + draw(st.sampled_from([0, seq, -5, (1 << 20) - 1])))
        if draw(st.booleans()):
            events.append(a_book(*place, draw(SIDES), draw(SIDES), draw(HASHES)))
        else:
            events.append(a_change(*place, draw(st.sampled_from([1, -1])), draw(PRICES), draw(SIZES), draw(HASHES)))
    return events


def hashed(events, base, *, lag_ms=0, trades=(), mine=lambda _: True):
    """Give the events the exchange's hashes; simultaneous changes share that of the book after the last of them.

    `trades`: prices of last trades, each for an event; `mine`: which instants have one.
    """
    text, given_, fields = BookText(base), [], "}"
    for n, event in enumerate(events):
        if event.side is None:
            text.replace(packs.whole(event))
        else:
            text.set(packs.key(event.side, event.price), event.size)
        if n < len(trades) and trades[n]:
            fields = f',"min_order_size":"5","tick_size":"0.01","neg_risk":true,"last_trade_price":"{trades[n]}"}}'
        given_.append(event._replace(hash=book_hash(text, head(MARKET, TOKEN), event.ts // 1000 - lag_ms, fields)))
        for earlier in range(len(given_) - 1, -1, -1):
            if given_[earlier].ts != event.ts:
                break
            given_[earlier] = given_[earlier]._replace(hash=given_[-1].hash)
    return [of if mine(of.ts) else event for event, of in zip(events, given_, strict=True)]


@given(
    events=histories(),
    base=LEVELS,
    known=st.booleans(),
    lag_ms=st.sampled_from([0, 0, 7]),
    trades=st.lists(st.sampled_from([None, "", "0.5", "0.980", "0.07"]), max_size=20),
    others=st.sets(st.integers(0, 6)),
    searched=st.booleans(),
)
def test_property_what_is_packed_comes_back_as_it_was(events, base, known, lag_ms, trades, others, searched):
    events = hashed(events, base, lag_ms=lag_ms, trades=trades, mine=lambda ts: ts // 1000 % 7 not in others)
    search = HashSearch(MARKET, TOKEN) if searched else None
    data, after = pack(events, base, known=known, search=search)
    found = unpack(data)

    assert list(found.events()) == events
    assert [found.hash(n) for n in range(len(events))] == [event.hash for event in events] == found.hashes
    assert found.after() == (after, known or any(event.side is None for event in events))
    assert (found.base, found.known) == (base, known)
    levels = dict(base)
    for n, event in enumerate(events, 1):
        if event.side is None:
            levels = packs.whole(event)
        else:
            levels = {**levels, packs.key(event.side, event.price): event.size}
            levels = {name: size for name, size in levels.items() if size}
        assert found.book(n) == levels
        assert list(found.events(since=n - 1, upto=n)) == [event]


def test_hashes_that_are_computed_again_take_no_space():
    start, dice = 1_795_000_000_000, random.Random(1)
    changes = [
        a_change((start + n) * 1000, start + n << 20, 1, dice.randrange(1, 40) * 10_000, dice.randrange(10**6) * 10_000)
        for n in range(1, 1000)
    ]
    plain = [a_book(start * 1000, start << 20, {400_000: 5_000_000}, {420_000: 1_000_000}), *changes]
    events = hashed(plain, {}, trades=["0.41", *[None] * 500, "0.4"])

    data, _ = pack(events, {}, known=False, search=HashSearch(MARKET, TOKEN))
    stored, _ = pack(events, {}, known=False)

    assert list(unpack(data).events()) == list(unpack(stored).events()) == events
    assert len(data) < len(pack(plain, {}, known=False)[0]) + 300 < len(stored) - 19_000


def test_changes_before_the_first_whole_book_keep_their_hashes():
    events = hashed([a_change(1_795_000_000_000_000, 1, 1, 10_000, 5)], {})

    data, _ = pack(events, {}, known=False, search=HashSearch(MARKET, TOKEN))

    assert events[0].hash in data
    assert list(unpack(data).events()) == events


def test_a_pack_of_an_earlier_release_is_read():
    ms = 1_795_000_000_000
    found = unpack(bytes.fromhex(EARLIER))

    assert (found.known, found.base) == (False, {packs.key(1, 380_000): 3})
    assert list(found.events()) == [
        a_change(ms * 1000, (ms << 20) + 1, 1, 400_000, 5_000_000, b"\xab" * 20),
        a_book(ms * 1000 + 1000, (ms + 1 << 20) + 1, {400_000: 1_000_000}, {420_000: 2_000_000}, b"not hex"),
        a_change(ms * 1000 + 9000, (ms + 9 << 20) + 1, -1, 420_000, 0),
        a_change(ms * 1000 + 9000, (ms + 9 << 20) + 2, 1, 390_000, 7, b"\x01" * 20),
        a_change(ms * 1000 + 9000, (ms + 9 << 20) + 3, 1, 380_000, 8, b"\x01" * 20),
    ]
    assert found.hash(4) == b"\x01" * 20


def test_a_pack_of_a_later_release_is_refused():
    data, _ = pack([a_change(1000, 1, 1, 10_000, 5)], {}, known=False)

    with pytest.raises(ValueError, match="version 9"):
        unpack(b"\x09" + data[1:])


def test_a_busy_market_packs_into_less_than_its_messages_gzipped():
    """A trade each fifty changes, after which the exchange sends the whole book of forty levels."""
    dice = random.Random(1)
    token, market = str(dice.getrandbits(250)), "0x" + dice.randbytes(32).hex()
    book = {side: {step * 10_000: dice.randrange(1, 10**6) * 10_000 for step in span} for side, span in SPANS.items()}
    ts, events, lines = 1_795_000_000_000_000, [], []
    for n in range(packs.MAX_EVENTS):
        ts += dice.randrange(400) * 1000
        hash_ = dice.randbytes(20)
        if n % 50 == 0:
            events.append(a_book(ts, ts // 1000 << 20, book[1], book[-1], hash_))
            sides = {
                name: [
                    {"price": str(price / 1e6), "size": str(size / 1e6)} for price, size in sorted(book[side].items())
                ]
                for name, side in (("bids", 1), ("asks", -1))
            }
            said = {"asset_id": token, "hash": hash_.hex(), **sides, "event_type": "book"}
        else:
            side = dice.choice([1, -1])
            price = dice.choice([*SPANS[side]]) * 10_000
            book[side][price] = size = dice.randrange(1, 10**6) * 10_000
            events.append(a_change(ts, ts // 1000 << 20, side, price, size, hash_))
            change = {
                "asset_id": token,
                "price": str(price / 1e6),
                "size": str(size / 1e6),
                "hash": hash_.hex(),
                "side": "BUY" if side > 0 else "SELL",
                "best_bid": "0.5",
                "best_ask": "0.51",
            }
            said = {"price_changes": [change], "event_type": "price_change"}
        lines.append(json.dumps({"market": market, "timestamp": str(ts // 1000), **said}))

    data, _ = pack(events, {}, known=False)

    assert len(data) < 0.7 * len(gzip.compress("\n".join(lines).encode()))
    assert len(data) / len(events) < 28


MARKET, TOKEN = "0x" + "ab" * 32, "7132"
EARLIER = (
    "0100010000006900000078da636500028378c6ee04368617cc0c60c0c8c0c8c1c0c0ca80004c509a1108989891655818e07a802407920c2394"
    "663ec0c0e078c0f1c18119a6a617675c7c36839b8787879b879b1bab62660787060606760e066fa716b0880fbf1c8812616710f90f0017960f"
    "31abababababababababababababababababababab6e6f74206865780101010101010101010101010101010101010101"
)
SPANS = {1: range(31, 51), -1: range(51, 71)}
