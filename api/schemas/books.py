"""Past order books."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.schemas.records import BookGap, Count, Level, MarketId, Outcome, Price01, Spread, TokenId, UnixMs, Usd


class BookAt(Struct):
    """The book at one moment: its top levels, and figures of the full book."""

    ts: UnixMs
    bids: list[Level]
    asks: list[Level]
    best_bid: Price01 | None
    best_ask: Price01 | None
    mid: Price01 | None
    spread: Spread | None
    microprice: Annotated[
        Price01 | None,
        Meta(description="The best prices, each weighted by the size on the opposite side"),
    ]
    bid_depth_usd: Annotated[Usd, Meta(description="Price times size, over all bids")]
    ask_depth_usd: Annotated[Usd, Meta(description="Price times size, over all asks")]
    imbalance: Annotated[
        float | None,
        Meta(description="(bids - asks) / (bids + asks), in shares over the full book: -1 to 1"),
    ]
    status: Annotated[Literal["verified", "unverified", "gap"], Meta(examples=["verified"])]


class BookHistory(Struct):
    """The book of an outcome at even steps, oldest first."""

    market_id: MarketId
    outcome: Outcome
    token_id: TokenId
    step_s: Count
    depth: Count
    data: list[BookAt]
    count: Count
    gaps: Annotated[list[BookGap], Meta(description="Gaps that overlap the requested range")]
