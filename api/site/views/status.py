"""The status page."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from api.site.visit import Page

if TYPE_CHECKING:
    from api.site.visit import Visit

MESSAGES = {
    "fresh": "All stages are fresh",
    "late": "At least one stage is late",
    "stale": "At least one stage is stale",
    "missing": "At least one stage has no data yet",
}


async def status(visit: Visit) -> Page:
    """Show each stage's lag, and the data's coverage and gaps."""
    pipeline, stats, coverage = await asyncio.gather(
        visit.fetch_optional("/v1/status/pipeline"),
        visit.fetch_optional("/v1/stats", max_age_s=5),
        visit.fetch_optional("/v1/coverage", max_age_s=5),
    )
    whole = pipeline["status"] if pipeline else "down"
    return Page(
        template="status",
        title="Status",
        description="Data freshness by stage; coverage and gaps.",
        data={
            "whole": whole,
            "words": MESSAGES.get(whole, "The API is not available"),
            "pipeline": pipeline,
            "stats": stats,
            "coverage": coverage,
            "now": time.time(),
        },
    )
