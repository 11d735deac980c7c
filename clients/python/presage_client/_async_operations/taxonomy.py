"""Events, categories, tags and series.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from presage_client import _endpoints
from presage_client._async_operations.base import AsyncBaseOperations

if TYPE_CHECKING:
    from presage_client import records
    from presage_client._record import Records


class AsyncTaxonomyOperations(AsyncBaseOperations):
    """Events, categories, tags and series."""

    async def event_markets(
        self,
        id: str,
        *,
        sort: Literal["created", "resolution"] | None = None,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> records.EventMarkets:
        """Markets of an event.

        Credits: 1.

        Args:
            id: The event's id, as in a market's `event_id`.
            sort: `resolution`: earliest end first; `created`: newest first. Default: resolution.
            status: Only markets with this status.
            limit: Maximum number of markets in the response. Default: 50. At most 200.
            offset: Number of markets to skip. Default: 0.
        """
        return await self._call(
            _endpoints.EVENT_MARKETS, {"id": id}, {"sort": sort, "status": status, "limit": limit, "offset": offset}
        )

    async def categories(
        self, *, exchange: Literal["kalshi", "polymarket"] | None = None
    ) -> Records[records.CategoryCount]:
        """Categories with their number of markets.

        Most markets first; recomputed every few minutes.

        Credits: 1.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
        """
        return await self._call(_endpoints.CATEGORIES, {}, {"exchange": exchange})

    async def category_markets(
        self,
        slug: str,
        *,
        sort: Literal["created", "resolution"] | None = None,
        status: Literal["ACTIVE", "CLOSED", "RESOLVED"] | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> records.CategoryMarkets:
        """Markets of a category.

        Credits: 1.

        Args:
            slug: The category's slug, as listed by GET /v1/categories.
            sort: `created`: newest first; `resolution`: earliest end first. Default: created.
            status: Only markets with this status.
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of markets in the response. Default: 20. At most 100.
            offset: Number of markets to skip. Default: 0.
        """
        return await self._call(
            _endpoints.CATEGORY_MARKETS,
            {"slug": slug},
            {"sort": sort, "status": status, "exchange": exchange, "limit": limit, "offset": offset},
        )

    async def tags(self, *, exchange: Literal["kalshi", "polymarket"] | None = None) -> Records[records.TagCount]:
        """Tags with their number of markets.

        Most markets first; recomputed every few minutes.

        Credits: 1.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
        """
        return await self._call(_endpoints.TAGS, {}, {"exchange": exchange})

    async def series(self, *, exchange: Literal["kalshi", "polymarket"] | None = None) -> Records[records.SeriesCount]:
        """Series with their number of markets.

        Most markets first; recomputed every few minutes.

        Credits: 1.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
        """
        return await self._call(_endpoints.SERIES, {}, {"exchange": exchange})

    async def events(
        self,
        *,
        exchange: Literal["polymarket"] | None = None,
        limit: int | None = None,
        offset: int | None = None,
        active: bool | None = None,
        closed: bool | None = None,
    ) -> Records[dict[str, Any]]:
        """Events, live from the exchange.

        The exchange's own objects. Parameters that are not listed here are forwarded to it.

        Credits: 2.

        Args:
            exchange: The exchange that is asked. Default: polymarket.
            limit: Maximum number of events in the response. Default: 100. At most 500.
            offset: Number of events to skip. Default: 0.
            active: Only events that are (true) or are not (false) active.
            closed: Only events that are (true) or are not (false) closed.
        """
        return await self._call(
            _endpoints.EVENTS,
            {},
            {"exchange": exchange, "limit": limit, "offset": offset, "active": active, "closed": closed},
        )
