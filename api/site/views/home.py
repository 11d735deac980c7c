"""The home page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from api.site.visit import Page

if TYPE_CHECKING:
    from api.site.visit import Visit

TOP_MARKETS, SHORT_LIST = 8, 5


async def home(visit: Visit) -> Page:
    """Show the introduction and live figures; without the API, the introduction alone."""
    stats, pipeline, top, trending, breaking = await asyncio.gather(
        visit.fetch_optional("/v1/stats", max_age_s=10),
        visit.fetch_optional("/v1/status/pipeline"),
        visit.fetch_optional("/v1/markets/top", by="volume", period="24h", limit=TOP_MARKETS, max_age_s=5),
        visit.fetch_optional("/v1/markets/trending", limit=SHORT_LIST, max_age_s=5),
        visit.fetch_optional("/v1/markets/breaking", limit=SHORT_LIST, max_age_s=5),
    )
    return Page(
        template="home",
        title="Presage: prediction markets, recorded completely, served live",
        description="A self-hosted data service for prediction markets: prices, order books, trades, signals and "
        "wallets over REST, a live stream, webhooks and MCP.",
        data={
            "stats": stats,
            "pipeline": pipeline,
            "top": await visit.with_prices(top or []),
            "trending": (trending or {}).get("data", []),
            "breaking": (breaking or {}).get("data", []),
            "operations": len(visit.site.reference.operations),
        },
    )
