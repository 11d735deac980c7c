"""Response records for the OpenAPI document. PostgreSQL builds the JSON; tests check that both agree."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from api.schemas.requests import Status

MarketId = Annotated[
    str,
    Meta(
        description="The condition id; of Kalshi the ticker",
        examples=["0x" + "5d" * 32],
        pattern="^(0x[0-9a-f]{64}|[A-Z0-9.-]{1,200})$",
    ),
]
Slug = Annotated[str, Meta(examples=["will-it-rain-tomorrow"])]
Question = Annotated[str, Meta(examples=["Will it rain tomorrow?"])]
TokenId = Annotated[
    str,
    Meta(
        description="The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`",
        examples=["7132"],
    ),
]
Outcome = Annotated[int, Meta(ge=0, description="Index of the outcome, from 0", examples=[0])]
OutcomeName = Annotated[str, Meta(description="Name of the outcome", examples=["Yes"])]
Price01 = Annotated[float, Meta(ge=0, le=1, description="A probability, 0 to 1", examples=[0.52])]
Spread = Annotated[float, Meta(examples=[0.01])]
Shares = Annotated[float, Meta(ge=0, description="Shares", examples=[150.5])]
Change = Annotated[float, Meta(examples=[0.02])]
Percent = Annotated[float, Meta(examples=[4.0])]
Usd = Annotated[float, Meta(description="US dollars", examples=[78.26])]
Count = Annotated[int, Meta(ge=0)]
VOLUME_24H = "US dollars traded in the last 24 hours over all outcomes, as recorded here; computed once a minute"
UnixSeconds = Annotated[int, Meta(description="Unix seconds", examples=[1795262400])]
UnixMs = Annotated[int, Meta(description="Unix milliseconds", examples=[1795262400123])]


class Health(Struct):
    """The process is alive."""

    status: Annotated[Literal["ok"], Meta(examples=["ok"])]
    service: Annotated[str, Meta(examples=["api"])]
    project: Annotated[str, Meta(examples=["presage"])]
    instance: Annotated[str, Meta(description="Host and process", examples=["presage-1:4711"])]
    timestamp: UnixSeconds


class Time(Struct):
    """The server's clock."""

    utc: Annotated[str, Meta(examples=["2026-11-21T12:00:00.123Z"])]
    ist: Annotated[
        str, Meta(description="The same moment in India, UTC+05:30", examples=["2026-11-21T17:30:00.123+05:30"])
    ]
    unix: UnixSeconds
    unix_ms: UnixMs
    note: str


class NewKey(Struct):
    """A new key, shown only once."""

    key: Annotated[str, Meta(examples=["psg_…"])]
    app_name: Annotated[str, Meta(examples=["my-bot"])]
    tier: Annotated[str, Meta(examples=["free"])]
    credits_month: Annotated[int | None, Meta(examples=[5000])]
    credits_burst: Annotated[int | None, Meta(examples=[5])]
    message: str


class RecoveryRequested(Struct):
    """The same whether the address has an account or not."""

    message: str


class Confirmation(Struct):
    """What a mailed link has done."""

    purpose: Annotated[Literal["verify", "recover"], Meta(examples=["recover"])]
    key: Annotated[
        str | None, Meta(description="The new key, shown only once, if one was recovered", examples=["psg_…"])
    ]
    message: str


class Rotation(Struct):
    """The key that replaces the request's key, shown only once."""

    key: Annotated[str, Meta(examples=["psg_…"])]
    message: str


class Market(Struct):
    """A market, as the exchange lists it."""

    market_id: MarketId
    slug: Slug | None
    question: Question
    status: Status
    exchange: Annotated[str, Meta(examples=["polymarket"])]
    event_id: Annotated[str | None, Meta(examples=["12345"])]
    category: Annotated[str | None, Meta(examples=["weather"])]
    series: Annotated[str | None, Meta(examples=["daily-weather"])]
    tags: Annotated[list[str], Meta(examples=[["weather", "rain"]])]
    outcomes: Annotated[list[str], Meta(examples=[["Yes", "No"]])]
    token_ids: Annotated[list[TokenId], Meta(examples=[["7132", "8261"]])]
    outcome_prices: Annotated[
        list[Price01],
        Meta(description="The exchange's own prices, in the order of the outcomes", examples=[[0.52, 0.48]]),
    ]
    start_time: UnixSeconds | None
    end_time: Annotated[UnixSeconds | None, Meta(description="Planned end: Unix seconds")]
    created_at: UnixSeconds | None
    resolved_at: Annotated[UnixSeconds | None, Meta(examples=[None])]
    winning_outcome: Annotated[Outcome | None, Meta(examples=[None])]
    volume_usd: Annotated[Usd | None, Meta(description="US dollars traded in total, as counted by the exchange")]
    volume_24h_usd: Annotated[Usd | None, Meta(description=f"{VOLUME_24H}; null with `source=polymarket`")]
    exchange_volume_24h_usd: Annotated[
        Usd | None, Meta(description="US dollars traded in 24 hours, as last reported by the exchange")
    ]
    liquidity_usd: Annotated[Usd | None, Meta(description="US dollars in the order books, as reported by the exchange")]
    neg_risk: bool
    image: Annotated[str | None, Meta(examples=["https://example.com/rain.png"])]
    url: Annotated[str | None, Meta(examples=["https://example.com/event/rain"])]
    updated_at: UnixSeconds
    source: Annotated[str, Meta(description="exchange, tape or simulated", examples=["exchange"])]


class Price(Struct):
    """An outcome's live price, while its market is active, its book verified and the feed alive."""

    market_id: MarketId
    outcome: Outcome
    token_id: TokenId
    mid: Price01 | None
    bid: Price01 | None
    ask: Price01 | None
    spread: Spread | None
    bid_size: Shares | None
    ask_size: Shares | None
    last: Price01 | None
    last_ts: UnixMs | None
    volume_24h_usd: Annotated[Usd | None, Meta(description=f"{VOLUME_24H}; null in replays")]
    ts: UnixMs
    age_ms: Annotated[int, Meta(ge=0, description="Age in milliseconds", examples=[120])]


class Level(Struct):
    """A price level of an order book."""

    price: Price01
    size: Shares


class BookGap(Struct):
    """A time range in which book changes may have been missed."""

    from_ts: UnixMs
    to_ts: UnixMs | None
    cause: str


class Integrity(Struct):
    """The reliability of a past book."""

    status: Annotated[
        Literal["verified", "unverified", "gap"],
        Meta(
            description="`verified`: its best prices equal those that the exchange published for that moment; "
            "`unverified`: "
            "they differ, or none were published yet; `gap`: changes may have been missed around that moment"
        ),
    ]
    anchor_ts: Annotated[UnixMs, Meta(description="Time of the full book that it was built from")]
    changes: Annotated[Count, Meta(description="Level changes applied since")]
    gap: BookGap | None = None


class Book(Struct):
    """An order book, best prices first."""

    market_id: MarketId
    outcome: Outcome
    token_id: TokenId
    bids: list[Level]
    asks: list[Level]
    best_bid: Price01 | None
    best_ask: Price01 | None
    mid: Price01 | None
    spread: Spread | None
    depth_usd: Annotated[Usd, Meta(description="Price times size, over both sides")]
    tick_size: Annotated[float | None, Meta(examples=[0.01])]
    hash: Annotated[str | None, Meta(description="The exchange's digest of the book", examples=["ab" * 20])]
    seq: Annotated[
        str,
        Meta(
            description="Orders the states of one book; a decimal number beyond 2^53",
            pattern="^[0-9]+$",
            examples=["1882469267066290176"],
        ),
    ]
    ts: UnixMs


class Orderbook(Book):
    """An order book, best prices first. A live book is returned only if it agrees with the exchange's best prices."""

    integrity: Annotated[Integrity | None, Meta(description="Only with `at`")] = None


class BookMessage(Book):
    """A whole book, or in a `delta` its changed levels: size 0 removes one."""

    kind: Literal["snapshot", "delta"]


class BookState(Struct):
    """The order book's status and best prices."""

    status: Annotated[
        Literal["live", "unverified", "missing"],
        Meta(
            description="`unverified`: it disagrees with the exchange's best prices and is being refetched, or the "
            "live feed is late; `missing`: there is no book, or the market has ended"
        ),
    ]
    best_bid: Price01 | None
    best_ask: Price01 | None
    bid_levels: Count
    ask_levels: Count
    ts: UnixMs | None
    age_ms: int | None


class Stats(Struct):
    """24-hour statistics of an outcome."""

    open: Price01
    high: Price01
    low: Price01
    close: Price01
    volume: Shares
    volume_usd: Annotated[Usd, Meta(description="US dollars traded, of this outcome only")]
    trades: Count
    price_change: Change
    price_change_pct: Percent | None
    vwap: Price01 | None
    window_start: UnixMs
    window_end: UnixMs


class MarketDetail(Market):
    """A market, with its live price, order book state and 24-hour statistics."""

    description: str | None
    price: Price | None
    orderbook: BookState
    stats_24h: Stats | None


class RankedMarket(Market):
    """A market in the market list."""

    period_volume_usd: Annotated[
        Usd | None,
        Meta(
            description="US dollars traded in 24 hours, over all outcomes, when the list was ranked by it; constant "
            "over "
            "all pages of a list. Null before the first ranking; absent with `source=polymarket`",
        ),
    ] = None


class MarketPage(Struct):
    """A page of markets."""

    data: list[RankedMarket]
    next_cursor: Annotated[str, Meta(description="Pass as `cursor` to get the next page; empty on the last page")]
    has_more: bool


class Trade(Struct):
    """A trade. The side is the taker's."""

    id: Annotated[str, Meta(description="Stable id, the same from every source", examples=["-5102938475610293847"])]
    market_id: MarketId
    token_id: TokenId
    outcome: Outcome
    price: Price01
    size: Shares
    value_usd: Usd
    side: Literal["BUY", "SELL"]
    tx_hash: Annotated[str | None, Meta(examples=["0x" + "c4" * 32])]
    ts: UnixMs


class Candle(Struct):
    """Open, high, low and close of the time bucket that starts at `ts`."""

    ts: UnixMs
    open: Price01
    high: Price01
    low: Price01
    close: Price01
    volume: Shares
    volume_usd: Usd
    trades: Count


class Bars(Struct):
    """Candles in the UDF column format of charting libraries."""

    s: Annotated[Literal["ok", "no_data"], Meta(examples=["ok"])]
    t: list[UnixSeconds] = field(default_factory=list)
    o: list[Price01] = field(default_factory=list)
    h: list[Price01] = field(default_factory=list)
    l: list[Price01] = field(default_factory=list)  # noqa: E741 (the format's name)
    c: list[Price01] = field(default_factory=list)
    v: list[Shares] = field(default_factory=list)
    nextTime: Annotated[UnixSeconds | None, Meta(description="With `no_data`: the last bar before the range")] = None  # noqa: N815


class PlatformStats(Struct):
    """Totals of an exchange."""

    total_markets: Count
    active_markets: Count
    volume_24h_usd: Annotated[Usd, Meta(description="US dollars traded in the last 24 hours, over all markets")]
    trades_24h: Count
    onchain_trades_total: Annotated[
        int | None, Meta(description="Settlements indexed from the chain; null while the chain is not indexed")
    ]
    last_ingested_at: UnixSeconds | None
    computed_at: Annotated[
        UnixSeconds | None,
        Meta(description="When the 24-hour figures were computed: Unix seconds; null: nothing was traded"),
    ]


class Stage(Struct):
    """The freshness of one pipeline stage."""

    stage: Annotated[str, Meta(examples=["ingestion"])]
    status: Literal["fresh", "late", "stale", "missing"]
    last_data_at: UnixSeconds | None
    lag_s: Annotated[float, Meta(ge=0)] | None
    warn_after_s: Annotated[int, Meta(examples=[15])]
    fail_after_s: Annotated[int, Meta(examples=[60])]
    detail: dict[str, Any]


class Pipeline(Struct):
    """The freshness of each pipeline stage; `status` is that of the worst stage."""

    status: Literal["fresh", "late", "stale", "missing"]
    redis_up: Annotated[bool, Meta(description="Whether the configured cache responds; nothing depends on it")]
    stages: list[Stage]
    checked_at: Annotated[str, Meta(examples=["2026-11-21T12:00:00Z"])]


class Problem(Struct):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    detail: str
    code: str
    hint: str | None
    request_id: str | None
    errors: list[dict[str, Any]] = field(default_factory=list)
