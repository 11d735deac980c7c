"""What the lists of markets answer, and what is told of one market."""

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

Returned = Annotated[int, Meta(ge=0, description="How many there are in `data`")]
ComputedAt = Annotated[
    UnixSeconds | None, Meta(description="When these figures were computed: Unix seconds; null: not yet")
]


class BusyMarket(Market):
    """A market, and what was traded in the period asked for."""

    period_volume_usd: Annotated[
        Usd, Meta(description="US dollars traded in the period, over all outcomes, as recorded here")
    ]
    period_trades: Count


class EndingMarket(Market):
    """A market, and when it ends."""

    resolves_at: UnixSeconds
    time_to_resolution: Annotated[int, Meta(ge=0, description="Seconds")]


class Resolving(Struct):
    """Active markets, those that end first first."""

    within: Annotated[str, Meta(examples=["24h"])]
    data: list[EndingMarket]
    count: Returned


class TrendingMarket(Market):
    """A market, and how far its last hour stands out."""

    vol_1h: Annotated[Usd, Meta(description="US dollars traded in the last hour, over all outcomes")]
    vol_24h: Annotated[Usd, Meta(description="US dollars traded in the last 24 hours, over all outcomes")]
    spike_ratio: Annotated[
        float | None,
        Meta(
            description="vol_1h over the hourly mean of vol_24h: over 24 hours, or those since the market was first "
            "traded; null while these are less than three",
            examples=[3.5],
        ),
    ]


class Trending(Struct):
    """Active markets, those whose last hour stands out most first."""

    computed_at: ComputedAt
    data: list[TrendingMarket]
    count: Returned


class MovingMarket(Market):
    """A market, and how far its price has moved. Prices are of the first outcome."""

    price_now: Price01
    price_baseline: Annotated[Price01, Meta(description="The earliest sample of the last 65 minutes")]
    price_move: Annotated[float, Meta(ge=-1, le=1, description="price_now less price_baseline")]


class Breaking(Struct):
    """Active markets, those whose price has moved most first."""

    computed_at: ComputedAt
    data: list[MovingMarket]
    count: Returned


class NewMarkets(Struct):
    """Markets listed lately, newest first."""

    hours: Annotated[int, Meta(examples=[24])]
    data: list[Market]
    count: Returned


TimeframeName = Literal["5m", "15m", "1h", "4h", "1d", "1w", "long"]
NO_TIMEFRAMES = [{"timeframe": name, "count": 0, "markets": []} for name in get_args(TimeframeName)]


class TimedMarket(Market):
    """A market, and how long it still runs."""

    mins_until_close: Annotated[float, Meta(ge=0)]


class Timeframe(Struct):
    """Markets with about as much time left."""

    timeframe: Annotated[
        TimeframeName,
        Meta(description="The time left is at most this, and more than the timeframe before; `long`: over a week"),
    ]
    count: Annotated[int, Meta(ge=0, description="Markets of this timeframe, those not listed included")]
    markets: list[TimedMarket]


class Timeframes(Struct):
    """Markets by the time left to them; those past their end are in none."""

    timeframes: Annotated[list[Timeframe], Meta(min_length=7, max_length=7, examples=[NO_TIMEFRAMES])]
    timestamp: UnixSeconds


class ComparedMarket(Market):
    """A market and its last 24 hours."""

    stats_24h: Stats | None


class Comparison(Struct):
    """Markets side by side, in the order asked for; those unknown are left out."""

    data: list[ComparedMarket]
    count: Returned


class Related(Struct):
    """The other markets of a market's event."""

    event_id: Annotated[str | None, Meta(examples=["12345"])]
    data: list[Market]
    count: Returned


class Summary(Struct):
    """What is going on with a market."""

    market_id: MarketId
    slug: Slug | None
    question: Question
    status: Status
    price: Price | None
    stats_24h: Stats | None
    signals: Annotated[list[Signal], Meta(description="The newest ten of the last 24 hours")]
    ts: UnixMs


class MarketStats(Struct):
    """24 hours of a market's first outcome; without a trade there is no price."""

    market_id: MarketId
    outcome: Outcome
    open: Price01 | None
    high: Price01 | None
    low: Price01 | None
    close: Price01 | None
    volume: Shares
    volume_usd: Annotated[Usd, Meta(description="US dollars traded of this outcome alone")]
    trades: Count
    price_change: Change | None
    price_change_pct: Percent | None
    vwap: Price01 | None
    window_start: UnixMs
    window_end: UnixMs


Freshness = Annotated[
    Literal["fresh", "stale", "missing"],
    Meta(
        description="`fresh`: as the exchange said last; `stale`: the feed is late, or the book is in doubt; "
        "`missing`: there is none, or the market has ended"
    ),
]


class BookHealth(BookState):
    """The state of the order book, and how fresh it is."""

    freshness: Freshness


class PriceHealth(Struct):
    """How fresh the live price is."""

    freshness: Freshness
    mid: Price01 | None
    ts: UnixMs | None
    age_ms: int | None


class MarketHealth(Struct):
    """How fresh a market's data is; the worse of book and price gives the whole its status."""

    market_id: MarketId
    status: Freshness
    orderbook: BookHealth
    price: PriceHealth
    signal_count: Count
    checked_at: Annotated[str, Meta(examples=["2026-11-21T12:00:00Z"])]


class Liquidity(Struct):
    """What can be bought and sold right now, best prices first."""

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
    """Where a market leans: bullish or bearish beyond 5 % in 24 hours; volume against its hourly mean, beyond 25 %."""

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
