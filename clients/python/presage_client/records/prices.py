"""Records that the operations of prices return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: E741, F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


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


class BookHistory(Record, kw_only=True):
    """The book of an outcome at even steps, oldest first."""

    market_id: str
    """The condition id; of Kalshi the ticker."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
    step_s: int
    depth: int
    data: Records[BookAt]
    count: int
    gaps: Records[BookGap]
    """Gaps that overlap the requested range."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, BookAt)
        self.gaps = _record.Records(self.gaps, BookGap)


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
    """The condition id; of Kalshi the ticker."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
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


class Orderbook(Record, kw_only=True):
    """An order book, best prices first. A live book is returned only if it agrees with the exchange's best prices."""

    INSTANTS: ClassVar[dict[str, str]] = {"ts": "ms"}

    market_id: str
    """The condition id; of Kalshi the ticker."""
    outcome: int
    """Index of the outcome, from 0."""
    token_id: str
    """The outcome's token: a decimal number of up to 78 digits; of Kalshi `TICKER:yes` or `TICKER:no`."""
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
