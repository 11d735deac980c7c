"""The first page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from api.site.visit import Page

if TYPE_CHECKING:
    from api.site.visit import Visit

LISTED, SHORT = 8, 5


async def home(visit: Visit) -> Page:
    """Say what this is, and show that it lives; while the API is away the words remain."""
    stats, pipeline, top, trending, breaking = await asyncio.gather(
        visit.perhaps("/v1/stats", fresh_s=10),
        visit.perhaps("/v1/status/pipeline"),
        visit.perhaps("/v1/markets/top", by="volume", period="24h", limit=LISTED, fresh_s=5),
        visit.perhaps("/v1/markets/trending", limit=SHORT, fresh_s=5),
        visit.perhaps("/v1/markets/breaking", limit=SHORT, fresh_s=5),
    )
    return Page(
        template="home",
        title="Presage: prediction markets, recorded completely, served live",
        description="A self-hosted data service for prediction markets: prices, order books, trades, signals and "
        "wallets over REST, a live stream, webhooks and MCP.",
        data={
            "stats": stats,
            "pipeline": pipeline,
            "top": await visit.priced(top or []),
            "trending": (trending or {}).get("data", []),
            "breaking": (breaking or {}).get("data", []),
            "operations": len(visit.site.reference.operations),
        },
    )
