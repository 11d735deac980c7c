"""Order book of a market: one book carries both outcomes, as a bid for one is an offer of the other."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
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

    Prices ascend; sizes are kept beside them, as arrays, so that 200,000 books fit into memory. `digest` is updated per
    level and depends on the resting orders only: a hash costs the same at any depth.
    """

    __slots__ = ("_ask_prices", "_ask_sizes", "_bid_prices", "_bid_sizes", "digest", "ts_ms")

    def __init__(self) -> None:
        self.digest = 0
        self.ts_ms = 0
        self._bid_prices, self._bid_sizes = array("q"), array("q")
        self._ask_prices, self._ask_sizes = array("q"), array("q")

    def set(self, side: Side, price: int, size: int) -> None:
        """Set the total size resting at a level; 0 removes the level."""
        prices, sizes = self.side(side)
        at = bisect_left(prices, price)
        before = sizes[at] if at < len(prices) and prices[at] == price else 0
        if before == size:
            return
        if before:
            self.digest ^= _mark(side, price, before)
        if size:
            self.digest ^= _mark(side, price, size)
            if before:
                sizes[at] = size
            else:
                prices.insert(at, price)
                sizes.insert(at, size)
        else:
            del prices[at]
            del sizes[at]

    def fill(self, side: Side, levels: Levels) -> None:
        """Set all levels of an empty side, given by ascending price."""
        prices, sizes = self.side(side)
        for price, size in levels:
            prices.append(price)
            sizes.append(size)
            self.digest ^= _mark(side, price, size)

    def clear(self) -> None:
        """Remove all levels."""
        for values in (self._bid_prices, self._bid_sizes, self._ask_prices, self._ask_sizes):
            del values[:]
        self.digest = 0

    @property
    def best_bid(self) -> int:
        """Return the highest bid; 0 without bids, as the exchange writes it."""
        return self._bid_prices[-1] if self._bid_prices else 0

    @property
    def best_ask(self) -> int:
        """Return the lowest offer; 1 without offers, as the exchange writes it."""
        return self._ask_prices[0] if self._ask_prices else ONE

    def side(self, side: Side) -> tuple[array[int], array[int]]:
        """Return prices, ascending, and sizes of one side. The book's own arrays: do not modify them."""
        return (self._bid_prices, self._bid_sizes) if side == BUY else (self._ask_prices, self._ask_sizes)

    def size(self, side: Side, price: int) -> int:
        """Return the total size resting at a level; 0 if there is none."""
        prices, sizes = self.side(side)
        at = bisect_left(prices, price)
        return sizes[at] if at < len(prices) and prices[at] == price else 0

    def best(self, outcome: int) -> tuple[int, int]:
        """Return best bid and best ask of an outcome."""
        if outcome == 0:
            return self.best_bid, self.best_ask
        return ONE - self.best_ask, ONE - self.best_bid

    def levels(self, outcome: int) -> tuple[Levels, Levels]:
        """Return bids and asks of an outcome, worst level first, as the exchange sends them."""
        bids = list(zip(self._bid_prices, self._bid_sizes, strict=True))
        asks = list(zip(reversed(self._ask_prices), reversed(self._ask_sizes), strict=True))
        if outcome == 0:
            return bids, asks
        return [(ONE - price, size) for price, size in asks], [(ONE - price, size) for price, size in bids]

    def hash(self, token: str) -> str:
        """Return forty hex digits for the book of a token as of its last change."""
        return hash_of(token, self.ts_ms, self.digest)


def hash_of(token: str, ts_ms: int, digest: int) -> str:
    """Return forty hex digits for the book of a token with a digest, changed last at a time."""
    return hashlib.sha1(f"{token}{ts_ms}{digest:x}".encode(), usedforsecurity=False).hexdigest()


def _mark(side: Side, price: int, size: int) -> int:
    mixed = (
        price * 0x9E3779B97F4A7C15 + size * 0xC2B2AE3D27D4EB4F + (0x165667B19E3779F9 if side == BUY else 0)
    ) & _MASK
    mixed ^= mixed >> 29
    return (mixed * 0xBF58476D1CE4E5B9) & _MASK
