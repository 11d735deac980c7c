"""Messages of the market channel as sent, for the parser: each docstring holds a sample."""

from __future__ import annotations

import msgspec

from upstream.polymarket.book import WireBook
from upstream.polymarket.fields import named
from upstream.transport.numbers import Number


class WireChange(msgspec.Struct, gc=False):
    """One changed level."""

    asset_id: str
    price: Number
    size: Number
    side: str
    hash: str | None = None
    best_bid: Number | None = None
    best_ask: Number | None = None


class WireOldChange(msgspec.Struct, gc=False):
    """One changed level, in the format before September 2025."""

    price: Number
    size: Number
    side: str


class WirePriceChange(msgspec.Struct, gc=False, tag_field="event_type", tag="price_change"):
    """Since September 2025, both tokens of a market together:
    {"market":"0x5f65…","price_changes":[{"asset_id":"5211…","price":"0.6","size":"3300","side":"BUY","hash":"bf32…",
    "best_bid":"0.6","best_ask":"0.7"},…],"timestamp":"1729084877448","event_type":"price_change"}

    Before: {…,"asset_id":"1913…","hash":"af03…","changes":[{"price":"0.23","side":"SELL","size":"300"},…]}
    At first: {…,"asset_id":"4833…","hash":"bf32…","price":"0.514","side":"SELL","size":"21574.08"}
    """  # noqa: D205

    timestamp: str | int
    market: str = ""
    price_changes: list[WireChange] | None = None
    changes: list[WireOldChange] | None = None
    asset_id: str | None = None
    hash: str | None = None
    price: Number | None = None
    side: str | None = None
    size: Number | None = None

    def entries(self) -> list[WireChange]:
        """Return the changes, from any of the three formats."""
        if self.price_changes is not None:
            return self.price_changes
        token = named(self.asset_id or "")
        if self.changes is not None:
            return [WireChange(token, change.price, change.size, change.side, self.hash) for change in self.changes]
        if self.price is None or self.side is None or self.size is None:
            raise ValueError("a price_change without changes")
        return [WireChange(token, self.price, self.size, self.side, self.hash)]


class WireLastTrade(msgspec.Struct, gc=False, tag_field="event_type", tag="last_trade_price"):
    """{"asset_id":"2174…","event_type":"last_trade_price","fee_rate_bps":"0","market":"0xdd22…","price":"0.491","side":"SELL",
    "size":"85.36","timestamp":"1724564136087"}, and since 2026 "transaction_hash":"0x…"
    """  # noqa: D205

    asset_id: str
    timestamp: str | int
    price: Number
    size: Number
    side: str
    market: str = ""
    fee_rate_bps: Number | None = None
    transaction_hash: str | None = None


class WireTickSize(msgspec.Struct, tag_field="event_type", tag="tick_size_change"):
    """{"asset_id":"1154…","event_type":"tick_size_change","market":"0xbacd…","new_tick_size":"0.001","old_tick_size":"0.01",
    "timestamp":"1739068041853"}
    """  # noqa: D205

    asset_id: str
    timestamp: str | int
    new_tick_size: Number
    old_tick_size: Number | None = None
    market: str = ""


class WireBestBidAsk(msgspec.Struct, gc=False, tag_field="event_type", tag="best_bid_ask"):
    """{"event_type":"best_bid_ask","market":"0x0005…","asset_id":"8535…","best_bid":"0.73","best_ask":"0.77","spread":"0.04",
    "timestamp":"1766789469958"}
    """  # noqa: D205

    asset_id: str
    timestamp: str | int
    market: str = ""
    best_bid: Number | None = None
    best_ask: Number | None = None


class WireEvent(msgspec.Struct):
    """The event of a new market."""

    id: str | int | None = None
    slug: str | None = None
    title: str | None = None


class WireNewMarket(msgspec.Struct, tag_field="event_type", tag="new_market"):
    """{"event_type":"new_market","id":"1031769","question":"Will …?","market":"0x311d…","slug":"nvda-above-240",
    "description":"…","assets_ids":["7604…","3169…"],"outcomes":["Yes","No"],"event_message":{"id":"125819","slug":…,"title":…},
    "timestamp":"1766790415550","tags":["stocks"],"condition_id":"0x311d…","active":true,"order_price_min_tick_size":"0.01",…}
    """  # noqa: D205

    timestamp: str | int
    market: str = ""
    condition_id: str | None = None
    id: str | int | None = None
    question: str | None = None
    slug: str | None = None
    description: str | None = None
    assets_ids: list[str] | None = None
    clob_token_ids: list[str] | None = None
    outcomes: list[str] | None = None
    tags: list[str] | None = None
    event_message: WireEvent | None = None
    active: bool | None = None
    order_price_min_tick_size: Number | None = None


class WireResolved(msgspec.Struct, tag_field="event_type", tag="market_resolved"):
    """{"event_type":"market_resolved","id":"1031769","market":"0x311d…","assets_ids":["7604…","3169…"],"outcomes":["Yes","No"],
    "winning_asset_id":"7604…","winning_outcome":"Yes","timestamp":"1766790415550","tags":["stocks"]}
    """  # noqa: D205

    timestamp: str | int
    market: str
    id: str | int | None = None
    assets_ids: list[str] | None = None
    outcomes: list[str] | None = None
    winning_asset_id: str | None = None
    winning_outcome: str | None = None


Wire = WireBook | WirePriceChange | WireLastTrade | WireTickSize | WireBestBidAsk | WireNewMarket | WireResolved
KINDS = frozenset(
    {"book", "price_change", "last_trade_price", "tick_size_change", "best_bid_ask", "new_market", "market_resolved"}
)
