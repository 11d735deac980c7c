"""The resource of equivalent markets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.endpoints.base.lists import json_list
from api.endpoints.base.resource import ReadResource

if TYPE_CHECKING:
    from api.endpoints.equivalents.requests import EquivalentParameters


class EquivalentMarkets(ReadResource):
    """Markets of other exchanges that may ask the same question as a market."""

    def answer(self, given: EquivalentParameters, **path: str) -> bytes:
        """Return them, closest first."""
        market = self.service.markets.of(path["id"])
        rows = self.read(market_key=market.key, verdict=given.verdict, limit=given.limit)
        return json_list(list(rows), market_id=market.market_id)
