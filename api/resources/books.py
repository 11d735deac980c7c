"""Order books."""

from __future__ import annotations

from typing import TYPE_CHECKING

from api.resource import AboutOutcome
from sql.queries import books

if TYPE_CHECKING:
    from api.parameters import OfOutcome


class Orderbook(AboutOutcome):
    """The order book of an outcome: one that agrees with the exchange, or none."""

    def answer(self, given: OfOutcome, **path: str) -> bytes:
        """Give the book."""
        market, outcome = self.outcome(given, path)
        text = self.read(market_key=market.key, outcome=outcome)
        hint = None
        if text is None and self.read(books.doubted, market_key=market.key, outcome=outcome):
            hint = "It disagrees with the exchange's best prices and is being fetched again: try in a few seconds"
        return self.found(text, hint)
