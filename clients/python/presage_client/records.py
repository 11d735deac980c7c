"""The records of the service: what its operations answer.

Generated from the OpenAPI document by generate.py: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import field

from presage_client import _record
from presage_client._record import Record

if TYPE_CHECKING:
    from typing import Literal

    from presage_client._record import Records
else:  # what msgspec decodes
    Literal, Records = _record.AnyString, list

__all__ = [
    "Activity",
    "Attempt",
    "Bars",
    "BookAt",
    "BookGap",
    "BookHealth",
    "BookHistory",
    "BookState",
    "Breaking",
    "BusyMarket",
    "Candle",
    "CategoryCount",
    "CategoryMarkets",
    "ChartBars",
    "ChartConfig",
    "ChartMarks",
    "ChartQuote",
    "ChartQuotes",
    "ChartSymbol",
    "Choice",
    "ClosedPosition",
    "ComparedMarket",
    "Comparison",
    "Coverage",
    "Delivery",
    "DeliveryPage",
    "EndingMarket",
    "EventMarkets",
    "ExportManifest",
    "ExportPage",
    "ExportedDay",
    "ExportedFile",
    "Fills",
    "FoundSymbol",
    "Gap",
    "GapCounts",
    "Health",
    "Held",
    "HeldOfMarket",
    "Integrity",
    "Leader",
    "Leaderboard",
    "Level",
    "Liquidity",
    "Market",
    "MarketCoverage",
    "MarketDetail",
    "MarketHealth",
    "MarketPage",
    "MarketPosition",
    "MarketStats",
    "MovingMarket",
    "NewKey",
    "NewMarkets",
    "Onchain",
    "OnchainTrade",
    "OpenPosition",
    "OpenPositions",
    "Orderbook",
    "Pipeline",
    "PlatformStats",
    "Position",
    "Price",
    "PriceHealth",
    "Profit",
    "QuoteValues",
    "RankedMarket",
    "RecentTrade",
    "ReconciledDay",
    "Related",
    "Removed",
    "Resolving",
    "Rotation",
    "SecretRotation",
    "Sentiment",
    "SeriesCount",
    "Signal",
    "Span",
    "Stage",
    "Stats",
    "Summary",
    "TagCount",
    "Time",
    "TimeMark",
    "TimedMarket",
    "Timeframe",
    "Timeframes",
    "TopSignals",
    "Trade",
    "Trending",
    "TrendingMarket",
    "WalletMarket",
    "WalletMarkets",
    "WalletPnl",
    "WalletSummary",
    "Watched",
    "Watching",
    "Webhook",
    "WebhookPage",
]


class Activity(Record, kw_only=True):
    """Recorded fills of a watched wallet, newest first."""

    address: str
    watching: bool
    data: Records[OnchainTrade]
    count: int
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, OnchainTrade)


class Attempt(Record, kw_only=True):
    """A delivery attempt."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    ts: int
    """Unix milliseconds."""
    status: int | None
    """The receiver's HTTP status; null: no response."""
    error: str | None
    """Why there was no response."""
    duration_ms: int
    answer: str
    """The beginning of the response body."""


class Bars(Record, kw_only=True):
    """Candles in the UDF column format of charting libraries."""

    INSTANTS: ClassVar[dict[str, str]] = {"nextTime": "s"}

    s: Literal["no_data", "ok"]
    t: list[int] = field(default_factory=list)
    o: list[float] = field(default_factory=list)
    h: list[float] = field(default_factory=list)
    l: list[float] = field(default_factory=list)
    c: list[float] = field(default_factory=list)
    v: list[float] = field(default_factory=list)
    nextTime: int | None = None
    """With `no_data`: the last bar before the range."""


class BookAt(Record, kw_only=True):
    """The book at one moment: its top levels, and figures of the full book."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    ts: int
    """Unix milliseconds."""
    bids: Records[Level]
    asks: Records[Level]
    best_bid: float | None
    """A probability, 0 to 1."""
    best_ask: float | None
    """A probability, 0 to 1."""
    mid: float | None
    """A probability, 0 to 1."""
    spread: float | None
    microprice: float | None
    """The best prices, each weighted by the size on the opposite side."""
    bid_depth_usd: float
    """Price times size, over all bids."""
    ask_depth_usd: float
    """Price times size, over all asks."""
    imbalance: float | None
    """(bids - asks) / (bids + asks), in shares over the full book: -1 to 1."""
    status: Literal["gap", "unverified", "verified"]

    def __post_init__(self) -> None:
        self.bids = _record.Records(self.bids, Level)
        self.asks = _record.Records(self.asks, Level)


class BookGap(Record, kw_only=True):
    """A time range in which book changes may have been missed."""

    INSTANTS: ClassVar[dict[str, str]] = {"from_ts": "ms", "to_ts": "ms"}

    from_ts: int
    """Unix milliseconds."""
    to_ts: int | None
    """Unix milliseconds."""
    cause: str


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


class BookHistory(Record, kw_only=True):
    """The book of an outcome at even steps, oldest first."""

    market_id: str
    """The condition id."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    step_s: int
    depth: int
    data: Records[BookAt]
    count: int
    gaps: Records[BookGap]
    """Gaps that overlap the requested range."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, BookAt)
        self.gaps = _record.Records(self.gaps, BookGap)


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


class Market(Record, kw_only=True):
    """A market, as the exchange lists it."""

    INSTANTS: ClassVar[dict[str, str]] = {
        "start_time": "s",
        "end_time": "s",
        "created_at": "s",
        "resolved_at": "s",
        "updated_at": "s",
    }

    market_id: str
    """The condition id."""
    slug: str | None
    question: str
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"]
    exchange: str
    event_id: str | None
    category: str | None
    series: str | None
    tags: list[str]
    outcomes: list[str]
    token_ids: list[str]
    outcome_prices: list[float]
    """The exchange's own prices, in the order of the outcomes."""
    start_time: int | None
    """Unix seconds."""
    end_time: int | None
    """Planned end: Unix seconds."""
    created_at: int | None
    """Unix seconds."""
    resolved_at: int | None
    """Unix seconds."""
    winning_outcome: int | None
    """Index of the outcome, from 0."""
    volume_usd: float | None
    """US dollars traded in total, as counted by the exchange."""
    volume_24h_usd: float | None
    """US dollars traded in the last 24 hours over all outcomes, as recorded here; computed once a minute; null with
    `source=polymarket`.
    """
    exchange_volume_24h_usd: float | None
    """US dollars traded in 24 hours, as last reported by the exchange."""
    liquidity_usd: float | None
    """US dollars in the order books, as reported by the exchange."""
    neg_risk: bool
    image: str | None
    url: str | None
    updated_at: int
    """Unix seconds."""
    source: str
    """exchange, tape or simulated."""


class BusyMarket(Market, kw_only=True):
    """A market, with its volume and trades in the requested period."""

    period_volume_usd: float
    """US dollars traded in the period, over all outcomes, as recorded here."""
    period_trades: int


class Candle(Record, kw_only=True):
    """Open, high, low and close of the time bucket that starts at `ts`."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    ts: int
    """Unix milliseconds."""
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
    """US dollars."""
    trades: int


class CategoryCount(Record, kw_only=True):
    """A category and its number of markets."""

    category: str
    market_count: int


class CategoryMarkets(Record, kw_only=True):
    """Markets of one category."""

    category: str
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class ChartBars(Record, kw_only=True):
    """Bars in columns, oldest first."""

    INSTANTS: ClassVar[dict[str, str]] = {"nextTime": "s"}

    s: Literal["error", "no_data", "ok"]
    errmsg: str | None = None
    nextTime: int | None = None
    """With `no_data`: the last bar before the range."""
    t: list[int] | None = None
    o: list[float] | None = None
    h: list[float] | None = None
    l: list[float] | None = None
    c: list[float] | None = None
    v: list[float] | None = None


class ChartConfig(Record, kw_only=True):
    """The data feed's capabilities."""

    supports_search: bool
    supports_group_request: bool
    supports_marks: bool
    supports_timescale_marks: bool
    supports_time: bool
    exchanges: Records[Choice]
    symbols_types: Records[Choice]
    supported_resolutions: list[str]

    def __post_init__(self) -> None:
        self.exchanges = _record.Records(self.exchanges, Choice)
        self.symbols_types = _record.Records(self.symbols_types, Choice)


class ChartMarks(Record, kw_only=True):
    """Marks on a chart's bars, in columns: status changes and large trades."""

    id: list[str]
    time: list[int]
    color: list[str]
    text: list[str]
    label: list[str]
    labelFontColor: list[str]
    minSize: list[int]


class ChartQuote(Record, kw_only=True):
    """A symbol's quote, or an error if the symbol does not exist."""

    s: Literal["error", "ok"]
    n: str
    v: QuoteValues


class ChartQuotes(Record, kw_only=True):
    """Quotes of several symbols."""

    s: Literal["ok"]
    d: Records[ChartQuote]

    def __post_init__(self) -> None:
        self.d = _record.Records(self.d, ChartQuote)


class ChartSymbol(Record, kw_only=True):
    """A symbol; an unknown one has only `s` and `errmsg`."""

    INSTANTS: ClassVar[dict[str, str]] = {"expiration_date": "s"}

    s: Literal["error"] | None = None
    errmsg: str | None = None
    name: str | None = None
    ticker: str | None = None
    description: str | None = None
    type: str | None = None
    session: str | None = None
    timezone: str | None = None
    exchange: str | None = None
    listed_exchange: str | None = None
    format: str | None = None
    currency_code: str | None = None
    minmov: int | None = None
    minmovement: int | None = None
    pricescale: int | None = None
    has_intraday: bool | None = None
    has_seconds: bool | None = None
    has_daily: bool | None = None
    seconds_multipliers: list[str] | None = None
    intraday_multipliers: list[str] | None = None
    daily_multipliers: list[str] | None = None
    supported_resolutions: list[str] | None = None
    volume_precision: int | None = None
    data_status: str | None = None
    expired: bool | None = None
    expiration_date: int | None = None
    """Unix seconds."""


class Choice(Record, kw_only=True):
    """An option that a user of the chart can choose."""

    value: str
    name: str
    desc: str = ""


class ClosedPosition(Record, kw_only=True):
    """A closed position."""

    INSTANTS: ClassVar[dict[str, str]] = {"closed_at": "s"}

    wallet: str
    market_id: str
    """The condition id."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    outcome: int | None = None
    """Index of the outcome, from 0."""
    outcome_name: str | None = None
    avg_price: float | None = None
    """0 to 1, as the exchange computes it."""
    cur_price: float | None = None
    """0 to 1, as the exchange computes it."""
    total_bought: float
    """Shares."""
    realized_pnl_usd: float
    """US dollars."""
    closed_at: int | None = None
    """Unix seconds."""
    opposite_outcome_name: str | None = None
    """The other outcome's name, where there are two."""
    opposite_token_id: str | None = None
    """The other outcome's token, where there are two."""
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    end_date: str | None = None


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


class Coverage(Record, kw_only=True):
    """Coverage of all data."""

    kinds: Records[Held]
    days: Records[ReconciledDay]
    """The last 31 days, newest first."""
    data: Records[Gap]
    """Gaps, by start time, latest first."""
    count: int
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.kinds = _record.Records(self.kinds, Held)
        self.days = _record.Records(self.days, ReconciledDay)
        self.data = _record.Records(self.data, Gap)


class Delivery(Record, kw_only=True):
    """A delivery: one message to one webhook."""

    INSTANTS: ClassVar[dict[str, str]] = {"next_at": "s", "created_at": "s", "ended_at": "s"}

    id: str
    webhook_id: str
    message_id: str
    """The `webhook-id` header of every attempt."""
    type: str
    seq: int | None
    """The event's `seq` in the stream; null: a test message."""
    state: Literal["delivered", "failed", "waiting"]
    attempts: int
    next_at: int | None
    """When the next attempt is due: Unix seconds."""
    created_at: int
    """Unix seconds."""
    ended_at: int | None
    """Unix seconds."""
    log: Records[Attempt]
    """The latest attempts, oldest first."""
    payload: dict[str, Any]
    """What is sent: `type`, `timestamp`, `seq`, `market_id`, `data`."""

    def __post_init__(self) -> None:
        self.log = _record.Records(self.log, Attempt)


class DeliveryPage(Record, kw_only=True):
    """A page of deliveries, newest first."""

    data: Records[Delivery]
    next_cursor: str
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Delivery)


class EndingMarket(Market, kw_only=True):
    """A market and its end."""

    INSTANTS: ClassVar[dict[str, str]] = {**Market.INSTANTS, "resolves_at": "s"}

    resolves_at: int
    """Unix seconds."""
    time_to_resolution: int
    """Seconds."""


class EventMarkets(Record, kw_only=True):
    """Markets of one event."""

    event_id: str
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class ExportManifest(Record, kw_only=True):
    """The files of an exported day."""

    INSTANTS: ClassVar[dict[str, str]] = {"created_at": "s"}

    topic: Literal["book_events", "candles", "markets", "settlements", "trades"]
    day: str
    """UTC."""
    rows: int
    complete: bool
    """True: written after the end of the day; false: the day was still incomplete."""
    created_at: int
    """Unix seconds."""
    files: Records[ExportedFile]

    def __post_init__(self) -> None:
        self.files = _record.Records(self.files, ExportedFile)


class ExportPage(Record, kw_only=True):
    """A page of exported days, newest first."""

    data: Records[ExportedDay]
    next_cursor: str
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, ExportedDay)


class ExportedDay(Record, kw_only=True):
    """An exported day of a topic."""

    INSTANTS: ClassVar[dict[str, str]] = {"created_at": "s"}

    topic: Literal["book_events", "candles", "markets", "settlements", "trades"]
    day: str
    """UTC."""
    rows: int
    bytes: int
    files: int
    complete: bool
    """True: written after the end of the day; false: the day was still incomplete."""
    created_at: int
    """Unix seconds."""
    manifest: str
    """Path of the list of its files."""


class ExportedFile(Record, kw_only=True):
    """An exported file."""

    name: str
    format: Literal["csv", "parquet"]
    """`csv` is gzip-compressed."""
    part: int
    """Part of the day, from 0."""
    rows: int
    bytes: int
    sha256: str
    complete: bool
    """True: written after the end of the day; false: the day was still incomplete."""
    url: str


class Fills(Record, kw_only=True):
    """Fills of one side."""

    count: int
    volume_usd: float
    """US dollars."""


class FoundSymbol(Record, kw_only=True):
    """A symbol found by a search."""

    symbol: str
    full_name: str
    description: str
    exchange: str
    ticker: str
    type: str


class Gap(Record, kw_only=True):
    """A gap: data that is or was missing."""

    INSTANTS: ClassVar[dict[str, str]] = {"from_ts": "ms", "to_ts": "ms", "filled_at": "s"}

    id: str
    kind: Literal["books", "settlements", "trades"]
    market_id: str | None
    """Null: every market."""
    from_ts: int
    """Unix milliseconds."""
    to_ts: int | None
    """Null: still open."""
    cause: str
    status: Literal["fillable", "filled", "lost", "open"]
    filled_at: int | None
    """Unix seconds."""
    filled_by: str | None
    """The source that filled it, or that nothing had been missed."""
    added: int
    """Missing rows that were added."""
    fault: str | None
    """Why the last attempt to fill it failed."""
    from_block: int | None
    """For settlements: the first block not indexed."""
    to_block: int | None
    """For settlements: the last block not indexed."""


class GapCounts(Record, kw_only=True):
    """Number of gaps by status."""

    open: int
    fillable: int
    lost: int
    filled: int


class Health(Record, kw_only=True):
    """The process is alive."""

    INSTANTS: ClassVar[dict[str, str]] = {"timestamp": "s"}

    status: Literal["ok"]
    service: str
    project: str
    instance: str
    """Host and process."""
    timestamp: int
    """Unix seconds."""


class Held(Record, kw_only=True):
    """Stored data of one kind."""

    INSTANTS: ClassVar[dict[str, str]] = {"from_ts": "ms", "to_ts": "ms"}

    kind: Literal["books", "settlements", "trades"]
    status: Literal["fresh", "late", "missing", "off", "stale"]
    """Status of the stage that ingests it; `off`: not configured."""
    from_ts: int | None
    """The earliest stored moment; null: nothing is stored."""
    to_ts: int | None
    """The latest stored moment."""
    spans: Records[Span]
    """Ranges that are complete except for the listed gaps; latest first, at most 100."""
    missing_s: float
    """Seconds of the spans in which data of any market may be missing."""
    gaps: GapCounts
    reconciled_to: str | None
    """The latest day reconciled with its source."""

    def __post_init__(self) -> None:
        self.spans = _record.Records(self.spans, Span)


class HeldOfMarket(Record, kw_only=True):
    """Stored data of one kind for a market."""

    INSTANTS: ClassVar[dict[str, str]] = {"from_ts": "ms", "to_ts": "ms", "first_ts": "ms", "last_ts": "ms"}

    kind: Literal["books", "settlements", "trades"]
    status: Literal["fresh", "late", "missing", "off", "stale"]
    """Status of the stage that ingests it; `off`: not configured."""
    from_ts: int | None
    """The earliest stored moment; null: nothing is stored."""
    to_ts: int | None
    """The latest stored moment."""
    spans: Records[Span]
    """Ranges that are complete except for the listed gaps; latest first, at most 100."""
    missing_s: float
    """Seconds of the spans in which data of any market may be missing."""
    gaps: GapCounts
    reconciled_to: str | None
    """The latest day reconciled with its source."""
    first_ts: int | None
    """Its first row: a trade, a best-price change or a fill."""
    last_ts: int | None
    """Its last row."""

    def __post_init__(self) -> None:
        self.spans = _record.Records(self.spans, Span)


class Integrity(Record, kw_only=True):
    """The reliability of a past book."""

    INSTANTS: ClassVar[dict[str, str]] = {"anchor_ts": "ms"}

    status: Literal["gap", "unverified", "verified"]
    """`verified`: its best prices equal those that the exchange published for that moment; `unverified`: they differ,
    or none were published yet; `gap`: changes may have been missed around that moment.
    """
    anchor_ts: int
    """Time of the full book that it was built from."""
    changes: int
    """Level changes applied since."""
    gap: BookGap | None = None


class Leader(Record, kw_only=True):
    """A wallet's rank."""

    rank: int
    address: str
    volume_usd: float
    """US dollars."""
    trades: int
    markets: int
    pnl_usd: float | None
    """Realized and unrealized profit of the positions that the wallet traded in the window, since they were opened;
    null on boards by volume, and for wallets that traded none.
    """
    window_pnl_usd: float | None
    """Profit made within the window: realized, and from changes in the value of positions; null on boards by volume,
    and where a position's value at the start or now is unknown.
    """


class Leaderboard(Record, kw_only=True):
    """The top of a leaderboard."""

    INSTANTS: ClassVar[dict[str, str]] = {"window_start": "ms", "computed_at": "s"}

    window: str
    by: str
    data: Records[Leader]
    count: int
    window_start: int | None
    """Null: since indexing began. With `window_pnl`, profit counts from here, later than the window's start where
    older settlements are no longer stored.
    """
    computed_at: int | None
    """Unix seconds."""
    note: str
    """The blocks and times that this is based on."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Leader)


class Level(Record, kw_only=True):
    """A price level of an order book."""

    price: float
    """A probability, 0 to 1."""
    size: float
    """Shares."""


class Liquidity(Record, kw_only=True):
    """The live order book's depth, best prices first."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    market_id: str
    """The condition id."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    spread: float | None
    mid_price: float | None
    """A probability, 0 to 1."""
    best_bid: float | None
    """A probability, 0 to 1."""
    best_ask: float | None
    """A probability, 0 to 1."""
    bids: Records[Level]
    asks: Records[Level]
    depth_usd: float
    """US dollars."""
    ts: int
    """Unix milliseconds."""

    def __post_init__(self) -> None:
        self.bids = _record.Records(self.bids, Level)
        self.asks = _record.Records(self.asks, Level)


class MarketCoverage(Record, kw_only=True):
    """Coverage of one market."""

    market_id: str
    """The condition id."""
    kinds: Records[HeldOfMarket]
    days: Records[ReconciledDay]
    """Its trades on the last 31 days, newest first."""
    data: Records[Gap]
    """Its gaps and those of every market, by start time, latest first."""
    count: int
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.kinds = _record.Records(self.kinds, HeldOfMarket)
        self.days = _record.Records(self.days, ReconciledDay)
        self.data = _record.Records(self.data, Gap)


class MarketDetail(Market, kw_only=True):
    """A market, with its live price, order book state and 24-hour statistics."""

    description: str | None
    price: Price | None
    orderbook: BookState
    stats_24h: Stats | None


class MarketHealth(Record, kw_only=True):
    """Freshness of a market's data; `status` is the worse of book and price."""

    market_id: str
    """The condition id."""
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


class MarketPosition(Record, kw_only=True):
    """A position in the requested market. Without `wallet`, only the shares held."""

    wallet: str
    market_id: str
    """The condition id."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    outcome: int | None = None
    """Index of the outcome, from 0."""
    outcome_name: str | None = None
    size: float
    """Shares."""
    avg_price: float | None = None
    """0 to 1, as the exchange computes it."""
    cur_price: float | None = None
    """0 to 1, as the exchange computes it."""
    initial_value_usd: float | None = None
    """US dollars."""
    current_value_usd: float | None = None
    """US dollars."""
    cash_pnl_usd: float | None = None
    """US dollars."""
    percent_pnl: float | None = None
    """Percent."""
    realized_pnl_usd: float | None = None
    """US dollars."""
    percent_realized_pnl: float | None = None
    """Percent."""
    total_bought: float | None = None
    """Shares."""
    redeemable: bool | None = None
    """The market is resolved and the shares can be redeemed."""
    mergeable: bool | None = None
    """The opposite outcome is also held: pairs can be merged for a dollar each."""
    opposite_outcome_name: str | None = None
    """The other outcome's name, where there are two."""
    opposite_token_id: str | None = None
    """The other outcome's token, where there are two."""
    neg_risk: bool | None = None
    """The market belongs to an event in which exactly one market resolves to Yes."""
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    end_date: str | None = None


class MarketStats(Record, kw_only=True):
    """24-hour statistics of a market's first outcome; prices are null if there was no trade."""

    INSTANTS: ClassVar[dict[str, str]] = {"window_start": "ms", "window_end": "ms"}

    market_id: str
    """The condition id."""
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


class NewKey(Record, kw_only=True):
    """A new key, shown only once."""

    key: str
    app_name: str
    tier: str
    credits_month: int | None
    credits_burst: int | None
    message: str


class NewMarkets(Record, kw_only=True):
    """Recently listed markets, newest first."""

    hours: int
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class Onchain(Record, kw_only=True):
    """A wallet's fills, newest first."""

    address: str
    data: Records[OnchainTrade]
    count: int
    since: int
    """Start of the range: 14 days ago, or a later `from`."""
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, OnchainTrade)


class OnchainTrade(Record, kw_only=True):
    """A settled fill, from the requested wallet's perspective."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    tx_hash: str
    log_index: int
    block_number: int
    block_hash: str | None
    market_id: str | None
    """Null while the token is not in the catalogue."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    outcome: int | None
    """Index of the outcome, from 0."""
    maker: str
    taker: str
    side: Literal["BUY", "SELL"]
    """The wallet's side."""
    price: float | None
    """A probability, 0 to 1."""
    size: float
    """Shares."""
    value_usd: float
    """US dollars."""
    fee_usd: float
    """Fee paid by the wallet, in US dollars."""
    exchange_contract: str
    is_taker_order: bool
    finalized: bool
    """False: a chain reorganisation could still revert it."""
    ts: int
    """Unix milliseconds."""
    address: str
    role: Literal["maker", "taker"]
    """If a taker was matched with several makers, `maker` is the one with the largest share."""
    price_matched: bool


class OpenPosition(Record, kw_only=True):
    """An open position of a wallet."""

    INSTANTS: ClassVar[dict[str, str]] = {"last_trade": "ms"}

    market_id: str | None
    """Null while the token is not in the catalogue."""
    outcome: int | None
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    question: str | None
    slug: str | None
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None
    bought: float
    """Shares."""
    sold: float
    """Shares."""
    net_position: float
    """Shares held according to indexed data; negative: some were acquired before indexing began."""
    avg_cost: float | None
    """US dollars per share, including fees."""
    mark_price: float | None
    """A probability, 0 to 1."""
    mark_source: Literal["exchange", "market", "resolution"] | None
    """`resolution`: the payout; `market`: the live price; `exchange`: the exchange's last price."""
    value_usd: float | None
    """US dollars."""
    has_cost_basis: bool
    trades: int
    last_trade: int | None
    """Unix milliseconds."""


class OpenPositions(Record, kw_only=True):
    """A wallet's open positions."""

    address: str
    data: Records[OpenPosition]
    count: int
    source: str
    note: str
    """The blocks and times that this is based on."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, OpenPosition)


class Orderbook(Record, kw_only=True):
    """An order book, best prices first. A live book is returned only if it agrees with the exchange's best prices."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    market_id: str
    """The condition id."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    bids: Records[Level]
    asks: Records[Level]
    best_bid: float | None
    """A probability, 0 to 1."""
    best_ask: float | None
    """A probability, 0 to 1."""
    mid: float | None
    """A probability, 0 to 1."""
    spread: float | None
    depth_usd: float
    """Price times size, over both sides."""
    tick_size: float | None
    hash: str | None
    """The exchange's digest of the book."""
    seq: str
    """Orders the states of one book; a decimal number beyond 2^53."""
    ts: int
    """Unix milliseconds."""
    integrity: Integrity | None = None
    """Only with `at`."""

    def __post_init__(self) -> None:
        self.bids = _record.Records(self.bids, Level)
        self.asks = _record.Records(self.asks, Level)


class Pipeline(Record, kw_only=True):
    """The freshness of each pipeline stage; `status` is that of the worst stage."""

    status: Literal["fresh", "late", "missing", "stale"]
    redis_up: bool
    """Whether the configured cache responds; nothing depends on it."""
    stages: Records[Stage]
    checked_at: str

    def __post_init__(self) -> None:
        self.stages = _record.Records(self.stages, Stage)


class PlatformStats(Record, kw_only=True):
    """Totals of the platform."""

    INSTANTS: ClassVar[dict[str, str]] = {"last_ingested_at": "s", "computed_at": "s"}

    total_markets: int
    active_markets: int
    volume_24h_usd: float
    """US dollars traded in the last 24 hours, over all markets."""
    trades_24h: int
    onchain_trades_total: int | None
    """Settlements indexed from the chain; null while the chain is not indexed."""
    last_ingested_at: int | None
    """Unix seconds."""
    computed_at: int | None
    """When the 24-hour figures were computed: Unix seconds; null: nothing was traded."""


class Position(Record, kw_only=True):
    """An open position. Fields that the exchange does not report are null."""

    wallet: str
    market_id: str
    """The condition id."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    outcome: int | None = None
    """Index of the outcome, from 0."""
    outcome_name: str | None = None
    size: float
    """Shares."""
    avg_price: float | None = None
    """0 to 1, as the exchange computes it."""
    cur_price: float | None = None
    """0 to 1, as the exchange computes it."""
    initial_value_usd: float | None = None
    """US dollars."""
    current_value_usd: float | None = None
    """US dollars."""
    cash_pnl_usd: float | None = None
    """US dollars."""
    percent_pnl: float | None = None
    """Percent."""
    realized_pnl_usd: float | None = None
    """US dollars."""
    percent_realized_pnl: float | None = None
    """Percent."""
    total_bought: float | None = None
    """Shares."""
    redeemable: bool | None = None
    """The market is resolved and the shares can be redeemed."""
    mergeable: bool | None = None
    """The opposite outcome is also held: pairs can be merged for a dollar each."""
    opposite_outcome_name: str | None = None
    """The other outcome's name, where there are two."""
    opposite_token_id: str | None = None
    """The other outcome's token, where there are two."""
    neg_risk: bool | None = None
    """The market belongs to an event in which exactly one market resolves to Yes."""
    title: str | None = None
    slug: str | None = None
    event_slug: str | None = None
    end_date: str | None = None


class Price(Record, kw_only=True):
    """An outcome's live price, while its market is active, its book verified and the feed alive."""

    INSTANTS: ClassVar[dict[str, str]] = {"last_ts": "ms", "ts": "ms"}

    market_id: str
    """The condition id."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    mid: float | None
    """A probability, 0 to 1."""
    bid: float | None
    """A probability, 0 to 1."""
    ask: float | None
    """A probability, 0 to 1."""
    spread: float | None
    bid_size: float | None
    """Shares."""
    ask_size: float | None
    """Shares."""
    last: float | None
    """A probability, 0 to 1."""
    last_ts: int | None
    """Unix milliseconds."""
    volume_24h_usd: float | None
    """US dollars traded in the last 24 hours over all outcomes, as recorded here; computed once a minute; null in
    replays.
    """
    ts: int
    """Unix milliseconds."""
    age_ms: int
    """Age in milliseconds."""


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


class Profit(Record, kw_only=True):
    """A wallet's profit in one outcome."""

    market_id: str | None
    """Null while the token is not in the catalogue."""
    outcome: int | None
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    question: str | None
    slug: str | None
    bought: float
    """Shares."""
    sold: float
    """Shares."""
    net_position: float
    """Shares held according to indexed data; negative: some were acquired before indexing began."""
    avg_cost: float | None
    """US dollars per share, including fees."""
    realized_pnl: float
    """US dollars, net of fees."""
    unrealized_pnl: float | None
    """Null while a share's value is unknown."""
    mark_price: float | None
    """A probability, 0 to 1."""
    mark_source: Literal["exchange", "market", "resolution"] | None
    """`resolution`: the payout; `market`: the live price; `exchange`: the exchange's last price."""
    settled: bool
    """The market is resolved: held shares count as realized at their payout."""
    has_cost_basis: bool
    """False: part of the cost is unknown, and the row is not in the totals."""


class QuoteValues(Record, kw_only=True):
    """A symbol's prices; empty if unknown."""

    ch: float | None = None
    """Price change in 24 hours."""
    chp: float | None = None
    """Price change in percent."""
    short_name: str | None = None
    exchange: str | None = None
    description: str | None = None
    lp: float | None = None
    """The last price."""
    ask: float | None = None
    """A probability, 0 to 1."""
    bid: float | None = None
    """A probability, 0 to 1."""
    spread: float | None = None
    open_price: float | None = None
    """A probability, 0 to 1."""
    high_price: float | None = None
    """A probability, 0 to 1."""
    low_price: float | None = None
    """A probability, 0 to 1."""
    prev_close_price: float | None = None
    """A probability, 0 to 1."""
    volume: float | None = None
    """Shares."""


class RankedMarket(Market, kw_only=True):
    """A market in the market list."""

    period_volume_usd: float | None = None
    """US dollars traded in 24 hours, over all outcomes, when the list was ranked by it; constant over all pages of a
    list. Null before the first ranking; absent with `source=polymarket`.
    """


class RecentTrade(Record, kw_only=True):
    """A trade with its wallets, which are empty until the trade is settled on the chain."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    id: str
    """Stable id, the same from every source."""
    market_id: str
    """The condition id."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    outcome: int
    """Index of the outcome, from 0."""
    price: float
    """A probability, 0 to 1."""
    size: float
    """Shares."""
    value_usd: float
    """US dollars."""
    side: Literal["BUY", "SELL"]
    tx_hash: str | None
    ts: int
    """Unix milliseconds."""
    maker: str
    taker: str
    makers: list[str]
    block_number: int | None


class ReconciledDay(Record, kw_only=True):
    """A day reconciled with its source: the exchange's trade list or the chain's logs."""

    INSTANTS: ClassVar[dict[str, str]] = {"checked_at": "s"}

    day: str
    """A day, UTC."""
    kind: Literal["books", "settlements", "trades"]
    source: Literal["chain", "exchange"]
    listed: int
    """Trades in the exchange's list, or logs on the chain."""
    held: int
    """How many of those are stored now."""
    added: int
    """How many of those had been missing and were filled in."""
    unlisted: int
    """Stored, but not in the source's list."""
    unknown: int
    """Listed, but not of a market in the catalogue."""
    agrees: bool
    checked_at: int
    """Unix seconds."""


class Related(Record, kw_only=True):
    """The other markets of a market's event."""

    event_id: str | None
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class Removed(Record, kw_only=True):
    """A removed webhook."""

    id: str
    removed: bool


class Resolving(Record, kw_only=True):
    """Active markets, by end, earliest first."""

    within: str
    data: Records[EndingMarket]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, EndingMarket)


class Rotation(Record, kw_only=True):
    """The key that replaces the request's key, shown only once."""

    key: str
    message: str


class SecretRotation(Record, kw_only=True):
    """The state of a secret rotation."""

    id: str
    rotating: bool
    """Both secrets sign."""
    message: str
    secret: str | None = None
    """Verifies signatures. Shown only once."""


class Sentiment(Record, kw_only=True):
    """Price and volume trend: bullish or bearish beyond 5 % in 24 hours; volume beyond 25 % of its hourly mean."""

    INSTANTS: ClassVar[dict[str, str]] = {"computed_at": "s", "timestamp": "s"}

    market_id: str
    """The condition id."""
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


class SeriesCount(Record, kw_only=True):
    """A series and its number of markets."""

    series: str
    market_count: int


class Signal(Record, kw_only=True):
    """A signal: a value beyond its threshold."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    id: str
    """Decimal number; stable when the same signal is detected again."""
    type: Literal["book_imbalance", "momentum", "price_reversal", "spread_widening", "volume_spike", "whale_alert"]
    market_id: str
    """The condition id."""
    outcome: int
    """Index of the outcome, from 0."""
    value: float
    """The measured value, in the unit of the signal's type."""
    threshold: float
    """The value from which it counts as a signal."""
    score: float
    """value / threshold."""
    direction: Literal["down", "up"] | None
    """Direction of the outcome's price; null: no direction."""
    window_s: int
    """Length of the measured window before `ts`, in seconds."""
    detail: dict[str, Any]
    """The figures that it was computed from."""
    ts: int
    """Unix milliseconds."""


class Span(Record, kw_only=True):
    """A time range."""

    INSTANTS: ClassVar[dict[str, str]] = {"from_ts": "ms", "to_ts": "ms"}

    from_ts: int
    """Unix milliseconds."""
    to_ts: int | None
    """Unix milliseconds."""


class Stage(Record, kw_only=True):
    """The freshness of one pipeline stage."""

    INSTANTS: ClassVar[dict[str, str]] = {"last_data_at": "s"}

    stage: str
    status: Literal["fresh", "late", "missing", "stale"]
    last_data_at: int | None
    """Unix seconds."""
    lag_s: float | None
    warn_after_s: int
    fail_after_s: int
    detail: dict[str, Any]


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
    """The condition id."""
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


class TagCount(Record, kw_only=True):
    """A tag and its number of markets."""

    tag: str
    market_count: int


class Time(Record, kw_only=True):
    """The server's clock."""

    INSTANTS: ClassVar[dict[str, str]] = {"unix": "s", "unix_ms": "ms"}

    utc: str
    ist: str
    """The same moment in India, UTC+05:30."""
    unix: int
    """Unix seconds."""
    unix_ms: int
    """Unix milliseconds."""
    note: str


class TimeMark(Record, kw_only=True):
    """A mark on a chart's time scale: the market's start, end or resolution."""

    INSTANTS: ClassVar[dict[str, str]] = {"time": "s"}

    id: str
    time: int
    """Unix seconds."""
    color: str
    label: str
    tooltip: list[str]


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


class TopSignals(Record, kw_only=True):
    """Signals of the last 24 hours, highest score first."""

    data: Records[Signal]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Signal)


class Trade(Record, kw_only=True):
    """A trade. The side is the taker's."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    id: str
    """Stable id, the same from every source."""
    market_id: str
    """The condition id."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    outcome: int
    """Index of the outcome, from 0."""
    price: float
    """A probability, 0 to 1."""
    size: float
    """Shares."""
    value_usd: float
    """US dollars."""
    side: Literal["BUY", "SELL"]
    tx_hash: str | None
    ts: int
    """Unix milliseconds."""


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


class WalletMarket(Record, kw_only=True):
    """A wallet's trading in one outcome of a market."""

    INSTANTS: ClassVar[dict[str, str]] = {"first_trade": "ms", "last_trade": "ms"}

    market_id: str | None
    """Null while the token is not in the catalogue."""
    outcome: int | None
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits."""
    question: str | None
    slug: str | None
    status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None
    bought: float
    """Shares."""
    sold: float
    """Shares."""
    net_position: float
    """Shares held according to indexed data; negative: some were acquired before indexing began."""
    bought_usd: float
    """US dollars."""
    sold_usd: float
    """US dollars."""
    trades: int
    first_trade: int
    """Unix milliseconds."""
    last_trade: int
    """Unix milliseconds."""


class WalletMarkets(Record, kw_only=True):
    """The outcomes that a wallet traded, latest first."""

    address: str
    data: Records[WalletMarket]
    count: int
    note: str
    """The blocks and times that this is based on."""
    next_cursor: str
    """Pass as `cursor` to get the next page; empty on the last page."""
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, WalletMarket)


class WalletPnl(Record, kw_only=True):
    """A wallet's profit, by average cost."""

    address: str
    data: Records[Profit]
    count: int
    total_realized_pnl: float
    """US dollars, net of fees."""
    total_unrealized_pnl: float
    """US dollars, net of fees."""
    total_pnl: float
    """US dollars, net of fees."""
    markets_missing_cost_basis: int
    note: str
    """The blocks and times that this is based on."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Profit)


class WalletSummary(Record, kw_only=True):
    """Totals of a wallet's fills."""

    INSTANTS: ClassVar[dict[str, str]] = {"first_seen": "ms", "last_seen": "ms"}

    address: str
    watching: bool
    trades: int
    volume_usd: float
    """US dollars."""
    buys: Fills
    sells: Fills
    markets: int
    first_seen: int | None
    """Unix milliseconds."""
    last_seen: int | None
    """Unix milliseconds."""
    note: str
    """The blocks and times that this is based on."""


class Watched(Record, kw_only=True):
    """The wallets that the key's account watches."""

    wallets: list[str]
    count: int


class Watching(Record, kw_only=True):
    """Whether a wallet is watched."""

    address: str
    watching: bool


class Webhook(Record, kw_only=True):
    """A webhook: its URL, events and filters."""

    INSTANTS: ClassVar[dict[str, str]] = {"disabled_at": "s", "next_at": "s", "created_at": "s", "updated_at": "s"}

    id: str
    url: str
    events: list[str]
    markets: list[str] | None
    wallets: list[str] | None
    min_usd: float | None
    """US dollars."""
    enabled: bool
    disabled_reason: str | None
    """The reason, if the service disabled it."""
    disabled_at: int | None
    """Unix seconds."""
    rotating: bool
    """A secret rotation is in progress: both secrets sign."""
    waiting: int
    """Number of pending deliveries."""
    next_at: int | None
    """When the first of them is attempted: Unix seconds."""
    created_at: int
    """Unix seconds."""
    updated_at: int
    """Unix seconds."""
    secret: str | None = None
    """Verifies signatures. Shown only once."""


class WebhookPage(Record, kw_only=True):
    """The account's webhooks, in order of creation."""

    data: Records[Webhook]
    next_cursor: str
    has_more: bool

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Webhook)
