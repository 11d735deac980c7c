import asyncio
import json
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream import recordings
from upstream.polymarket.market_channel.frames import parse, parse_incrementally
from upstream.polymarket.market_channel.messages import (
    BestBidAsk,
    LastTrade,
    LevelChange,
    NewMarket,
    Pong,
    Resolved,
    TickSize,
    Unknown,
)
from upstream.polymarket.market_channel.socket import Book, RefusedObject

MARKET = "0x" + "ab" * 32
HASH = "bf32b3746fff40c76c98021b7f3f07261169dd26"
TX = "0x" + "CD" * 32
TS = "1784327295123"
CHANGE = {
    "asset_id": "11",
    "price": ".48",
    "size": "30",
    "side": "BUY",
    "hash": HASH,
    "best_bid": "0.48",
    "best_ask": "1",
}
PRICE_CHANGE = {
    "event_type": "price_change",
    "market": MARKET.upper().replace("X", "x", 1),
    "timestamp": TS,
    "price_changes": [
        CHANGE,
        CHANGE | {"asset_id": "22", "price": "0.52", "side": "SELL", "best_bid": "0", "size": "0"},
    ],
}
BOOK = {
    "event_type": "book",
    "asset_id": "11",
    "market": MARKET,
    "timestamp": TS,
    "hash": HASH,
    "bids": [{"price": "0.1", "size": "5"}, {"price": "0.3", "size": "2.5"}, {"price": "0.2", "size": "0"}],
    "asks": [{"price": "0.9", "size": "1"}, {"price": "0.5", "size": "1"}, {"price": "0.5", "size": "3"}],
}
TRADE = {
    "event_type": "last_trade_price",
    "asset_id": "11",
    "market": MARKET,
    "timestamp": TS,
    "price": "0.491",
    "size": "85.36",
    "side": "SELL",
    "fee_rate_bps": "0",
}
FIRST = LevelChange("11", MARKET, int(TS), HASH, 1, 480_000, 30_000_000, 480_000, 1_000_000)
SECOND = LevelChange("22", MARKET, int(TS), HASH, -1, 520_000, 0, 0, 1_000_000)


def frame(message) -> bytes:
    return json.dumps(message).encode()


def fixture(recorded, name):
    return (recorded / "fixtures_edited" / "nautilus" / name).read_bytes()


# --- Recordings ---


@pytest.mark.parametrize("era", ["book", "price_change"])
def test_every_recorded_message_is_read_level_by_level(recorded, era):
    counts = Counter()
    for path in recordings.captures(recorded):
        for message, rows in recordings.capture(path):
            if message["event_type"] != era:
                continue
            [*read] = parse(frame(message))
            counts[path.name] += len(rows)
            levels = {(recordings.SIDES[r["side"]], Decimal(r["price"])): Decimal(r["size"]) for r in rows}
            if era == "book":
                [book] = read
                sides = (("BUY", book.bids), ("SELL", book.asks))
                found = {(side, Decimal(p) / 10**6): Decimal(s) / 10**6 for side, each in sides for p, s in each}
                assert found == {level: size for level, size in levels.items() if size}
                assert book.bids == sorted(book.bids, reverse=True)
                assert book.asks == sorted(book.asks)
            else:
                assert [(c.side, Decimal(c.price) / 10**6, Decimal(c.size) / 10**6) for c in read] == [
                    (1 if recordings.SIDES[r["side"]] == "BUY" else -1, Decimal(r["price"]), Decimal(r["size"]))
                    for r in rows
                ]
            assert {(each.asset_id, each.hash, each.ts_ms) for each in read} == {
                (message["asset_id"], message["hash"], int(message["timestamp"]))
            }

    assert len(counts) == len(recordings.captures(recorded)) == 20
    assert sum(counts.values()) > 50_000


def test_the_price_changes_of_january_2025_are_read(recorded):
    messages = list(recordings.old_price_changes(recorded))

    for message in messages:
        read = parse(frame(message))
        assert [(change.side, Decimal(change.price) / 10**6, Decimal(change.size) / 10**6) for change in read] == [
            (1 if sent["side"] == "BUY" else -1, Decimal(sent["price"]), Decimal(sent["size"]))
            for sent in message["changes"]
        ]
        assert {change.best_bid for change in read} == {None}
    assert len(messages) == 3829


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("rust/ws_market_book_msg.json", [Book]),
        ("rust/ws_market_price_change_msg.json", [LevelChange]),
        ("rust/ws_market_last_trade_msg.json", [LastTrade]),
        ("rust/ws_market_tick_size_msg.json", [TickSize]),
        ("rust/ws_market_best_bid_ask_msg.json", [BestBidAsk]),
        ("rust/ws_market_new_market_msg.json", [NewMarket]),
        ("rust/ws_market_resolved_msg.json", [Resolved]),
        ("ws/book.json", [Book]),
        ("ws/last_trade_price.json", [LastTrade]),
        ("ws/price_change.json", [LevelChange]),
        ("ws/price_change_v2.json", [LevelChange] * 3),
        ("ws/tick_size_change.json", [TickSize]),
        ("rust/ws_quotes.json", [RefusedObject]),  # no event_type: the exchange always sends one
    ],
)
def test_the_shapes_that_another_client_knows_are_known_here(recorded, name, kinds):
    assert [type(message) for message in parse(fixture(recorded, name))] == kinds


def test_a_new_market_and_its_end_make_rows_of_the_catalogue(recorded):
    [new] = parse(fixture(recorded, "rust/ws_market_new_market_msg.json"))
    [end] = parse(fixture(recorded, "rust/ws_market_resolved_msg.json"))
    born, died = new.row("simulated"), end.row("simulated")

    assert born["market_id"] == died["market_id"] == new.market
    assert (born["gamma_id"], born["status"], born["outcomes"]) == ("1031769", "ACTIVE", ["Yes", "No"])
    assert (born["event_id"], born["tick_size"], born["tags"]) == ("125819", 10_000, ["stocks"])
    assert born["source"] == died["source"] == "simulated"
    assert (died["status"], died["winning_outcome"], died["outcome_prices"]) == ("RESOLVED", 0, [1_000_000, 0])
    assert died["resolved_at"].timestamp() * 1000 == end.ts_ms


# --- Shapes ---


def test_both_tokens_of_a_price_change_are_read_in_order():
    assert parse(frame(PRICE_CHANGE)) == [FIRST, SECOND]


def test_the_first_shape_of_price_change_is_read():
    flat = {"event_type": "price_change", "market": MARKET, "timestamp": TS} | {
        key: CHANGE[key] for key in ("asset_id", "price", "size", "side", "hash")
    }

    assert parse(frame(flat)) == [LevelChange("11", MARKET, int(TS), HASH, 1, 480_000, 30_000_000)]


def test_a_book_is_sorted_without_empty_levels_and_the_later_entry_of_a_price_holds():
    [book] = parse(frame(BOOK))

    assert book.bids == [(300_000, 2_500_000), (100_000, 5_000_000)]
    assert book.asks == [(500_000, 3_000_000), (900_000, 1_000_000)]


def test_the_oldest_books_say_buys_and_sells():
    old = {key: value for key, value in BOOK.items() if key not in {"bids", "asks"}}

    assert parse(frame(old | {"buys": BOOK["bids"], "sells": BOOK["asks"]})) == parse(frame(BOOK))


def test_an_empty_book_is_a_book():
    [book] = parse(frame(BOOK | {"bids": [], "asks": [], "last_trade_price": "", "hash": ""}))

    assert (book.bids, book.asks, book.last_trade_price, book.hash) == ([], [], None, "")


def test_a_trade_of_2026_knows_its_transaction():
    assert parse(frame(TRADE)) == [LastTrade("11", MARKET, int(TS), -1, 491_000, 85_360_000, None, 0)]
    assert parse(frame(TRADE | {"transaction_hash": TX}))[0].tx_hash == TX.lower()
    assert parse(frame(TRADE | {"transaction_hash": ""}))[0].tx_hash is None


def test_an_array_is_read_in_order_and_may_be_empty():
    assert parse(frame([TRADE, PRICE_CHANGE])) == [*parse(frame(TRADE)), FIRST, SECOND]
    assert parse(b"[]") == []
    assert parse("[]") == []


def test_keep_alives_are_known():
    assert parse("PONG") == parse(b"PONG") == parse(b"PONG\n") == [Pong()]
    assert parse("") == parse(b" \n") == []


def test_text_and_bytes_are_read_alike():
    assert parse(frame(PRICE_CHANGE).decode()) == parse(frame(PRICE_CHANGE))


def test_kinds_that_are_not_known_yet_are_named_and_nothing_more():
    assert parse(frame({"event_type": "fee_change", "x": 1})) == [Unknown("fee_change")]
    assert parse(frame([TRADE, {"event_type": "fee_change"}, PRICE_CHANGE]))[1:] == [
        Unknown("fee_change"),
        FIRST,
        SECOND,
    ]


def test_fields_that_are_not_known_yet_are_passed_over():
    assert parse(frame(PRICE_CHANGE | {"new": {"deep": [1]}})) == [FIRST, SECOND]


def test_a_hash_that_is_none_is_left_out_and_the_price_kept():
    odd = PRICE_CHANGE | {"price_changes": [CHANGE | {"hash": "0xhash001"}]}

    assert [change.hash for change in parse(frame(odd))] == [""]


# --- What is refused ---


def test_one_bad_change_does_not_take_the_others_with_it():
    for bad in (
        {"price": "1.5"},
        {"size": "-1"},
        {"side": "HOLD"},
        {"price": None},
        {"asset_id": ""},
        {"best_bid": "?"},
    ):
        worse = CHANGE | bad
        read = parse(frame(PRICE_CHANGE | {"price_changes": [CHANGE, worse, PRICE_CHANGE["price_changes"][1]]}))

        assert [read[0], read[2]] == [FIRST, SECOND]
        assert isinstance(read[1], RefusedObject)
        assert json.loads(read[1].payload) == worse
        assert MARKET in read[1].reason.lower()


def test_one_bad_message_does_not_take_the_others_with_it():
    bad = TRADE | {"size": "NaN"}
    missing = {key: value for key, value in BOOK.items() if key != "timestamp"}
    read = parse(frame([TRADE, bad, missing, 7, PRICE_CHANGE]))

    assert [type(each) for each in read] == [
        LastTrade,
        RefusedObject,
        RefusedObject,
        RefusedObject,
        LevelChange,
        LevelChange,
    ]
    assert json.loads(read[1].payload) == bad
    assert json.loads(read[2].payload) == missing
    assert {each.source for each in read[1:4]} == {"market_socket"}


@pytest.mark.parametrize(
    "message",
    [
        PRICE_CHANGE | {"timestamp": "1000"},
        PRICE_CHANGE | {"timestamp": "99999999999999"},
        PRICE_CHANGE | {"price_changes": None},
        PRICE_CHANGE | {"price_changes": {}},
        BOOK | {"bids": None, "asks": None},
        BOOK | {"bids": [{"price": "0.5"}]},
        BOOK | {"bids": [{"price": "1.01", "size": "1"}]},
        BOOK | {"asks": [{"price": "0.5", "size": "1e13"}]},
        BOOK | {"asset_id": ""},
        TRADE | {"side": ""},
        TRADE | {"transaction_hash": "0x12"},
        TRADE | {"transaction_hash": "0x" + "zz" * 32},
        TRADE | {"fee_rate_bps": "free"},
        {"event_type": "tick_size_change", "asset_id": "11", "timestamp": TS, "new_tick_size": "0"},
        {"event_type": "best_bid_ask", "asset_id": "11", "timestamp": TS, "best_bid": "x"},
        {"event_type": "new_market", "timestamp": TS, "market": MARKET, "outcomes": ["Yes"], "assets_ids": []},
        {"event_type": "market_resolved", "timestamp": TS, "market": ""},
        {"event_type": ""},
        {"event_type": 7},
        {"message": "hello"},
        "text",
        7,
        None,
    ],
)
def test_a_message_that_is_wrong_is_refused_whole_with_what_came(message):
    [refusal] = parse(frame(message))

    assert isinstance(refusal, RefusedObject)
    assert refusal.reason
    assert refusal.payload == json.dumps(message)


@pytest.mark.parametrize("text", [b"{", b"[1,", b"INVALID OPERATION", b"\xff\xfe", b'{"a":"\\ud800"}', b"[" * 100_000])
def test_a_frame_that_is_no_json_is_refused(text):
    [refusal] = parse(text)

    assert isinstance(refusal, RefusedObject)
    assert len(refusal.payload) <= 65_536
    refusal.payload.encode()


def test_a_refusal_can_be_stored_by_any_database():
    [refusal] = parse(b'{"event_type": "book", "market": "\x00"}' + b" " * 100_000)

    assert "\x00" not in refusal.payload + refusal.reason
    assert len(refusal.payload) == 65_536


def test_a_market_that_pays_both_sides_has_no_winner():
    sent = {"event_type": "market_resolved", "timestamp": TS, "market": MARKET, "assets_ids": ["1", "2"]}
    [shared] = parse(frame(sent | {"winning_asset_id": "", "winning_outcome": ""}))
    [named] = parse(frame(sent | {"outcomes": ["Up", "Down"], "winning_outcome": "Down"}))

    assert (shared.winner, shared.row()["status"]) == (None, "CLOSED")
    assert (named.winner, named.row()["outcome_prices"]) == (1, [0, 1_000_000])


KNOWN = [PRICE_CHANGE, BOOK, TRADE]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@given(st.binary(max_size=200) | st.text(max_size=200) | json_values.map(json.dumps))
def test_nothing_that_comes_in_ever_raises(sent):
    for read in parse(sent):
        assert isinstance(read, RefusedObject | Pong | Unknown)


@given(st.sampled_from(KNOWN), st.data())
def test_a_known_message_with_anything_in_any_field_never_raises(message, data):
    field = data.draw(st.sampled_from(sorted(message)))
    value = data.draw(json_values | st.sampled_from(["", "0", "-1", "1e400", "NaN", "0.5", TS, "9" * 100]))
    sent = json.dumps([TRADE, message | {field: value}])

    read = parse(sent)

    assert read[0] == parse(frame(TRADE))[0]
    for each in read:
        assert isinstance(each, RefusedObject | Unknown | LevelChange | Book | LastTrade)


@given(st.lists(st.sampled_from([*KNOWN, {"event_type": "new"}, 7]), max_size=70))
def test_a_large_frame_read_slowly_says_the_same(messages):
    assert asyncio.run(parse_incrementally(frame(messages))) == parse(frame(messages))


def test_a_large_frame_that_is_no_array_is_read_too():
    assert asyncio.run(parse_incrementally(frame(PRICE_CHANGE))) == [FIRST, SECOND]
    assert isinstance(asyncio.run(parse_incrementally(b"[{"))[0], RefusedObject)
