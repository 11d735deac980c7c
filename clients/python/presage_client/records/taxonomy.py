"""Records that the operations of taxonomy return.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

# ruff: noqa: TC001 - msgspec reads the types when it runs, and `Literal` as str

from __future__ import annotations

from presage_client import _record
from presage_client._field_types import Records
from presage_client._record import Record
from presage_client.records.common import Market


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


class EventMarkets(Record, kw_only=True):
    """Markets of one event."""

    event_id: str
    data: Records[Market]
    count: int
    """Number of records in `data`."""

    def __post_init__(self) -> None:
        self.data = _record.Records(self.data, Market)


class SeriesCount(Record, kw_only=True):
    """A series and its number of markets."""

    series: str
    market_count: int


class TagCount(Record, kw_only=True):
    """A tag and its number of markets."""

    tag: str
    market_count: int
