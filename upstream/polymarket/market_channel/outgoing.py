"""What the market channel says, field by field as the exchange sends it: numbers as text, times as text in ms.

For whoever speaks in its place, the sandbox and replays; what clients make of it stands in `market_wire`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from upstream.transport.micro import text

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level(msgspec.Struct):
    price: str
    size: str


class BookSummary(msgspec.Struct, kw_only=True):
    """What `GET /book` answers."""

    market: str
    asset_id: str
    timestamp: str
    hash: str
    bids: list[Level]
    asks: list[Level]
    min_order_size: str
    tick_size: str
    neg_risk: bool
    last_trade_price: str | msgspec.UnsetType = msgspec.UNSET


class BookMessage(BookSummary, kw_only=True):
    event_type: str = "book"


class LevelChange(msgspec.Struct):
    asset_id: str
    price: str
    size: str
    side: str
    hash: str
    best_bid: str
    best_ask: str


class PriceChange(msgspec.Struct):
    market: str
    price_changes: list[LevelChange]
    timestamp: str
    event_type: str = "price_change"


class LastTradePrice(msgspec.Struct):
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
    market: str
    asset_id: str
    old_tick_size: str
    new_tick_size: str
    timestamp: str
    event_type: str = "tick_size_change"


class BestBidAsk(msgspec.Struct):
    market: str
    asset_id: str
    best_bid: str
    best_ask: str
    spread: str
    timestamp: str
    event_type: str = "best_bid_ask"


class EventMessage(msgspec.Struct):
    id: str
    ticker: str
    slug: str
    title: str
    description: str


class NewMarket(msgspec.Struct, kw_only=True):
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


def levels(side: Iterable[tuple[int, int]]) -> list[Level]:
    return [Level(text(price), text(size)) for price, size in side]
