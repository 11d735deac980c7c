"""Order book of a market: one book carries both outcomes, as a bid for one is an offer of the other."""

from __future__ import annotations

import hashlib
from bisect import bisect_left, insort
from typing import Literal, TypeAlias

from upstream.transport.micro import ONE

BUY: Literal["BUY"] = "BUY"
SELL: Literal["SELL"] = "SELL"
Side: TypeAlias = Literal["BUY", "SELL"]
Levels: TypeAlias = list[tuple[int, int]]

_MASK = (1 << 64) - 1


def opposite(side: Side) -> Side:
    """Return the other side."""
    return SELL if side == BUY else BUY


class SandboxBook:
    """Levels in micro-units, for the first outcome; the second sees their mirror image at 1 - price.

    `digest` is updated per level and depends on the resting orders only: a hash costs the same at any depth.
    """

    __slots__ = ("_ask_prices", "_bid_prices", "asks", "bids", "digest", "ts_ms")

    def __init__(self) -> None:
        self.bids: dict[int, int] = {}
        self.asks: dict[int, int] = {}
        self.digest = 0
        self.ts_ms = 0
        self._bid_prices: list[int] = []
        self._ask_prices: list[int] = []

    def set(self, side: Side, price: int, size: int) -> None:
        """Set the total size resting at a level; 0 removes the level."""
        levels, prices = (self.bids, self._bid_prices) if side == BUY else (self.asks, self._ask_prices)
        before = levels.get(price, 0)
        if before == size:
            return
        if before:
            self.digest ^= _mark(side, price, before)
        if size:
            levels[price] = size
            self.digest ^= _mark(side, price, size)
            if not before:
                insort(prices, price)
        else:
            del levels[price]
            del prices[bisect_left(prices, price)]

    def clear(self) -> None:
        """Remove all levels."""
        for levels in (self.bids, self.asks):
            levels.clear()
        self._bid_prices.clear()
        self._ask_prices.clear()
        self.digest = 0

    @property
    def best_bid(self) -> int:
        """Return the highest bid; 0 without bids, as the exchange writes it."""
        return self._bid_prices[-1] if self._bid_prices else 0

    @property
    def best_ask(self) -> int:
        """Return the lowest offer; 1 without offers, as the exchange writes it."""
        return self._ask_prices[0] if self._ask_prices else ONE

    def prices(self, side: Side) -> list[int]:
        """Return the prices of one side, ascending. The book's own list: do not modify it."""
        return self._bid_prices if side == BUY else self._ask_prices

    def best(self, outcome: int) -> tuple[int, int]:
        """Return best bid and best ask of an outcome."""
        if outcome == 0:
            return self.best_bid, self.best_ask
        return ONE - self.best_ask, ONE - self.best_bid

    def levels(self, outcome: int) -> tuple[Levels, Levels]:
        """Return bids and asks of an outcome, worst level first, as the exchange sends them."""
        bids = [(price, self.bids[price]) for price in self._bid_prices]
        asks = [(price, self.asks[price]) for price in reversed(self._ask_prices)]
        if outcome == 0:
            return bids, asks
        return [(ONE - price, size) for price, size in asks], [(ONE - price, size) for price, size in bids]

    def hash(self, token: str) -> str:
        """Return forty hex digits for the book of a token as of its last change."""
        return hashlib.sha1(f"{token}{self.ts_ms}{self.digest:x}".encode(), usedforsecurity=False).hexdigest()


def _mark(side: Side, price: int, size: int) -> int:
    mixed = (
        price * 0x9E3779B97F4A7C15 + size * 0xC2B2AE3D27D4EB4F + (0x165667B19E3779F9 if side == BUY else 0)
    ) & _MASK
    mixed ^= mixed >> 29
    return (mixed * 0xBF58476D1CE4E5B9) & _MASK
