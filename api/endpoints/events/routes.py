"""Routes of events, categories, tags and series."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.lists import LAST_MODIFIED, ComputedList
from api.endpoints.events import records
from api.endpoints.markets.lists import CategoryMarketsResource, EventMarketsResource
from api.endpoints.markets.requests import CategoryMarketParameters, EventMarketParameters, TaxonomyParameters
from sql.queries import taxonomy

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="event_markets",
        path="/v1/events/{id}/markets",
        resource=EventMarketsResource,
        query=taxonomy.has_event,
        parameters=EventMarketParameters,
        answers=records.EventMarkets,
        path_descriptions={"id": "The event's id, as in a market's `event_id`"},
        cache_s=1,
        errors=("not_found",),
        missing="The event does not exist",
        tag="Taxonomy",
        summary="Markets of an event",
    ),
    Endpoint(
        name="categories",
        path="/v1/categories",
        resource=ComputedList,
        query=taxonomy.categories,
        parameters=TaxonomyParameters,
        answers=list[records.CategoryCount],
        cache_s=10,
        headers=LAST_MODIFIED,
        tag="Taxonomy",
        summary="Categories with their number of markets",
        description="Most markets first; recomputed every few minutes.",
    ),
    Endpoint(
        name="category_markets",
        path="/v1/categories/{slug}/markets",
        resource=CategoryMarketsResource,
        query=taxonomy.has_category,
        parameters=CategoryMarketParameters,
        answers=records.CategoryMarkets,
        path_descriptions={"slug": "The category's slug, as listed by GET /v1/categories"},
        cache_s=1,
        errors=("not_found",),
        missing="The category does not exist",
        hint="GET /v1/categories lists categories",
        tag="Taxonomy",
        summary="Markets of a category",
    ),
    Endpoint(
        name="tags",
        path="/v1/tags",
        resource=ComputedList,
        query=taxonomy.tags,
        parameters=TaxonomyParameters,
        answers=list[records.TagCount],
        cache_s=10,
        headers=LAST_MODIFIED,
        tag="Taxonomy",
        summary="Tags with their number of markets",
        description="Most markets first; recomputed every few minutes.",
    ),
    Endpoint(
        name="series",
        path="/v1/series",
        resource=ComputedList,
        query=taxonomy.series,
        parameters=TaxonomyParameters,
        answers=list[records.SeriesCount],
        cache_s=10,
        headers=LAST_MODIFIED,
        tag="Taxonomy",
        summary="Series with their number of markets",
        description="Most markets first; recomputed every few minutes.",
    ),
)
