"""The resource of related markets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.endpoints.base.lists import json_list
from api.endpoints.base.resource import ReadResource
from sql.queries import overview

if TYPE_CHECKING:
    from api.schemas.requests import Parameters

MAX_SIBLINGS = 500


class RelatedMarkets(ReadResource):
    """The other markets of a market's event."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Return the related markets."""
        key = self.service.markets.of(path["id"]).key
        rows = self.read(overview.siblings, market_key=key, limit=MAX_SIBLINGS)
        return json_list(rows, event_id=self.read(overview.event_of, market_key=key))
