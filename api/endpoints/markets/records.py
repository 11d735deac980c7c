"""Responses of the market endpoints.

The JSON is built by `sql/queries/markets.sql`, `rankings.sql` and `overview.sql`.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct

from api.endpoints.signals.records import Signal
from api.schemas.records import (
    BookState,
    Change,
    Count,
    Level,
    Market,
    MarketId,
    Outcome,
    Percent,
    Price,
    Price01,
    Question,
    Shares,
    Slug,
    Spread,
    Stats,
    TokenId,
    UnixMs,
    UnixSeconds,
    Usd,
)
from api.schemas.requests import Status

Returned = Annotated[int, Meta(ge=0, description="Number of records in `data`")]
ComputedAt = Annotated[
    UnixSeconds | None, Meta(description="When these figures were computed: Unix seconds; null: not yet")
]


class BusyMarket(Market):
    """A market, with its volume and trades in the requested period."""

    period_volume_usd: Annotated[
        Usd, Meta(description="US dollars traded in the period, over all outcomes, as recorded here")
    ]
    period_trades: Count


class EndingMarket(Market):
    """A market and its end."""

    resolves_at: UnixSeconds
    time_to_resolution: Annotated[int, Meta(ge=0, description="Seconds")]


class Resolving(Struct):
    """Active markets, by end, earliest first."""

    within: Annotated[str, Meta(examples=["24h"])]
    data: list[EndingMarket]
    count: Returned


class TrendingMarket(Market):
    """A market, with its volume spike in the last hour."""

    vol_1h: Annotated[Usd, Meta(description="US dollars traded in the last hour, over all outcomes")]
    vol_24h: Annotated[Usd, Meta(description="US dollars traded in the last 24 hours, over all outcomes")]
    spike_ratio: Annotated[
        float | None,
        Meta(
            description="vol_1h divided by the hourly mean of vol_24h: over 24 hours, or the hours since the market's "
            "first trade; null while these are fewer than three",
            examples=[3.5],
        ),
    ]


class Trending(Struct):
    """Active markets, by volume spike, highest first."""

    computed_at: ComputedAt
    data: list[TrendingMarket]
    count: Returned


class MovingMarket(Market):
    """A market, with its price move in the last hour. Prices are of the first outcome."""

    price_now: Price01
    price_baseline: Annotated[Price01, Meta(description="The earliest sample of the last 65 minutes")]
    price_move: Annotated[float, Meta(ge=-1, le=1, description="price_now minus price_baseline")]


class Breaking(Struct):
    """Active markets, by price move, largest first."""

    computed_at: ComputedAt
    data: list[MovingMarket]
    count: Returned


class NewMarkets(Struct):
    """Recently listed markets, newest first."""

    hours: Annotated[int, Meta(examples=[24])]
    data: list[Market]
    count: Returned


TimeframeName = Literal["5m", "15m", "1h", "4h", "1d", "1w", "long"]
NO_TIMEFRAMES = [{"timeframe": name, "count": 0, "markets": []} for name in get_args(TimeframeName)]


class TimedMarket(Market):
    """A market and its remaining time."""

    mins_until_close: Annotated[float, Meta(ge=0)]


class Timeframe(Struct):
    """Markets of one timeframe."""

    timeframe: Annotated[
        TimeframeName,
        Meta(description="Remaining time is at most this, and more than the previous timeframe; `long`: over a week"),
    ]
    count: Annotated[int, Meta(ge=0, description="Markets of this timeframe, including those not listed")]
    markets: list[TimedMarket]


class Timeframes(Struct):
    """Markets by remaining time; markets past their end are omitted."""

    timeframes: Annotated[list[Timeframe], Meta(min_length=7, max_length=7, examples=[NO_TIMEFRAMES])]
    timestamp: UnixSeconds


class ComparedMarket(Market):
    """A market with its 24-hour statistics."""

    stats_24h: Stats | None


class Comparison(Struct):
    """Markets side by side, in the requested order; unknown ones are omitted."""

    data: list[ComparedMarket]
    count: Returned


class Related(Struct):
    """The other markets of a market's event."""

    event_id: Annotated[str | None, Meta(examples=["12345"])]
    data: list[Market]
    count: Returned


class Summary(Struct):
    """A market's price, statistics and recent signals."""

    market_id: MarketId
    slug: Slug | None
    question: Question
    status: Status
    price: Price | None
    stats_24h: Stats | None
    signals: Annotated[list[Signal], Meta(description="The newest ten of the last 24 hours")]
    ts: UnixMs


class MarketStats(Struct):
    """24-hour statistics of a market's first outcome; prices are null if there was no trade."""

    market_id: MarketId
    outcome: Outcome
    open: Price01 | None
    high: Price01 | None
    low: Price01 | None
    close: Price01 | None
    volume: Shares
    volume_usd: Annotated[Usd, Meta(description="US dollars traded, of this outcome only")]
    trades: Count
    price_change: Change | None
    price_change_pct: Percent | None
    vwap: Price01 | None
    window_start: UnixMs
    window_end: UnixMs


Freshness = Annotated[
    Literal["fresh", "stale", "missing"],
    Meta(
        description="`fresh`: equal to the exchange's latest data; `stale`: the feed is late or the book is "
        "unverified; "
        "`missing`: there is no data, or the market has ended"
    ),
]


class BookHealth(BookState):
    """The state of the order book and its freshness."""

    freshness: Freshness


class PriceHealth(Struct):
    """Freshness of the live price."""

    freshness: Freshness
    mid: Price01 | None
    ts: UnixMs | None
    age_ms: int | None


class MarketHealth(Struct):
    """Freshness of a market's data; `status` is the worse of book and price."""

    market_id: MarketId
    status: Freshness
    orderbook: BookHealth
    price: PriceHealth
    signal_count: Count
    checked_at: Annotated[str, Meta(examples=["2026-11-21T12:00:00Z"])]


class Liquidity(Struct):
    """The live order book's depth, best prices first."""

    market_id: MarketId
    outcome: Outcome
    token_id: TokenId
    spread: Spread | None
    mid_price: Price01 | None
    best_bid: Price01 | None
    best_ask: Price01 | None
    bids: list[Level]
    asks: list[Level]
    depth_usd: Usd
    ts: UnixMs


class Sentiment(Struct):
    """Price and volume trend: bullish or bearish beyond 5 % in 24 hours; volume beyond 25 % of its hourly mean."""

    market_id: MarketId
    sentiment: Annotated[Literal["bullish", "bearish", "neutral"], Meta(examples=["neutral"])]
    price_change_pct: Percent | None
    volume_trend: Annotated[Literal["up", "down", "flat"], Meta(examples=["flat"])]
    vol_1h: Annotated[Usd, Meta(description="US dollars traded in the last hour, over all outcomes")]
    signals_count: Count
    stats_24h: Stats | None
    computed_at: Annotated[
        UnixSeconds | None,
        Meta(description="When `vol_1h` and `volume_trend` were computed: Unix seconds; null: not yet"),
    ]
    timestamp: UnixSeconds
