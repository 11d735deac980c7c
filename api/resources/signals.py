"""Signals of a market, as they are shown and as they are held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.resource import Reading
from api.resources.debug import Debug

if TYPE_CHECKING:
    from api.parameters_signals import SignalsOf

MOST_OF_MARKET, MOST_RAW = 100, 1000


class OfMarket(Reading):
    """The newest signals of a market."""

    def answer(self, given: SignalsOf, **path: str) -> bytes:
        """Give an array."""
        key = self.service.markets.of(path["id"]).key
        return self.found(self.read(market_key=key, type=given.type, limit=MOST_OF_MARKET))


class DebugSignals(Debug):
    """The newest signals."""

    limit = MOST_RAW


class DebugSignalsOf(Debug):
    """The newest signals of a market."""

    def answer(self, given: SignalsOf, **path: str) -> bytes:  # type: ignore[override]
        """Give an array."""
        key = self.service.markets.of(path["id"]).key
        return self.found(self.read(market_key=key, type=given.type, limit=MOST_RAW))
