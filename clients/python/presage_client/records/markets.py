"""Records that the operations of markets return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F722, F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record
from presage_client.records.common import Market, Price, Signal


class BookHealth(Record, kw_only=True):
    """The state of the order book and its freshness."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    status: Literal["live", "missing", "unverified"]
    """`unverified`: it disagrees with the exchange's best prices and is being refetched, or the live feed is late;
    `missing`: there is no book, or the market has ended.
    """
    best_bid: float | None
    """A probability, 0 to 1."""
    best_ask: float | None
    """A probability, 0 to 1."""
    bid_levels: int
    ask_levels: int
    ts: int | None
    """Unix milliseconds."""
    age_ms: int | None
    freshness: Literal["fresh", "missing", "stale"]
    """`fresh`: equal to the exchange's latest data; `stale`: the feed is late or the book is unverified; `missing`:
    there is no data, or the market has ended.
    """


class BookState(Record, kw_only=True):
    """The order book's status and best prices."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    status: Literal["live", "missing", "unverified"]
    """`unverified`: it disagrees with the exchange's best prices and is being refetched, or the live feed is late;
    `missing`: there is no book, or the market has ended.
    """
    best_bid: float | None
    """A probability, 0 to 1."""
    best_ask: float | None
    """A probability, 0 to 1."""
    bid_levels: int
    ask_levels: int
    ts: int | None
    """Unix milliseconds."""
    age_ms: int | None


class Breaking(Record, kw_only=True):
    """Active markets, by price move, largest first."""

    INSTANTS: ClassVar[dict[str, str]] = {"computed_at": "s"}

    computed_at: int | None
    """When these figures were computed: Unix seconds; null: not yet."""
    data: Records[MovingMarket]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, MovingMarket)


class BusyMarket(Market, kw_only=True):
    """A market, with its volume and trades in the requested period."""

    period_volume_usd: float
    """US dollars traded in the period, over all outcomes, as recorded here."""
    period_trades: int


class ComparedMarket(Market, kw_only=True):
    """A market with its 24-hour statistics."""

    stats_24h: Stats | None


class Comparison(Record, kw_only=True):
    """Markets side by side, in the requested order; unknown ones are omitted."""

    data: Records[ComparedMarket]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, ComparedMarket)


class EndingMarket(Market, kw_only=True):
    """A market and its end."""

    INSTANTS: ClassVar[dict[str, str]] = {**Market.INSTANTS, "resolves_at": "s"}

    resolves_at: int
    """Unix seconds."""
    time_to_resolution: int
    """Seconds."""


class MarketDetail(Market, kw_only=True):
    """A market, with its live price, order book state and 24-hour statistics."""

    description: str | None
    price: Price | None
    orderbook: BookState
    stats_24h: Stats | None


class MarketHealth(Record, kw_only=True):
    """Freshness of a market's data; `status` is the worse of book and price."""

    market_id: str
    """The condition id; of Kalshi the ticker."""
    status: Literal["fresh", "missing", "stale"]
    """`fresh`: equal to the exchange's latest data; `stale`: the feed is late or the book is unverified; `missing`:
    there is no data, or the market has ended.
    """
    orderbook: BookHealth
    price: PriceHealth
    signal_count: int
    checked_at: str


class MarketPage(Record, kw_only=True):
    """A page of markets."""

    data: Records[RankedMarket]
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, RankedMarket)


class MarketStats(Record, kw_only=True):
    """24-hour statistics of a market's first outcome; prices are null if there was no trade."""

    INSTANTS: ClassVar[dict[str, str]] = {"window_start": "ms", "window_end": "ms"}

    market_id: str
    """The condition id; of Kalshi the ticker."""
    outcome: int
    """Index of the outcome, from 0."""
    open: float | None
    """A probability, 0 to 1."""
    high: float | None
    """A probability, 0 to 1."""
    low: float | None
    """A probability, 0 to 1."""
    close: float | None
    """A probability, 0 to 1."""
    volume: float
    """Shares."""
    volume_usd: float
    """US dollars traded, of this outcome only."""
    trades: int
    price_change: float | None
    price_change_pct: float | None
    vwap: float | None
    """A probability, 0 to 1."""
    window_start: int
    """Unix milliseconds."""
    window_end: int
    """Unix milliseconds."""


class MovingMarket(Market, kw_only=True):
    """A market, with its price move in the last hour. Prices are of the first outcome."""

    price_now: float
    """A probability, 0 to 1."""
    price_baseline: float
    """The earliest sample of the last 65 minutes."""
    price_move: float
    """price_now minus price_baseline."""


class NewMarkets(Record, kw_only=True):
    """Recently listed markets, newest first."""

    hours: int
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class PriceHealth(Record, kw_only=True):
    """Freshness of the live price."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    freshness: Literal["fresh", "missing", "stale"]
    """`fresh`: equal to the exchange's latest data; `stale`: the feed is late or the book is unverified; `missing`:
    there is no data, or the market has ended.
    """
    mid: float | None
    """A probability, 0 to 1."""
    ts: int | None
    """Unix milliseconds."""
    age_ms: int | None


class RankedMarket(Market, kw_only=True):
    """A market in the market list."""

    period_volume_usd: float | None = None
    """US dollars traded in 24 hours, over all outcomes, when the list was ranked by it; constant over all pages of a
    list. Null before the first ranking; absent with `source=polymarket`.
    """


class Related(Record, kw_only=True):
    """The other markets of a market's event."""

    event_id: str | None
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class Resolving(Record, kw_only=True):
    """Active markets, by end, earliest first."""

    within: str
    data: Records[EndingMarket]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, EndingMarket)


class Sentiment(Record, kw_only=True):
    """Price and volume trend: bullish or bearish beyond 5 % in 24 hours; volume beyond 25 % of its hourly mean."""

    INSTANTS: ClassVar[dict[str, str]] = {"computed_at": "s", "timestamp": "s"}

    market_id: str
    """The condition id; of Kalshi the ticker."""
    sentiment: Literal["bearish", "bullish", "neutral"]
    price_change_pct: float | None
    volume_trend: Literal["down", "flat", "up"]
    vol_1h: float
    """US dollars traded in the last hour, over all outcomes."""
    signals_count: int
    stats_24h: Stats | None
    computed_at: int | None
    """When `vol_1h` and `volume_trend` were computed: Unix seconds; null: not yet."""
    timestamp: int
    """Unix seconds."""


class Stats(Record, kw_only=True):
    """24-hour statistics of an outcome."""

    INSTANTS: ClassVar[dict[str, str]] = {"window_start": "ms", "window_end": "ms"}

    open: float
    """A probability, 0 to 1."""
    high: float
    """A probability, 0 to 1."""
    low: float
    """A probability, 0 to 1."""
    close: float
    """A probability, 0 to 1."""
    volume: float
    """Shares."""
    volume_usd: float
    """US dollars traded, of this outcome only."""
    trades: int
    price_change: float
    price_change_pct: float | None
    vwap: float | None
    """A probability, 0 to 1."""
    window_start: int
    """Unix milliseconds."""
    window_end: int
    """Unix milliseconds."""


class Summary(Record, kw_only=True):
    """A market's price, statistics and recent signals."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    market_id: str
    """The condition id; of Kalshi the ticker."""
    slug: str | None
    question: str
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"]
    price: Price | None
    stats_24h: Stats | None
    signals: Records[Signal]
    """The newest ten of the last 24 hours."""
    ts: int
    """Unix milliseconds."""

    def __post_init__(self) -> None:
        self.signals = _record.Records(self.signals, Signal)


class TimedMarket(Market, kw_only=True):
    """A market and its remaining time."""

    mins_until_close: float


class Timeframe(Record, kw_only=True):
    """Markets of one timeframe."""

    timeframe: Literal["15m", "1d", "1h", "1w", "4h", "5m", "long"]
    """Remaining time is at most this, and more than the previous timeframe; `long`: over a week."""
    count: int
    """Markets of this timeframe, including those not listed."""
    markets: Records[TimedMarket]

    def __post_init__(self) -> None:
        self.markets = _record.Records(self.markets, TimedMarket)


class Timeframes(Record, kw_only=True):
    """Markets by remaining time; markets past their end are omitted."""

    INSTANTS: ClassVar[dict[str, str]] = {"timestamp": "s"}

    timeframes: Records[Timeframe]
    timestamp: int
    """Unix seconds."""

    def __post_init__(self) -> None:
        self.timeframes = _record.Records(self.timeframes, Timeframe)


class Trending(Record, kw_only=True):
    """Active markets, by volume spike, highest first."""

    INSTANTS: ClassVar[dict[str, str]] = {"computed_at": "s"}

    computed_at: int | None
    """When these figures were computed: Unix seconds; null: not yet."""
    data: Records[TrendingMarket]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, TrendingMarket)


class TrendingMarket(Market, kw_only=True):
    """A market, with its volume spike in the last hour."""

    vol_1h: float
    """US dollars traded in the last hour, over all outcomes."""
    vol_24h: float
    """US dollars traded in the last 24 hours, over all outcomes."""
    spike_ratio: float | None
    """vol_1h divided by the hourly mean of vol_24h: over 24 hours, or the hours since the market's first trade; null
    while these are fewer than three.
    """
