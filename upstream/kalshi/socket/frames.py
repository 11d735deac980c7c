"""Parser of the socket's frames: every frame yields one message or a refusal, and nothing raises."""

from __future__ import annotations

import contextlib

import msgspec

from upstream.kalshi.book import check_absent, side
from upstream.kalshi.fields import (
    PRICES,
    SIZES,
    message_ms,
    optional_date,
    optional_price,
    optional_size,
    quote,
    side_index,
    ticker,
)
from upstream.kalshi.socket.messages import (
    BookDelta,
    BookSnapshot,
    EventFees,
    EventLifecycle,
    MarketLifecycle,
    Message,
    SocketError,
    SocketFrame,
    Subscribed,
    SubscriptionList,
    TickerUpdate,
    UnknownKind,
    Unsubscribed,
    Updated,
)
from upstream.kalshi.socket.wire import (
    KINDS,
    Count,
    CreatedBody,
    DeltaBody,
    LifecycleBody,
    TickerBody,
    Wire,
    WireDelta,
    WireError,
    WireEventFee,
    WireEventLifecycle,
    WireLifecycle,
    WireOk,
    WireSnapshot,
    WireSocketTrade,
    WireSubscribed,
    WireTicker,
)
from upstream.transport.errors import FAULTS, refused
from upstream.transport.numbers import MICRO, Number, micro

SOURCE = "kalshi_socket"


class _Head(msgspec.Struct):
    type: str
    sid: Count = 0
    seq: Count = 0
    id: Count = 0


class _Market(msgspec.Struct):
    market_ticker: str


class _Body(msgspec.Struct):
    msg: _Market


class _RawBody(msgspec.Struct):
    msg: msgspec.Raw


_frame = msgspec.json.Decoder(Wire)
_head = msgspec.json.Decoder(_Head)
_body = msgspec.json.Decoder(_Body)
_raw_body = msgspec.json.Decoder(_RawBody)


def parse(frame: bytes) -> SocketFrame:
    """Parse one frame; an unreadable one has a `RefusedObject`, and its place as far as that can be read."""
    try:
        wire = _frame.decode(frame)
        if type(wire) is WireSnapshot and (wire.msg.yes_dollars_fp is None or wire.msg.no_dollars_fp is None):
            check_absent(_raw_body.decode(frame).msg, ("yes_dollars_fp", "no_dollars_fp"))
        return SocketFrame(_message(wire), wire.sid, wire.seq, wire.id, wire.sending_ts_ms)
    except FAULTS as fault:
        return _refused(frame, fault)


def _refused(frame: bytes, fault: Exception) -> SocketFrame:
    refusal = refused(SOURCE, fault, frame)
    try:
        head = _head.decode(frame)
    except FAULTS:
        return SocketFrame(refusal)
    if head.type not in KINDS:
        return SocketFrame(UnknownKind(head.type[:64]), head.sid, head.seq, head.id)
    market = ""
    with contextlib.suppress(*FAULTS):
        market = ticker(_body.decode(frame).msg.market_ticker)
    return SocketFrame(refusal, head.sid, head.seq, head.id, ticker=market, kind=head.type)


def _message(wire: Wire) -> Message:  # noqa: C901, PLR0911 (one branch for each kind)
    if type(wire) is WireDelta:
        return _delta(wire.msg)
    if type(wire) is WireTicker:
        return _ticker(wire.msg)
    if type(wire) is WireSocketTrade:
        return wire.msg.trade()
    if type(wire) is WireSnapshot:
        body = wire.msg
        return BookSnapshot(ticker(body.market_ticker), side(body.yes_dollars_fp), side(body.no_dollars_fp))
    if type(wire) is WireLifecycle:
        return _lifecycle(wire.msg)
    if type(wire) is WireEventLifecycle:
        event = wire.msg
        series = ticker(event.series_ticker) if event.series_ticker else None
        return EventLifecycle(ticker(event.event_ticker), series, event.title or None, event.subtitle or None)
    if type(wire) is WireEventFee:
        fees = wire.msg
        multiplier = optional_size(fees.fee_multiplier_override)
        return EventFees(ticker(fees.event_ticker), fees.fee_type_override or None, multiplier)
    if type(wire) is WireSubscribed:
        return _subscribed(wire.msg.channel, wire.msg.sid)
    if type(wire) is WireOk:
        if isinstance(wire.msg, list):
            return SubscriptionList([_subscribed(each.channel, each.sid) for each in wire.msg])
        return Updated(wire.msg.market_tickers if wire.msg else None)
    if type(wire) is WireError:
        error = wire.msg
        tickers = error.market_tickers or ([error.market_ticker] if error.market_ticker else [])
        return SocketError(error.code, error.msg[:300], tickers)
    return Unsubscribed()


def _subscribed(channel: str, sid: int) -> Subscribed:
    if not sid:
        raise ValueError("a subscription without a number")
    return Subscribed(channel, sid)


def _delta(body: DeltaBody) -> BookDelta:
    return BookDelta(
        ticker(body.market_ticker),
        message_ms(body.ts_ms, body.ts),
        side_index(body.side),
        PRICES[body.price_dollars],
        _signed(body.delta_fp),
    )


def _signed(value: Number) -> int:
    if isinstance(value, str):
        return -SIZES[value[1:]] if value.startswith("-") else SIZES[value]
    return -micro(-value) if value < 0 else micro(value)


def _ticker(body: TickerBody) -> TickerUpdate:
    return TickerUpdate(
        ticker(body.market_ticker),
        message_ms(body.ts_ms, body.ts),
        optional_price(body.price_dollars),
        quote(body.yes_bid_dollars, body.yes_bid_size_fp, 0),
        optional_size(body.yes_bid_size_fp),
        quote(body.yes_ask_dollars, body.yes_ask_size_fp, MICRO),
        optional_size(body.yes_ask_size_fp),
        optional_size(body.last_trade_size_fp),
        optional_size(body.volume_fp),
        optional_size(body.open_interest_fp),
    )


def _lifecycle(body: LifecycleBody) -> MarketLifecycle:
    more = body.additional_metadata or CreatedBody()
    return MarketLifecycle(
        ticker(body.market_ticker),
        body.event_type[:64],
        optional_date(body.open_ts),
        optional_date(body.close_ts),
        optional_date(body.determination_ts),
        optional_date(body.settled_ts),
        body.result or None,
        optional_price(body.settlement_value),
        body.is_deactivated,
        None if body.price_ranges is None else [each.micro() for each in body.price_ranges],
        ticker(more.event_ticker) if more.event_ticker else None,
        more.title or more.name or None,
        more.yes_sub_title or body.yes_sub_title or None,
        "\n\n".join(filter(None, (more.rules_primary, more.rules_secondary))) or None,
    )
