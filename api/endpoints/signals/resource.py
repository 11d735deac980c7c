"""The resource of a market's signals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from api.endpoints.base.resource import ReadResource
from api.schemas.requests import LATEST

if TYPE_CHECKING:
    from api.endpoints.signals.requests import SignalParameters

USUAL_SPAN = timedelta(days=30)


class MarketSignals(ReadResource):
    """The newest signals of a market."""

    def answer(self, given: SignalParameters, **path: str) -> bytes:
        """Return an array."""
        key = self.service.markets.recorded(path["id"]).key
        since = given.from_ or datetime.fromtimestamp(self.service.clock(), UTC) - USUAL_SPAN
        until = given.to or LATEST
        return self.required(self.read(market_key=key, type=given.type, since=since, until=until, limit=given.limit))
