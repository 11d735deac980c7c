"""Book events packed and unpacked: nothing is lost, and the book of any moment is what applying them gives."""

from __future__ import annotations

import gzip
import json
import random

import hypothesis.strategies as st
import pytest
from hypothesis import given

from sql import packs
from sql.packs import BookEvent, pack, unpack

PRICES = st.integers(1, 99).map(lambda cents: cents * 10_000)
SIZES = st.integers(0, 10**12)
HASHES = st.one_of(st.none(), st.binary(min_size=20, max_size=20), st.sampled_from([b"\xab" * 20, b"not hex"]))
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


@given(events=histories(), base=LEVELS, known=st.booleans())
def test_property_what_is_packed_comes_back_as_it_was(events, base, known):
    data, after = pack(events, base, known=known)
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


SPANS = {1: range(31, 51), -1: range(51, 71)}
