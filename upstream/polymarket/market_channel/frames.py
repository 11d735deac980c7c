"""Parser of market channel frames: every frame yields messages, and nothing raises."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from upstream.polymarket.book import WireBook
from upstream.polymarket.fields import (
    PRICES,
    SIDES,
    SIZES,
    named,
    optional,
    optional_price,
    transaction,
)
from upstream.polymarket.gamma.events import tag_slugs
from upstream.polymarket.market_channel.messages import (
    BestBidAsk,
    ChannelMessage,
    LastTrade,
    LevelChange,
    NewMarket,
    Pong,
    Resolved,
    TickSize,
    Unknown,
)
from upstream.polymarket.market_channel.wire import (
    KINDS,
    Wire,
    WireBestBidAsk,
    WireChange,
    WireEvent,
    WireLastTrade,
    WireNewMarket,
    WirePriceChange,
    WireResolved,
    WireTickSize,
)
from upstream.transport.errors import FAULTS, RefusedObject, refused
from upstream.transport.numbers import MICRO, micro, milliseconds, price

SOURCE = "market_socket"
PRICE_CHANGE = b'"event_type":"price_change"}'
"""Most frames end so; of others the decoder has to look for the kind before it reads them."""


class _Kind(msgspec.Struct):
    event_type: str


class _Entries(msgspec.Struct):
    timestamp: str | int
    price_changes: list[msgspec.Raw]
    market: str = ""


_unhex = bytes.fromhex
_frame = msgspec.json.Decoder(list[Wire] | Wire)
_object = msgspec.json.Decoder(Wire)
_price_change = msgspec.json.Decoder(WirePriceChange)
_pieces = msgspec.json.Decoder(list[msgspec.Raw])
_kind = msgspec.json.Decoder(_Kind)
_entries = msgspec.json.Decoder(_Entries)
_entry = msgspec.json.Decoder(WireChange)


def parse(frame: str | bytes) -> list[ChannelMessage | RefusedObject]:
    """Parse all messages of one frame, in order; unreadable ones become `RefusedObject`, and nothing raises."""
    read: list[ChannelMessage | RefusedObject] = []
    try:
        if isinstance(frame, bytes) and frame.endswith(PRICE_CHANGE):
            wires = _price_change.decode(frame)
        else:
            wires = _frame.decode(frame)
        if isinstance(wires, list):
            for wire in wires:
                _convert(wire, read)
        else:
            _convert(wires, read)
    except FAULTS as fault:
        return _piecewise(frame, fault)
    return read


async def parse_incrementally(frame: bytes) -> list[ChannelMessage | RefusedObject]:
    """Parse a very large array like `parse`, yielding to the event loop every few dozen objects."""
    try:
        pieces = _pieces.decode(frame)
    except FAULTS:
        return parse(frame)
    read: list[ChannelMessage | RefusedObject] = []
    for index, piece in enumerate(pieces):
        _piece(bytes(piece), read)
        if index % 32 == 31:
            await asyncio.sleep(0)
    return read


def _convert(wire: Wire, read: list[ChannelMessage | RefusedObject]) -> None:
    if type(wire) is WirePriceChange:
        ts_ms = milliseconds(wire.timestamp)
        market = wire.market.lower()
        for entry in wire.price_changes or wire.entries():
            read.append(_level(entry, market, ts_ms))  # noqa: PERF401 (a list of its own takes longer)
    elif type(wire) is WireBook:
        read.append(wire.book())
    elif type(wire) is WireLastTrade:
        read.append(_trade(wire))
    elif type(wire) is WireBestBidAsk:
        read.append(
            BestBidAsk(
                named(wire.asset_id),
                wire.market.lower(),
                milliseconds(wire.timestamp),
                optional_price(wire.best_bid),
                optional_price(wire.best_ask),
            )
        )
    elif type(wire) is WireTickSize:
        read.append(_tick_size(wire))
    elif type(wire) is WireNewMarket:
        read.append(_new_market(wire))
    elif type(wire) is WireResolved:
        read.append(_resolved(wire))


def _level(entry: WireChange, market: str, ts_ms: int) -> LevelChange:
    # Most of what the exchange sends comes by here: functions are called only for what is rare.
    asset_id, hash_, bid, ask = entry.asset_id, entry.hash or "", entry.best_bid, entry.best_ask
    try:
        _unhex(hash_)
    except ValueError:
        hash_ = ""
    return LevelChange(
        asset_id or named(asset_id),
        market,
        ts_ms,
        hash_,
        SIDES[entry.side],
        PRICES[entry.price],
        SIZES[entry.size],
        PRICES[bid] if bid else optional_price(bid),
        PRICES[ask] if ask else optional_price(ask),
    )


def _trade(wire: WireLastTrade) -> LastTrade:
    return LastTrade(
        named(wire.asset_id),
        wire.market.lower(),
        milliseconds(wire.timestamp),
        SIDES[wire.side],
        price(wire.price),
        micro(wire.size),
        transaction(wire.transaction_hash),
        None if wire.fee_rate_bps in (None, "") else micro(wire.fee_rate_bps) // MICRO,
    )


def _tick_size(wire: WireTickSize) -> TickSize:
    new = price(wire.new_tick_size)
    if not new:
        raise ValueError("a tick size of zero")
    return TickSize(
        named(wire.asset_id), wire.market.lower(), milliseconds(wire.timestamp), optional(wire.old_tick_size), new
    )


def _new_market(wire: WireNewMarket) -> NewMarket:
    event = wire.event_message or WireEvent()
    token_ids = wire.clob_token_ids or wire.assets_ids or []
    outcomes = wire.outcomes or []
    market = wire.condition_id or wire.market
    if not market or not token_ids or len(token_ids) != len(outcomes):
        raise ValueError("a market needs a condition id, and one token for each outcome")
    return NewMarket(
        market=market.lower(),
        ts_ms=milliseconds(wire.timestamp),
        id=_text(wire.id),
        question=wire.question or "",
        slug=wire.slug or "",
        description=wire.description or None,
        token_ids=token_ids,
        outcomes=outcomes,
        tags=tag_slugs(wire.tags),
        event_id=_text(event.id) or None,
        event_slug=event.slug or None,
        event_title=event.title or None,
        tick_size=optional_price(wire.order_price_min_tick_size),
        active=wire.active is not False,
    )


def _resolved(wire: WireResolved) -> Resolved:
    if not wire.market:
        raise ValueError("no market")
    return Resolved(
        market=wire.market.lower(),
        ts_ms=milliseconds(wire.timestamp),
        id=_text(wire.id),
        token_ids=wire.assets_ids or [],
        outcomes=wire.outcomes or [],
        winning_asset_id=wire.winning_asset_id or None,
        winning_outcome=wire.winning_outcome or None,
    )


def _text(value: str | int | None) -> str:
    return "" if value is None else str(value)


def _piecewise(frame: str | bytes, fault: Exception) -> list[ChannelMessage | RefusedObject]:
    """Parse a frame that failed as a whole: a keep-alive, an unknown kind, or a bad object among good ones."""
    text = frame if isinstance(frame, bytes) else frame.encode("utf-8", "replace")
    bare = text.strip()
    if bare == b"PONG":
        return [Pong()]
    read: list[ChannelMessage | RefusedObject] = []
    if bare[:1] == b"[":
        try:
            pieces = _pieces.decode(text)
        except FAULTS:
            return [refused(SOURCE, fault, text)]
        for piece in pieces:
            _piece(bytes(piece), read)
    elif bare:
        _piece(text, read)
    return read


def _piece(text: bytes, read: list[ChannelMessage | RefusedObject]) -> None:
    """Parse one object; refuse it with its payload if that fails."""
    mark = len(read)
    try:
        _convert(_object.decode(text), read)
    except FAULTS as fault:
        del read[mark:]
        kind = ""
        with contextlib.suppress(*FAULTS):
            kind = _kind.decode(text).event_type
        if kind == "price_change":
            _salvage(text, fault, read)
        elif kind and kind not in KINDS:
            read.append(Unknown(kind[:64]))
        else:
            read.append(refused(SOURCE, fault, text))


def _salvage(text: bytes, fault: Exception, read: list[ChannelMessage | RefusedObject]) -> None:
    """Keep the readable changes of one message; refuse the rest, each with its own payload."""
    try:
        wire = _entries.decode(text)
        ts_ms = milliseconds(wire.timestamp)
    except FAULTS:
        read.append(refused(SOURCE, fault, text))
        return
    for piece in wire.price_changes:
        try:
            read.append(_level(_entry.decode(piece), wire.market.lower(), ts_ms))
        except FAULTS as own:
            read.append(refused(SOURCE, f"price_change of {wire.market} at {ts_ms}: {own}", bytes(piece)))
