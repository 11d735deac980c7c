import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.samples import DELTA, FRAMES, QUOTE, SNAPSHOT, SOCKET_TRADE, TICKER, frame
from upstream.kalshi.rest.markets import KalshiMarket
from upstream.kalshi.socket.frames import parse
from upstream.kalshi.socket.messages import (
    BookDelta,
    BookSnapshot,
    EventFees,
    EventLifecycle,
    MarketLifecycle,
    SocketError,
    SocketFrame,
    Subscribed,
    SubscriptionList,
    TickerUpdate,
    UnknownKind,
    Unsubscribed,
    Updated,
)
from upstream.kalshi.trades import KalshiTrade
from upstream.transport.errors import RefusedObject


def changed(message, **fields):
    return message | {"msg": message["msg"] | fields}


def without(message, *names):
    return message | {"msg": {name: value for name, value in message["msg"].items() if name not in names}}


def said(message):
    return parse(frame(message)).message


# --- Documented messages ---


def test_a_snapshot_is_read_best_first_with_its_place():
    assert parse(frame(SNAPSHOT | {"sending_ts_ms": 1781159489960, "id": 9})) == SocketFrame(
        BookSnapshot(TICKER, [(470_000, 3_000_000), (460_000, 1_500_000)], [(480_000, 2_000_000)]),
        sid=1,
        seq=1,
        id=9,
        sent_ms=1781159489960,
    )
    assert said(without(SNAPSHOT, "no_dollars_fp")).no == []
    assert said(without(SNAPSHOT, "no_dollars_fp", "yes_dollars_fp")) == BookSnapshot(TICKER, [], [])


def test_a_delta_is_a_signed_change_of_one_outcomes_bids():
    assert parse(frame(DELTA)) == SocketFrame(BookDelta(TICKER, 1781159489957, 0, 470_000, -3_000_000), sid=1, seq=2)
    assert said(changed(DELTA, side="no", delta_fp="0.25")) == BookDelta(TICKER, 1781159489957, 1, 470_000, 250_000)
    assert said(changed(DELTA, delta_fp=-3, price_dollars=0.47)).change == -3_000_000
    assert said(without(DELTA, "ts_ms")).ts_ms == 1781159489957  # from the deprecated date


def test_a_ticker_is_a_quote_of_both_outcomes():
    read = said(QUOTE)

    assert read == TickerUpdate(
        "FED-23DEC-T3.00",
        1669149841000,
        480_000,
        450_000,
        300_000_000,
        530_000,
        150_000_000,
        25_000_000,
        33_896_000_000,
        20_422_000_000,
    )
    assert read.quote(0) == (450_000, 300_000_000, 530_000, 150_000_000)
    assert read.quote(1) == (470_000, 150_000_000, 550_000, 300_000_000)
    assert said(without(QUOTE, "ts_ms")).ts_ms == 1669149841000


def test_an_empty_side_of_a_ticker_is_none_in_both_outcomes():
    read = said(
        changed(
            QUOTE, yes_bid_dollars="0.0000", yes_bid_size_fp="0.00", yes_ask_dollars="1.0000", yes_ask_size_fp="0.00"
        )
    )

    assert read.quote(0) == (None, 0, None, 0)
    assert read.quote(1) == (None, 0, None, 0)


def test_a_trade_on_the_socket_is_the_trade_of_the_rest_api():
    assert said(SOCKET_TRADE) == KalshiTrade(
        "d91bc706-ee49-470d-82d8-11418bda6fed", samples.OTHER, 1669149841000, -1, 360_000, 136_000_000, False
    )


def test_life_cycles_are_read_and_make_rows_of_what_they_know():
    determined, created = said(samples.DETERMINED), said(samples.CREATED)

    assert determined == MarketLifecycle(
        "KXMLBSPREAD-26JUL191605WSHATH-ATH4",
        "determined",
        determined_at=datetime.fromtimestamp(1784501722, UTC),
        result="no",
        payout=0,
    )
    assert determined.row() == {
        "market_id": "KXMLBSPREAD-26JUL191605WSHATH-ATH4",
        "exchange": "kalshi",
        "source": "exchange",
        "status": "CLOSED",  # it can still be amended
    }
    assert created.tick_sizes == [(0, 1_000_000, 10_000)]
    row = created.row("simulated")
    assert row == {
        "market_id": "INXD-23SEP14-B4487",
        "exchange": "kalshi",
        "source": "simulated",
        "slug": "inxd-23sep14-b4487",
        "question": "S&P 500 close?",
        "description": "If it closes there, Yes.",
        "status": "ACTIVE",
        "event_id": "INXD-23SEP14",
        "outcomes": ["Yes", "No"],
        "token_ids": ["INXD-23SEP14-B4487:yes", "INXD-23SEP14-B4487:no"],
        "tick_size": 10_000,
        "start_time": datetime.fromtimestamp(1694635200, UTC),
        "end_time": datetime.fromtimestamp(1694721600, UTC),
    }
    listed = KalshiMarket.read(json.dumps(samples.MARKET).encode()).row(datetime(2026, 11, 22, tzinfo=UTC))
    assert row.keys() <= listed.keys()


@pytest.mark.parametrize(
    ("fields", "row"),
    [
        (
            {"event_type": "settled", "settled_ts": 1784501782},
            {"status": "RESOLVED", "resolved_at": datetime.fromtimestamp(1784501782, UTC)},
        ),
        (
            {"event_type": "close_date_updated", "close_ts": 4102444800},
            {"end_time": datetime(2100, 1, 1, tzinfo=UTC)},
        ),
        ({"event_type": "activated", "is_deactivated": False}, {}),
        ({"event_type": "deactivated", "is_deactivated": True}, {}),
        ({"event_type": "price_level_structure_updated", "price_ranges": samples.MARKET["price_ranges"]}, {}),
        ({"event_type": "metadata_updated", "yes_sub_title": "Above 5%", "floor_strike": 5}, {}),
        ({"event_type": "something new"}, {}),
    ],
)
def test_each_life_cycle_event_changes_only_what_it_is_about(fields, row):
    read = said(samples.DETERMINED | {"msg": {"market_ticker": TICKER, **fields}})

    assert read.kind == fields["event_type"]
    assert read.paused == fields.get("is_deactivated")
    assert read.row() == {"market_id": TICKER, "exchange": "kalshi", "source": "exchange", **row}


def test_events_and_their_fees_are_read():
    assert said(samples.EVENT_LISTED) == EventLifecycle(
        "KXQUICKSETTLE-26JAN25H2150", "KXQUICKSETTLE", "What will happen?", "Jan 25 at 21:50"
    )
    assert said(samples.EVENT_FEE) == EventFees("KXNBA-26", "flat", 500_000)
    cleared = changed(samples.EVENT_FEE, fee_type_override=None, fee_multiplier_override=None)
    assert said(cleared) == EventFees("KXNBA-26", None, None)


def test_answers_to_commands_are_read():
    assert parse(frame(samples.SUBSCRIBED)) == SocketFrame(Subscribed("orderbook_delta", 1), id=1)
    assert parse(frame(samples.OK)) == SocketFrame(Updated([TICKER, samples.OTHER]), 1, 222, 123)
    assert said({"type": "ok", "id": 4}) == Updated(None)
    assert said(samples.LISTED) == SubscriptionList([Subscribed("ticker", 2)])
    assert parse(frame(samples.UNSUBSCRIBED)) == SocketFrame(Unsubscribed(), 2, 7, 102)
    assert parse(frame(samples.ERROR)) == SocketFrame(SocketError(8, "Unknown channel name", []), id=1)
    assert parse(frame(samples.OVERFLOW)) == SocketFrame(SocketError(25, "Buffer overflow", []), 1, 3)
    assert said(changed(samples.ERROR, market_ticker=TICKER)).tickers == [TICKER]
    assert said(changed(samples.ERROR, market_tickers=[TICKER, "B"])).tickers == [TICKER, "B"]


def test_kinds_that_are_not_known_yet_are_named_with_their_place():
    new = {"type": "weather", "sid": 3, "seq": 8, "msg": {"deep": [1]}}

    assert parse(frame(new)) == SocketFrame(UnknownKind("weather"), 3, 8)


def test_fields_that_are_not_known_yet_are_passed_over():
    for message in FRAMES:
        more = message | {"new": {"deep": [1]}}
        if isinstance(message.get("msg"), dict):
            more["msg"] = message["msg"] | {"another": None}

        assert parse(frame(more)) == parse(frame(message))


# --- What is refused ---


@pytest.mark.parametrize(
    "message",
    [
        changed(SNAPSHOT, yes_dollars_fp=[["0.4700"]]),
        changed(SNAPSHOT, yes_dollars_fp=[["1.4700", "1"]]),
        changed(SNAPSHOT, yes_dollars_fp="0.47"),
        changed(without(SNAPSHOT, "no_dollars_fp"), no_cents=[[48, 2]]),  # renamed is not empty
        changed(DELTA, delta_fp="--3.00"),
        changed(DELTA, delta_fp="-"),
        changed(DELTA, delta_fp=None),
        changed(DELTA, delta_fp="1e13"),
        changed(DELTA, price_dollars="-0.47"),
        changed(DELTA, side="bid"),
        without(DELTA, "ts", "ts_ms"),
        changed(DELTA, ts_ms=1),
        changed(QUOTE, yes_bid_dollars="2"),
        changed(QUOTE, volume_fp="-1"),
        changed(SOCKET_TRADE, no_price_dollars="0.6300"),
        changed(samples.DETERMINED, settlement_value="2.0"),
        changed(samples.DETERMINED, determination_ts=-1),
        changed(samples.DETERMINED, determination_ts=1e300),
        changed(samples.CREATED, price_ranges=[{"start": "0", "end": "1", "step": "0"}]),
    ],
)
def test_a_message_that_is_wrong_is_refused_with_its_place_and_what_came(message):
    read = parse(frame(message))

    assert isinstance(read.message, RefusedObject)
    assert json.loads(read.message.payload) == message
    assert read.message.source == "kalshi_socket"
    assert (read.sid, read.seq) == (message["sid"], message.get("seq", 0))
    assert read.ticker == message["msg"]["market_ticker"]


@pytest.mark.parametrize(
    "message",
    [
        changed(SNAPSHOT, market_ticker="A:yes"),
        without(DELTA, "market_ticker"),
        SNAPSHOT | {"msg": None},
        changed(samples.SUBSCRIBED, sid=0),
        {"type": "error", "sid": 1, "seq": 2},
    ],
)
def test_a_message_without_a_market_is_refused_with_its_place(message):
    read = parse(frame(message))

    assert isinstance(read.message, RefusedObject)
    assert (read.sid, read.seq, read.ticker) == (message.get("sid", 0), message.get("seq", 0), "")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"7", b"heartbeat", b"\xff\xfe", b'{"type":7}', b'{"sid":1}', b"[" * 100_000]
)
def test_a_frame_that_is_no_message_is_refused(text):
    read = parse(text)

    assert isinstance(read.message, RefusedObject)
    assert (read.sid, read.seq) == (0, 0)
    assert len(read.message.payload) <= 65_536


@pytest.mark.parametrize("place", [{"sid": -1}, {"seq": "2"}, {"seq": 10**30}, {"sid": 1.5}, {"id": {}}])
def test_a_place_that_cannot_be_is_no_place(place):
    read = parse(frame(DELTA | place))

    assert isinstance(read.message, RefusedObject)
    assert (read.sid, read.seq) == (0, 0)


# --- Spoilt messages ---

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
odd_values = json_values | st.sampled_from(["", "0", "-1", "1e400", "NaN", "0.5", "9" * 100, TICKER, 1781159489957])


def fields(message, at=()):
    """Yield the path of each field of a message."""
    for name, value in message.items() if isinstance(message, dict) else enumerate(message):
        yield (*at, name)
        if isinstance(value, dict | list):
            yield from fields(value, (*at, name))


def spoilt(message, path, change):
    """Return a copy of a message with `change(container, name)` made to one field."""
    copy = json.loads(json.dumps(message))
    *above, name = path
    inner = copy
    for step in above:
        inner = inner[step]
    change(inner, name)
    return copy


def drop(inner, name):
    del inner[name]


def rename(inner, name):
    if isinstance(inner, dict):
        inner[f"{name}_v2"] = inner.pop(name)
    else:
        inner[name] = {"v2": inner[name]}


def leaf(message, path):
    for step in path:
        message = message[step]
    return message


def values(read):
    """Return all numbers and texts that a message has, at any depth."""
    if isinstance(read, list | tuple):
        return {each for inner in read for each in values(inner)}
    if hasattr(read, "__struct_fields__"):
        return {each for name in read.__struct_fields__ for each in values(getattr(read, name))}
    return set() if isinstance(read, msgspec.Raw) else {read}


@pytest.mark.parametrize("message", FRAMES, ids=lambda message: message["type"])
def test_a_message_with_a_field_dropped_or_renamed_is_refused_or_says_less_and_nothing_else(message):
    whole = parse(frame(message))
    sent = {value for path in fields(message) for value in [leaf(message, path)] if isinstance(value, str)}
    known = values(whole) | sent | {None, 0, ""}

    for path in fields(message):
        for change in (drop, rename):
            read = parse(frame(spoilt(message, path, change)))
            if isinstance(read.message, RefusedObject | UnknownKind):
                continue
            assert type(read.message) is type(whole.message) or read.message == Updated(None)
            assert values(read) <= known, path


@given(st.sampled_from(FRAMES), st.data())
def test_property_a_message_with_anything_in_any_field_never_raises(message, data):
    path = data.draw(st.sampled_from(sorted(fields(message), key=str)))
    value = data.draw(odd_values)
    read = parse(frame(spoilt(message, path, lambda inner, name: inner.__setitem__(name, value))))

    assert isinstance(read, SocketFrame)
    if isinstance(read.message, BookSnapshot | BookDelta | TickerUpdate | KalshiTrade):
        for number in values(read.message):
            assert not isinstance(number, float)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_property_nothing_that_comes_in_ever_raises(sent):
    assert isinstance(parse(sent).message, RefusedObject | UnknownKind)
