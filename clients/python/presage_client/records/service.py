"""Records that the operations of service return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import Any, ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


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


class Gap(Record, kw_only=True):
    """A gap: data that is or was missing."""

    INSTANTS: ClassVar[dict[str, str]] = {"from_ts": "ms", "to_ts": "ms", "filled_at": "s"}

    id: str
    kind: Literal["books", "settlements", "trades"]
    market_id: str | None
    """Null: every market, or every one of `shard`."""
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
    shard: str | None
    """The shard of the live feed that missed it; null: not one shard alone."""


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
    """Status of the stage that ingests it; `off`: not configured, or not recorded of this exchange."""
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
    """Status of the stage that ingests it; `off`: not configured, or not recorded of this exchange."""
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


class MarketCoverage(Record, kw_only=True):
    """Coverage of one market."""

    market_id: str
    """The condition id; of Kalshi the ticker."""
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
    """Totals of an exchange."""

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
