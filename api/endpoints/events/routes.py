"""Events, categories, tags and series, and the markets that belong to them."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.base.lists import COMPUTED, Computed
from api.endpoints.events import records
from api.endpoints.markets.lists import CategoryMarkets, EventMarkets
from api.endpoints.markets.requests import OfCategory, OfEvent
from sql.queries import taxonomy

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="event_markets",
        path="/v1/events/{id}/markets",
        resource=EventMarkets,
        query=taxonomy.has_event,
        parameters=OfEvent,
        answers=records.EventMarkets,
        explained={"id": "The event's id, as markets say it in `event_id`"},
        cache_s=1,
        errors=("not_found",),
        missing="There is no such event",
        tag="Taxonomy",
        summary="Markets of an event",
    ),
    Endpoint(
        name="categories",
        path="/v1/categories",
        resource=Computed,
        query=taxonomy.categories,
        answers=list[records.CategoryCount],
        cache_s=10,
        headers=COMPUTED,
        tag="Taxonomy",
        summary="Categories and how many markets they have",
        description="Those with most markets first; counted every few minutes.",
    ),
    Endpoint(
        name="category_markets",
        path="/v1/categories/{slug}/markets",
        resource=CategoryMarkets,
        query=taxonomy.has_category,
        parameters=OfCategory,
        answers=records.CategoryMarkets,
        explained={"slug": "The category's slug, as GET /v1/categories lists it"},
        cache_s=1,
        errors=("not_found",),
        missing="There is no such category",
        hint="GET /v1/categories lists them",
        tag="Taxonomy",
        summary="Markets of a category",
    ),
    Endpoint(
        name="tags",
        path="/v1/tags",
        resource=Computed,
        query=taxonomy.tags,
        answers=list[records.TagCount],
        cache_s=10,
        headers=COMPUTED,
        tag="Taxonomy",
        summary="Tags and how many markets they have",
        description="Those with most markets first; counted every few minutes.",
    ),
    Endpoint(
        name="series",
        path="/v1/series",
        resource=Computed,
        query=taxonomy.series,
        answers=list[records.SeriesCount],
        cache_s=10,
        headers=COMPUTED,
        tag="Taxonomy",
        summary="Series and how many markets they have",
        description="Those with most markets first; counted every few minutes.",
    ),
)
