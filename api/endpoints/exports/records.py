"""Responses of the export endpoints. The JSON is built by `sql/queries/exports.sql`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.exports.requests import TopicName
from api.schemas.records import Count, UnixSeconds

Day = Annotated[str, Meta(description="UTC", examples=["2026-11-20"])]
Whole = Annotated[bool, Meta(description="True: written after the end of the day; false: the day was still incomplete")]


class ExportedDay(Struct):
    """An exported day of a topic."""

    topic: TopicName
    day: Day
    rows: Count
    bytes: Count
    files: Count
    complete: Whole
    created_at: UnixSeconds
    manifest: Annotated[
        str, Meta(description="Path of the list of its files", examples=["/v1/exports/trades/2026-11-20"])
    ]


class ExportPage(Struct):
    """A page of exported days, newest first."""

    data: list[ExportedDay]
    next_cursor: str
    has_more: bool


class ExportedFile(Struct):
    """An exported file."""

    name: Annotated[str, Meta(examples=["trades-2026-11-20.5f0c1d2e3b4a6978.parquet"])]
    format: Annotated[Literal["parquet", "csv"], Meta(description="`csv` is gzip-compressed")]
    part: Annotated[Count, Meta(description="Part of the day, from 0")]
    rows: Count
    bytes: Count
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", examples=["5f" * 32])]
    complete: Whole
    url: Annotated[str, Meta(examples=["/v1/exports/trades/2026-11-20/trades-2026-11-20.5f0c1d2e3b4a6978.parquet"])]


class ExportManifest(Struct):
    """The files of an exported day."""

    topic: TopicName
    day: Day
    rows: Count
    complete: Whole
    created_at: UnixSeconds
    files: list[ExportedFile]
