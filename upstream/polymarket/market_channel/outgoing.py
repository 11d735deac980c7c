"""Messages of the market channel as the exchange sends them: numbers as text, times as text in ms.

Used by the sandbox and by replays, which send them; the clients' parser is in `wire`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from upstream.transport.micro import text

if TYPE_CHECKING:
    from collections.abc import Iterable


class OutgoingLevel(msgspec.Struct):
    """A price level."""

    price: str
    size: str


class BookSummary(msgspec.Struct, kw_only=True):
    """The response of `GET /book`."""

    market: str
    asset_id: str
    timestamp: str
    hash: str
    bids: list[OutgoingLevel]
    asks: list[OutgoingLevel]
    min_order_size: str
    tick_size: str
    neg_risk: bool
    last_trade_price: str | msgspec.UnsetType = msgspec.UNSET


class BookMessage(BookSummary, kw_only=True):
    """A whole book."""

    event_type: str = "book"


class LevelChange(msgspec.Struct):
    """One changed level."""

    asset_id: str
    price: str
    size: str
    side: str
    hash: str
    best_bid: str
    best_ask: str


class PriceChange(msgspec.Struct):
    """Changed levels of a market."""

    market: str
    price_changes: list[LevelChange]
    timestamp: str
    event_type: str = "price_change"


class LastTradePrice(msgspec.Struct):
    """A trade."""

    market: str
    asset_id: str
    price: str
    size: str
    side: str
    timestamp: str
    transaction_hash: str
    fee_rate_bps: str = "0"
    event_type: str = "last_trade_price"


class TickSizeChange(msgspec.Struct):
    """A new price step of a token."""

    market: str
    asset_id: str
    old_tick_size: str
    new_tick_size: str
    timestamp: str
    event_type: str = "tick_size_change"


class BestBidAsk(msgspec.Struct):
    """The best prices of a token."""

    market: str
    asset_id: str
    best_bid: str
    best_ask: str
    spread: str
    timestamp: str
    event_type: str = "best_bid_ask"


class EventMessage(msgspec.Struct):
    """The event of a market."""

    id: str
    ticker: str
    slug: str
    title: str
    description: str


class NewMarket(msgspec.Struct, kw_only=True):
    """A market was listed."""

    id: str
    question: str
    market: str
    slug: str
    description: str
    assets_ids: list[str]
    outcomes: list[str]
    event_message: EventMessage
    timestamp: str
    tags: list[str]
    condition_id: str
    active: bool
    clob_token_ids: list[str]
    sports_market_type: str = ""
    line: str = ""
    game_start_time: str = ""
    order_price_min_tick_size: str = "0.01"
    group_item_title: str = ""
    taker_base_fee: str = "0"
    fees_enabled: bool = False
    event_type: str = "new_market"


class MarketResolved(msgspec.Struct, kw_only=True):
    """A market was resolved."""

    id: str
    question: str
    market: str
    slug: str
    assets_ids: list[str]
    outcomes: list[str]
    winning_asset_id: str
    winning_outcome: str
    event_message: EventMessage
    timestamp: str
    tags: list[str]
    event_type: str = "market_resolved"


def levels(side: Iterable[tuple[int, int]]) -> list[OutgoingLevel]:
    """Return the levels of a side, given as (price, size) in micro-units."""
    return [OutgoingLevel(text(price), text(size)) for price, size in side]
