"""How the service is doing."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from api.site.visit import Page

if TYPE_CHECKING:
    from api.site.visit import Visit

WORDS = {
    "fresh": "Everything is fresh",
    "late": "Something is late",
    "stale": "Something is stale",
    "missing": "Something has not brought any data yet",
}


async def status(visit: Visit) -> Page:
    """Show how late each stage is, what is held, and what is missing from it."""
    pipeline, stats, coverage = await asyncio.gather(
        visit.perhaps("/v1/status/pipeline"),
        visit.perhaps("/v1/stats", fresh_s=5),
        visit.perhaps("/v1/coverage", fresh_s=5),
    )
    whole = pipeline["status"] if pipeline else "down"
    return Page(
        template="status",
        title="Status",
        description="How fresh the data is, stage by stage; what is held, and what is missing from it.",
        data={
            "whole": whole,
            "words": WORDS.get(whole, "The API does not answer"),
            "pipeline": pipeline,
            "stats": stats,
            "coverage": coverage,
            "now": time.time(),
        },
    )
