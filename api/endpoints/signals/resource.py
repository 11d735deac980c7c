"""Signals of a market, as they are shown and as they are held."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from api.endpoints.base.resource import Reading
from api.schemas.requests import LATEST

if TYPE_CHECKING:
    from api.endpoints.signals.requests import SignalsOf

USUAL_SPAN = timedelta(days=30)


class OfMarket(Reading):
    """The newest signals of a market."""

    def answer(self, given: SignalsOf, **path: str) -> bytes:
        """Give an array."""
        key = self.service.markets.of(path["id"]).key
        since = given.from_ or datetime.fromtimestamp(self.service.clock(), UTC) - USUAL_SPAN
        until = given.to or LATEST
        return self.found(self.read(market_key=key, type=given.type, since=since, until=until, limit=given.limit))
