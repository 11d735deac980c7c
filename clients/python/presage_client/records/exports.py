"""Records that the operations of exports return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: F821, TC001, UP037 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from typing import ClassVar

from presage_client import _record
from presage_client._field_types import Literal, Records
from presage_client._record import Record


class ExportManifest(Record, kw_only=True):
    """The files of an exported day."""

    INSTANTS: ClassVar[dict[str, str]] = {"created_at": "s"}

    topic: Literal[
        "book_events",
        "book_events_kalshi",
        "candles",
        "candles_kalshi",
        "markets",
        "markets_kalshi",
        "settlements",
        "trades",
        "trades_kalshi",
    ]
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

    topic: Literal[
        "book_events",
        "book_events_kalshi",
        "candles",
        "candles_kalshi",
        "markets",
        "markets_kalshi",
        "settlements",
        "trades",
        "trades_kalshi",
    ]
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
