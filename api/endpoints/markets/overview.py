"""What is told of one market, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.endpoints.base.lists import listed
from api.endpoints.base.resource import Reading
from sql.queries import overview

if TYPE_CHECKING:
    from api.schemas.requests import Parameters

MOST_SIBLINGS = 500


class Siblings(Reading):
    """The other markets of a market's event."""

    def answer(self, given: Parameters, **path: str) -> bytes:
        """Give them."""
        key = self.service.markets.of(path["id"]).key
        rows = self.rows(overview.siblings, market_key=key, limit=MOST_SIBLINGS)
        return listed(rows, event_id=self.read(overview.event_of, market_key=key))
