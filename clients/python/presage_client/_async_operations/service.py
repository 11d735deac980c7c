"""The service itself: health, time, totals, data freshness and coverage.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from presage_client import _endpoints
from presage_client._async_operations.base import AsyncBaseOperations

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from presage_client import records
    from presage_client._transport import Instant


class AsyncServiceOperations(AsyncBaseOperations):
    """The service itself: health, time, totals, data freshness and coverage."""

    async def health(self) -> records.Health:
        """Health check.

        Succeeds while this process serves, and fails with 503 when it is about to stop, so that a load balancer
        chooses another; `/v1/status/pipeline` reports whether the data is fresh.

        Credits: 0.
        """
        return await self._call(_endpoints.HEALTH, {}, {})

    async def time(self) -> records.Time:
        """Server time.

        Credits: 0.
        """
        return await self._call(_endpoints.TIME, {}, {})

    async def stats(self, *, exchange: Literal["kalshi", "polymarket"] | None = None) -> records.PlatformStats:
        """Totals of an exchange.

        Credits: 1.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
        """
        return await self._call(_endpoints.STATS, {}, {"exchange": exchange})

    async def pipeline_status(self) -> records.Pipeline:
        """Freshness of each pipeline stage.

        Computed on request from each stage's latest data: a stage that stops becomes late, then stale.

        Credits: 0.
        """
        return await self._call(_endpoints.PIPELINE_STATUS, {}, {})

    async def openapi(self) -> dict[str, Any]:
        """OpenAPI document.

        Credits: 0.
        """
        return await self._call(_endpoints.OPENAPI, {}, {})

    async def reference(self) -> str:
        """API reference page.

        Self-contained. Can send test requests with a key that is kept only in the browser tab.

        Credits: 0.
        """
        return await self._call(_endpoints.REFERENCE, {}, {})

    async def metrics(self) -> str:
        """Prometheus metrics of this server.

        Of all worker processes. The operator can restrict which addresses may read them.

        Credits: 0.
        """
        return await self._call(_endpoints.METRICS, {}, {})

    async def coverage(
        self,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
    ) -> records.Coverage:
        """Coverage of an exchange's data, and its gaps.

        By kind: trades, order books, settlements. Each day is reconciled with the exchange's trade list and the
        chain's logs; missing data is filled in where possible, and each gap names the source. Figures of `kinds`
        and `days` are at most ten seconds old. docs/coverage.md explains them.

        Credits: 1.

        Args:
            kind: Only gaps in this kind of data.
            status: Only gaps with this status. `open`: ongoing; `fillable`: over, and its data is still available;
                `filled`: filled in; `lost`: its data is not available anywhere.
            from_: Only gaps that end at or after this moment: RFC 3339 or Unix ms.
            to: Only gaps that began before this moment: RFC 3339 or Unix ms.
            limit: Maximum number of gaps in the response. Default: 100. At most 1000.
            cursor: `next_cursor` of the previous page.
            exchange: The exchange that lists them. Default: polymarket.
        """
        return await self._call(
            _endpoints.COVERAGE,
            {},
            {
                "kind": kind,
                "status": status,
                "from": from_,
                "to": to,
                "limit": limit,
                "cursor": cursor,
                "exchange": exchange,
            },
        )

    def iter_coverage(
        self,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        exchange: Literal["kalshi", "polymarket"] | None = None,
    ) -> AsyncIterator[records.Gap]:
        """Iterate over all pages of `coverage`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.COVERAGE,
            {},
            {
                "kind": kind,
                "status": status,
                "from": from_,
                "to": to,
                "limit": limit,
                "cursor": cursor,
                "exchange": exchange,
            },
        )

    async def market_coverage(
        self,
        id: str,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> records.MarketCoverage:
        """Coverage of a market, and its gaps.

        For the market's lifetime. Its gaps include those that affected every market in that time.

        Credits: 1.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            kind: Only gaps in this kind of data.
            status: Only gaps with this status. `open`: ongoing; `fillable`: over, and its data is still available;
                `filled`: filled in; `lost`: its data is not available anywhere.
            from_: Only gaps that end at or after this moment: RFC 3339 or Unix ms.
            to: Only gaps that began before this moment: RFC 3339 or Unix ms.
            limit: Maximum number of gaps in the response. Default: 100. At most 1000.
            cursor: `next_cursor` of the previous page.
        """
        return await self._call(
            _endpoints.MARKET_COVERAGE,
            {"id": id},
            {"kind": kind, "status": status, "from": from_, "to": to, "limit": limit, "cursor": cursor},
        )

    def iter_market_coverage(
        self,
        id: str,
        *,
        kind: Literal["books", "settlements", "trades"] | None = None,
        status: Literal["fillable", "filled", "lost", "open"] | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncIterator[records.Gap]:
        """Iterate over all pages of `market_coverage`: `limit` is the size of a page."""
        return self._pages(
            _endpoints.MARKET_COVERAGE,
            {"id": id},
            {"kind": kind, "status": status, "from": from_, "to": to, "limit": limit, "cursor": cursor},
        )
