"""Responses of the coverage endpoints. The JSON is built by `sql/timescale/coverage.sql`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.coverage.requests import GapStatus, Kind
from api.schemas.records import Count, MarketId, UnixMs, UnixSeconds

Day = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$", description="A day, UTC", examples=["2026-11-20"])]


class Span(Struct):
    """A time range."""

    from_ts: UnixMs
    to_ts: UnixMs | None


class GapCounts(Struct):
    """Number of gaps by status."""

    open: Count
    fillable: Count
    lost: Count
    filled: Count


class Held(Struct):
    """Stored data of one kind."""

    kind: Kind
    status: Annotated[
        Literal["fresh", "late", "stale", "missing", "off"],
        Meta(
            description="Status of the stage that ingests it; `off`: not configured, or not recorded of this exchange"
        ),
    ]
    from_ts: Annotated[UnixMs | None, Meta(description="The earliest stored moment; null: nothing is stored")]
    to_ts: Annotated[UnixMs | None, Meta(description="The latest stored moment")]
    spans: Annotated[
        list[Span],
        Meta(description="Ranges that are complete except for the listed gaps; latest first, at most 100"),
    ]
    missing_s: Annotated[
        float, Meta(ge=0, description="Seconds of the spans in which data of any market may be missing")
    ]
    gaps: GapCounts
    reconciled_to: Annotated[Day | None, Meta(description="The latest day reconciled with its source")]


class HeldOfMarket(Held):
    """Stored data of one kind for a market."""

    first_ts: Annotated[UnixMs | None, Meta(description="Its first row: a trade, a best-price change or a fill")]
    last_ts: Annotated[UnixMs | None, Meta(description="Its last row")]


class Gap(Struct):
    """A gap: data that is or was missing."""

    id: Annotated[str, Meta(examples=["412", "blocks 91650000-91650311"])]
    kind: Kind
    market_id: Annotated[MarketId | None, Meta(description="Null: every market, or every one of `shard`")]
    from_ts: UnixMs
    to_ts: Annotated[UnixMs | None, Meta(description="Null: still open")]
    cause: Annotated[str, Meta(examples=["no feed running"])]
    status: GapStatus
    filled_at: UnixSeconds | None
    filled_by: Annotated[
        str | None,
        Meta(description="The source that filled it, or that nothing had been missed", examples=["data_api"]),
    ]
    added: Annotated[int, Meta(ge=0, description="Missing rows that were added")]
    fault: Annotated[str | None, Meta(description="Why the last attempt to fill it failed")]
    from_block: Annotated[int | None, Meta(description="For settlements: the first block not indexed")]
    to_block: Annotated[int | None, Meta(description="For settlements: the last block not indexed")]
    shard: Annotated[
        str | None,
        Meta(description="The shard of the live feed that missed it; null: not one shard alone", examples=["2/4"]),
    ]


class ReconciledDay(Struct):
    """A day reconciled with its source: the exchange's trade list or the chain's logs."""

    day: Day
    kind: Kind
    source: Literal["exchange", "chain"]
    listed: Annotated[int, Meta(ge=0, description="Trades in the exchange's list, or logs on the chain")]
    held: Annotated[int, Meta(ge=0, description="How many of those are stored now")]
    added: Annotated[int, Meta(ge=0, description="How many of those had been missing and were filled in")]
    unlisted: Annotated[int, Meta(ge=0, description="Stored, but not in the source's list")]
    unknown: Annotated[int, Meta(ge=0, description="Listed, but not of a market in the catalogue")]
    agrees: bool
    checked_at: UnixSeconds


class Coverage(Struct):
    """Coverage of all data."""

    kinds: list[Held]
    days: Annotated[list[ReconciledDay], Meta(description="The last 31 days, newest first")]
    data: Annotated[list[Gap], Meta(description="Gaps, by start time, latest first")]
    count: Count
    next_cursor: Annotated[str, Meta(description="Pass as `cursor` to get the next page; empty on the last page")]
    has_more: bool


class MarketCoverage(Struct):
    """Coverage of one market."""

    market_id: MarketId
    kinds: list[HeldOfMarket]
    days: Annotated[list[ReconciledDay], Meta(description="Its trades on the last 31 days, newest first")]
    data: Annotated[list[Gap], Meta(description="Its gaps and those of every market, by start time, latest first")]
    count: Count
    next_cursor: Annotated[str, Meta(description="Pass as `cursor` to get the next page; empty on the last page")]
    has_more: bool
