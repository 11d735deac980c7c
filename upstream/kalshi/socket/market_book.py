"""A market's order book, anchored by a snapshot and kept by changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.kalshi.book import KalshiBook, Level

if TYPE_CHECKING:
    from collections.abc import Iterable


class MarketBook:
    """Bids for YES and for NO by price; it exists only while it is valid."""

    __slots__ = ("sides",)

    def __init__(self, yes: Iterable[Level], no: Iterable[Level]) -> None:
        self.sides: tuple[dict[int, int], dict[int, int]] = (dict(yes), dict(no))

    def change(self, side: int, price: int, change: int) -> int:
        """Add to a level and return its size; ValueError if it would fall below 0, as the book is then another one."""
        levels = self.sides[side]
        size = levels.get(price, 0) + change
        if size < 0:
            raise ValueError("a size below zero")
        if size:
            levels[price] = size
        else:
            levels.pop(price, None)
        return size

    def whole(self, ticker: str) -> KalshiBook:
        """Return the book, best first."""
        yes, no = (sorted(levels.items(), reverse=True) for levels in self.sides)
        return KalshiBook(ticker, yes, no)
