"""Responses of the event, category, tag and series endpoints. The JSON is built by `sql/queries/taxonomy.sql`."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from api.endpoints.markets.records import Returned
from api.schemas.records import Count, Market


class EventMarkets(Struct):
    """Markets of one event."""

    event_id: Annotated[str, Meta(examples=["12345"])]
    data: list[Market]
    count: Returned


class CategoryMarkets(Struct):
    """Markets of one category."""

    category: Annotated[str, Meta(examples=["weather"])]
    data: list[Market]
    count: Returned


class CategoryCount(Struct):
    """A category and its number of markets."""

    category: Annotated[str, Meta(examples=["politics"])]
    market_count: Count


class TagCount(Struct):
    """A tag and its number of markets."""

    tag: Annotated[str, Meta(examples=["bitcoin"])]
    market_count: Count


class SeriesCount(Struct):
    """A series and its number of markets."""

    series: Annotated[str, Meta(examples=["btc-up-or-down-5m"])]
    market_count: Count
