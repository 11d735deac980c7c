"""Messages as sent, for the parser: each docstring holds a sample."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from upstream.kalshi.book import SentLevel
from upstream.kalshi.rest.markets import PriceRange
from upstream.kalshi.trades import WireTrade
from upstream.transport.numbers import Number

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Envelope(msgspec.Struct, kw_only=True, gc=False, tag_field="type"):
    """What every message may have beside `type` and `msg`; `id` repeats a command's, and 0 is none."""

    sid: Count = 0
    seq: Count = 0
    id: Count = 0
    sending_ts_ms: Count | None = None


class SnapshotBody(msgspec.Struct, gc=False):
    """The whole book; an empty side's key is absent."""

    market_ticker: str
    yes_dollars_fp: list[SentLevel] | None = None
    no_dollars_fp: list[SentLevel] | None = None


class WireSnapshot(Envelope, gc=False, tag="orderbook_snapshot"):
    """{"type":"orderbook_snapshot","sid":1,"seq":1,"msg":{"market_ticker":"KXWTA-26JUN11-LEP","market_id":"f5ed38e2-…",
    "yes_dollars_fp":[["0.4700","3.00"]],"no_dollars_fp":[["0.4800","2.00"]]}}
    """  # noqa: D205

    msg: SnapshotBody


class DeltaBody(msgspec.Struct, gc=False):
    """A signed change of one level."""

    market_ticker: str
    price_dollars: Number
    delta_fp: Number
    side: str
    ts_ms: int | None = None
    ts: str | int | float | None = None


class WireDelta(Envelope, gc=False, tag="orderbook_delta"):
    """{"type":"orderbook_delta","sid":1,"seq":2,"msg":{"market_ticker":"KXWTA-26JUN11-LEP","market_id":"f5ed38e2-…",
    "price_dollars":"0.4700","delta_fp":"-3.00","side":"yes","ts":"2026-06-11T06:31:29.957081Z","ts_ms":1781159489957}}
    """  # noqa: D205

    msg: DeltaBody


class TickerBody(msgspec.Struct, gc=False):
    """Best prices and figures of one market; volume and open interest count contracts."""

    market_ticker: str
    price_dollars: Number | None = None
    yes_bid_dollars: Number | None = None
    yes_ask_dollars: Number | None = None
    yes_bid_size_fp: Number | None = None
    yes_ask_size_fp: Number | None = None
    last_trade_size_fp: Number | None = None
    volume_fp: Number | None = None
    open_interest_fp: Number | None = None
    ts_ms: int | None = None
    ts: str | int | float | None = None


class WireTicker(Envelope, gc=False, tag="ticker"):
    """{"type":"ticker","sid":11,"sending_ts_ms":1669149841123,"msg":{"market_id":"9b0f6b43-…","market_ticker":"FED-23DEC-T3.00",
    "price_dollars":"0.4800","yes_bid_dollars":"0.4500","yes_ask_dollars":"0.5300","volume_fp":"33896.00",
    "open_interest_fp":"20422.00","dollar_volume":16948,"dollar_open_interest":10211,"yes_bid_size_fp":"300.00",
    "yes_ask_size_fp":"150.00","last_trade_size_fp":"25.00","ts":1669149841,"ts_ms":1669149841000,"time":"2022-11-22T20:44:01Z"}}
    """  # noqa: D205

    msg: TickerBody


class WireSocketTrade(Envelope, gc=False, tag="trade"):
    """{"type":"trade","sid":11,"seq":2,"msg":{"trade_id":"d91bc706-…","market_ticker":"HIGHNY-22DEC23-B53.5",…}}"""

    msg: WireTrade


class CreatedBody(msgspec.Struct):
    """What is said of a new market beside its times."""

    event_ticker: str | None = None
    name: str | None = None
    title: str | None = None
    yes_sub_title: str | None = None
    no_sub_title: str | None = None
    rules_primary: str | None = None
    rules_secondary: str | None = None


class LifecycleBody(msgspec.Struct):
    """Times are unix seconds, and may lie in the future."""

    market_ticker: str
    event_type: str
    open_ts: int | float | None = None
    close_ts: int | float | None = None
    determination_ts: int | float | None = None
    settled_ts: int | float | None = None
    result: str | None = None
    settlement_value: Number | None = None
    is_deactivated: bool | None = None
    price_ranges: list[PriceRange] | None = None
    yes_sub_title: str | None = None
    additional_metadata: CreatedBody | None = None


class WireLifecycle(Envelope, tag="market_lifecycle_v2"):
    """{"type":"market_lifecycle_v2","sid":1,"seq":279597,"msg":{"market_ticker":"KXMLBSPREAD-26JUL19-ATH4",
    "event_type":"determined","result":"no","settlement_value":"0.0000","determination_ts":1784501722}}

    `settled` has settled_ts; `created` open_ts, close_ts, price_ranges and additional_metadata {"name":…,"title":…,
    "yes_sub_title":…,"no_sub_title":…,"rules_primary":…,"rules_secondary":…,"event_ticker":…}; `activated` and
    `deactivated` is_deactivated; `close_date_updated` close_ts; `price_level_structure_updated` price_ranges;
    `metadata_updated` yes_sub_title and strikes.
    """  # noqa: D205

    msg: LifecycleBody


class EventBody(msgspec.Struct):
    """An event that was listed."""

    event_ticker: str
    title: str | None = None
    subtitle: str | None = None
    series_ticker: str | None = None
    collateral_return_type: str | None = None


class WireEventLifecycle(Envelope, tag="event_lifecycle"):
    """{"type":"event_lifecycle","sid":5,"seq":9,"msg":{"event_ticker":"KXQUICKSETTLE-26JAN25H2150","exchange_index":0,
    "title":"…","subtitle":"Jan 25 at 21:50","collateral_return_type":"MECNET","series_ticker":"KXQUICKSETTLE"}}
    """  # noqa: D205

    msg: EventBody


class EventFeeBody(msgspec.Struct):
    """Null where an override was cleared."""

    event_ticker: str
    fee_type_override: str | None = None
    fee_multiplier_override: Number | None = None


class WireEventFee(Envelope, tag="event_fee_update"):
    """{"type":"event_fee_update","sid":5,"seq":10,"msg":{"event_ticker":"KXNBA-26","fee_type_override":"flat",
    "fee_multiplier_override":0.5}}
    """  # noqa: D205

    msg: EventFeeBody


class ChannelBody(msgspec.Struct):
    """A channel, and the number of its subscription."""

    channel: str
    sid: Count


class WireSubscribed(Envelope, tag="subscribed"):
    """{"type":"subscribed","id":1,"msg":{"channel":"orderbook_delta","sid":1}}: one for each channel of a command."""

    msg: ChannelBody


class TickersBody(msgspec.Struct):
    """All markets of a subscription."""

    market_tickers: list[str] | None = None


class WireOk(Envelope, tag="ok"):
    """{"id":123,"sid":1,"seq":222,"type":"ok","msg":{"market_tickers":["…"]}}

    Of list_subscriptions {"id":3,"type":"ok","msg":[{"channel":"ticker","sid":2}]}
    """

    msg: TickersBody | list[ChannelBody] | None = None


class WireUnsubscribed(Envelope, tag="unsubscribed"):
    """{"id":102,"sid":2,"seq":7,"type":"unsubscribed"}"""

    msg: Any = None


class ErrorBody(msgspec.Struct):
    """Codes are listed in `upstream.kalshi.socket.messages`."""

    code: int
    msg: str = ""
    market_ticker: str | None = None
    market_tickers: list[str] | None = None


class WireError(Envelope, tag="error"):
    """{"id":1,"type":"error","msg":{"code":8,"msg":"Unknown channel name"}}; of a subscription with sid and seq"""

    msg: ErrorBody


Wire = (
    WireSnapshot
    | WireDelta
    | WireTicker
    | WireSocketTrade
    | WireLifecycle
    | WireEventLifecycle
    | WireEventFee
    | WireSubscribed
    | WireOk
    | WireUnsubscribed
    | WireError
)
KINDS = frozenset(
    {
        *("orderbook_snapshot", "orderbook_delta", "ticker", "trade", "market_lifecycle_v2", "event_lifecycle"),
        *("event_fee_update", "subscribed", "ok", "unsubscribed", "error"),
    }
)
