"""What endpoints of coverage answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.coverage.requests import GapStatus, Kind
from api.schemas.records import Count, MarketId, UnixMs, UnixSeconds

Day = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\d$", description="A day, UTC", examples=["2026-11-20"])]


class Span(Struct):
    """A stretch of time."""

    from_ts: UnixMs
    to_ts: UnixMs | None


class GapCounts(Struct):
    """Gaps by their state."""

    open: Count
    fillable: Count
    lost: Count
    filled: Count


class Held(Struct):
    """What is held of a kind of data."""

    kind: Kind
    status: Annotated[
        Literal["fresh", "late", "stale", "missing", "off"],
        Meta(description="Of the stage that brings it in; `off`: it is not configured"),
    ]
    from_ts: Annotated[UnixMs | None, Meta(description="The earliest moment held; null: nothing is")]
    to_ts: Annotated[UnixMs | None, Meta(description="The latest moment held")]
    spans: Annotated[
        list[Span],
        Meta(description="Within these nothing is missing but what the gaps name; the latest first, at most 100"),
    ]
    missing_s: Annotated[
        float, Meta(ge=0, description="Seconds of the spans for which something may be missing, of any market")
    ]
    gaps: GapCounts
    reconciled_to: Annotated[Day | None, Meta(description="The latest day that was counted against its source")]


class HeldOfMarket(Held):
    """What is held of a market."""

    first_ts: Annotated[UnixMs | None, Meta(description="Its first row: a trade, a change of its best prices, a fill")]
    last_ts: Annotated[UnixMs | None, Meta(description="Its last row")]


class Gap(Struct):
    """Something that is missing, or was."""

    id: Annotated[str, Meta(examples=["412", "blocks 91650000-91650311"])]
    kind: Kind
    market_id: Annotated[MarketId | None, Meta(description="Null: every market")]
    from_ts: UnixMs
    to_ts: Annotated[UnixMs | None, Meta(description="Null: it goes on")]
    cause: Annotated[str, Meta(examples=["no feed running"])]
    status: GapStatus
    filled_at: UnixSeconds | None
    filled_by: Annotated[
        str | None,
        Meta(description="Where its data came from; or that nothing had been missed", examples=["data_api"]),
    ]
    added: Annotated[int, Meta(ge=0, description="Rows that were missing and were added")]
    fault: Annotated[str | None, Meta(description="Why the last attempt to fill it failed")]
    from_block: Annotated[int | None, Meta(description="Of settlements: the first block that is not indexed")]
    to_block: Annotated[int | None, Meta(description="Of settlements: the last one")]


class ReconciledDay(Struct):
    """A day, counted against its source: the exchange's list of trades, or the chain's logs."""

    day: Day
    kind: Kind
    source: Literal["exchange", "chain"]
    listed: Annotated[int, Meta(ge=0, description="Trades that the exchange lists, or logs that the chain has")]
    held: Annotated[int, Meta(ge=0, description="How many of those are held by now")]
    added: Annotated[int, Meta(ge=0, description="How many of those had been missing, and were filled in")]
    unlisted: Annotated[int, Meta(ge=0, description="Held, though the source does not tell of it")]
    unknown: Annotated[int, Meta(ge=0, description="Listed, but of no market in the catalogue")]
    agrees: bool
    checked_at: UnixSeconds


class Coverage(Struct):
    """What is held of everything."""

    kinds: list[Held]
    days: Annotated[list[ReconciledDay], Meta(description="The last 31, the newest first")]
    data: Annotated[list[Gap], Meta(description="Gaps, those that began last first")]
    count: Count
    next_cursor: Annotated[str, Meta(description="Ask again with `cursor` set to this; empty at the end")]
    has_more: bool


class MarketCoverage(Struct):
    """What is held of a market."""

    market_id: MarketId
    kinds: list[HeldOfMarket]
    days: Annotated[list[ReconciledDay], Meta(description="Its trades on the last 31, the newest first")]
    data: Annotated[list[Gap], Meta(description="Its gaps and those of every market, those that began last first")]
    count: Count
    next_cursor: Annotated[str, Meta(description="Ask again with `cursor` set to this; empty at the end")]
    has_more: bool
