"""What exports' endpoints answer, for the document."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from api.endpoints.exports.requests import TopicName
from api.schemas.records import Count, UnixSeconds

Day = Annotated[str, Meta(description="UTC", examples=["2026-11-20"])]
Whole = Annotated[bool, Meta(description="Written after the day was over; false: as far as it had come")]


class ExportedDay(Struct):
    """A day of a topic, written to files."""

    topic: TopicName
    day: Day
    rows: Count
    bytes: Count
    files: Count
    complete: Whole
    created_at: UnixSeconds
    manifest: Annotated[str, Meta(description="Where its files are listed", examples=["/v1/exports/trades/2026-11-20"])]


class ExportPage(Struct):
    """Exported days, the newest first."""

    data: list[ExportedDay]
    next_cursor: str
    has_more: bool


class ExportedFile(Struct):
    """A file."""

    name: Annotated[str, Meta(examples=["trades-2026-11-20.5f0c1d2e3b4a6978.parquet"])]
    format: Annotated[Literal["parquet", "csv"], Meta(description="`csv` is compressed by gzip")]
    part: Annotated[Count, Meta(description="Of the day, from 0")]
    rows: Count
    bytes: Count
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", examples=["5f" * 32])]
    complete: Whole
    url: Annotated[str, Meta(examples=["/v1/exports/trades/2026-11-20/trades-2026-11-20.5f0c1d2e3b4a6978.parquet"])]


class ExportManifest(Struct):
    """What a day of a topic was written to."""

    topic: TopicName
    day: Day
    rows: Count
    complete: Whole
    created_at: UnixSeconds
    files: list[ExportedFile]
