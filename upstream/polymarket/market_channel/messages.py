"""Messages of the market channel in our units (micro-units), one struct per kind."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from upstream.polymarket.book import Book
from upstream.polymarket.gamma.events import SITE, topic
from upstream.transport.numbers import MICRO


class LevelChange(msgspec.Struct, frozen=True, gc=False):
    """One price level has a new total; 0 removes it."""

    asset_id: str
    market: str
    ts_ms: int
    hash: str
    """Hex digest of the book after the change, or ""."""
    side: int
    """1 bids, -1 asks."""
    price: int
    size: int
    best_bid: int | None = None
    """The exchange's figure after the change; 0 for an empty side. None in captures before September 2025."""
    best_ask: int | None = None
    """Likewise; 1,000,000 (a price of 1) for an empty side."""


class LastTrade(msgspec.Struct, frozen=True, gc=False):
    """A trade, from its taker's side."""

    asset_id: str
    market: str
    ts_ms: int
    side: int
    """1 BUY, -1 SELL: the taker's."""
    price: int
    size: int
    tx_hash: str | None = None
    """0x and 64 lower-case hex digits; None before 2026."""
    fee_rate_bps: int | None = None
    trade_id: int | None = None
    """64 bits of its id, where the exchange gives trades ids; otherwise None."""
    is_block: bool = False
    """Whether it was agreed upon beside the order book: no part of the last price."""


class TickSize(msgspec.Struct, frozen=True, gc=False):
    """The price step of a token has changed."""

    asset_id: str
    market: str
    ts_ms: int
    old: int | None
    new: int


class BestBidAsk(msgspec.Struct, frozen=True, gc=False):
    """The best prices of a token; None where the exchange leaves one empty."""

    asset_id: str
    market: str
    ts_ms: int
    best_bid: int | None
    best_ask: int | None


class NewMarket(msgspec.Struct, frozen=True):
    """A market was listed; the catalogue has more soon after."""

    market: str
    ts_ms: int
    id: str
    question: str
    slug: str
    description: str | None
    token_ids: list[str]
    outcomes: list[str]
    tags: list[str]
    event_id: str | None
    event_slug: str | None
    event_title: str | None
    tick_size: int | None
    active: bool

    def row(self, source: str = "exchange") -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`; missing fields are not known yet."""
        return {
            "market_id": self.market,
            "gamma_id": self.id or None,
            "slug": self.slug or None,
            "question": self.question or self.slug,
            "description": self.description,
            "status": "ACTIVE",
            "event_id": self.event_id,
            "event_title": self.event_title,
            "category": topic(None, self.tags),
            "tags": self.tags,
            "outcomes": self.outcomes,
            "token_ids": self.token_ids,
            "tick_size": self.tick_size,
            "url": f"{SITE}/event/{self.event_slug}/{self.slug}" if self.event_slug and self.slug else None,
            "source": source,
        }


class Resolved(msgspec.Struct, frozen=True):
    """A market was settled."""

    market: str
    ts_ms: int
    id: str
    token_ids: list[str]
    outcomes: list[str]
    winning_asset_id: str | None
    winning_outcome: str | None

    @property
    def winner(self) -> int | None:
        """Return the winning outcome's index; None when the payout is shared or not sent."""
        if self.winning_asset_id in self.token_ids:
            return self.token_ids.index(self.winning_asset_id)
        if self.winning_outcome in self.outcomes:
            return self.outcomes.index(self.winning_outcome)
        return None

    def row(self, source: str = "exchange") -> dict[str, Any]:
        """Return a row keyed like `sql.tables.markets`; without one winner just closed, until the catalogue updates."""
        winner = self.winner
        at = datetime.fromtimestamp(self.ts_ms / 1000, UTC)
        closed = {"market_id": self.market, "status": "CLOSED", "closed_at": at, "source": source}
        if winner is None:
            return closed
        places = max(len(self.outcomes), len(self.token_ids))
        return closed | {
            "status": "RESOLVED",
            "resolved_at": at,
            "winning_outcome": winner,
            "outcome_prices": [MICRO if place == winner else 0 for place in range(places)],
        }


class Pong(msgspec.Struct, frozen=True):
    """The exchange's answer to our PING."""


class Unknown(msgspec.Struct, frozen=True):
    """A kind of message that this version does not know: counted, not an error."""

    event_type: str


ChannelMessage = Book | LevelChange | LastTrade | TickSize | BestBidAsk | NewMarket | Resolved | Pong | Unknown
