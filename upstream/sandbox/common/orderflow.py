"""Order flow of a simulated market: makers quote around a fair price, takers now and then hit resting levels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from upstream.sandbox.common.book import BUY, SELL, SandboxBook, Side
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    import random

Change: TypeAlias = tuple[Side, int, int]  # of the first outcome's book: side, price, new total

CENT = ONE // 100
MIN_LEVELS, MAX_LEVELS = 11, 30  # levels per side that makers maintain
TRADES = 0.07  # share of orders that take
MOVES = 0.12  # share of the changes that move an order from one level to another, two changes in one message
LARGE = 0.03  # share of orders ten times as large, some of them much larger
TEN_TIMES, HUGE = 10, 1_000
WHALES = 0.01  # share of takers that take the whole side
FIRST_LEVELS = 12  # per side of a new book


class QuoteFlow:
    """Generator of orders for a book whose prices are multiples of a tick; all from one random generator."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice

    def fill_book(self, book: SandboxBook, tick: int, fair: float) -> None:
        """Put the first orders into an empty book."""
        dice = self._dice
        for side in (BUY, SELL):
            for step in range(1, FIRST_LEVELS + 1):
                price = self._price(book, tick, fair, side, step + (step // 5) * dice.randint(0, 3))
                if price is not None:
                    book.set(side, price, _size(dice, step))

    def changes(self, book: SandboxBook, tick: int, fair: float) -> list[Change]:
        """Return the changes of one maker: levels placed, reduced, cancelled or moved."""
        dice = self._dice
        side: Side = BUY if dice.random() < 0.5 else SELL
        prices, sizes = book.side(side)
        many = len(prices)
        if many > MAX_LEVELS or (many > MIN_LEVELS and dice.random() < 0.42):
            at = int(dice.random() * many) if many <= MAX_LEVELS else 0 if side == BUY else many - 1
            price = prices[at]
            rest = 0 if many > MAX_LEVELS or dice.random() < 0.5 else self._part(sizes[at])
            changes: list[Change] = [(side, price, rest)]
            if dice.random() < MOVES:
                moved = self._better(book, tick, fair, side)
                if moved is not None and moved != price:
                    changes.append((side, moved, book.size(side, moved) + _size(dice, 2)))
            return changes
        new = self._better(book, tick, fair, side)
        if new is None:  # no room between the other side and the end of the scale
            if not prices:
                return self._opposite(book, tick, fair, side)
            return [(side, prices[0], self._part(sizes[0]))]
        return [(side, new, book.size(side, new) + _size(dice, 1))]

    def taken(self, book: SandboxBook, fair: float) -> tuple[bool, list[tuple[int, int]]]:
        """Return whether a taker lifts offers, and the price and size of what it takes; nothing from a thin side."""
        dice = self._dice
        middle = (book.best_bid + book.best_ask) / 2
        lifts = dice.random() < (0.8 if fair * ONE > middle else 0.2)
        prices, sizes = book.side(SELL if lifts else BUY)
        if len(prices) < 3:
            return lifts, []
        wanted = _size(dice, 1) * (TEN_TIMES * TEN_TIMES if dice.random() < WHALES else 1)
        fills = []
        for at in (0, 1, 2) if lifts else (-1, -2, -3):
            size = min(wanted, sizes[at])
            fills.append((prices[at], size))
            wanted -= size
            if not wanted:
                break
        return lifts, fills

    def stale(self, book: SandboxBook, fair: float, tick: int) -> Side | None:
        """Return the side whose best level the fair price has crossed."""
        if book.best_ask < fair * ONE - tick:
            return SELL
        return BUY if book.best_bid > fair * ONE + tick else None

    def on_grid(self, _side: Side, price: int) -> int | None:
        """Return a price on the market's grid, not better than a given one; None if there is none."""
        return price

    def _opposite(self, book: SandboxBook, tick: int, fair: float, side: Side) -> list[Change]:
        other: Side = SELL if side == BUY else BUY
        new = self._better(book, tick, fair, other)
        price = new if new is not None else book.side(other)[0][0]
        return [(other, price, book.size(other, price) + _size(self._dice, 1))]

    def _better(self, book: SandboxBook, tick: int, fair: float, side: Side) -> int | None:
        away = 1 + int(self._dice.expovariate(0.16))
        return self._price(book, tick, fair, side, away)

    def _part(self, size: int) -> int:
        """Return what is left of a level after a partial cancel: less than before, or nothing."""
        return int(size * self._dice.uniform(0.2, 0.9)) // CENT * CENT

    def _price(self, book: SandboxBook, tick: int, fair: float, side: Side, ticks_away: int) -> int | None:
        """Return a price on the grid that does not cross the book; None when there is none left."""
        middle = fair * ONE / tick
        last = ONE // tick - 1
        if side == BUY:
            highest = book.best_ask // tick - 1
            at = max(min(math.ceil(middle) - ticks_away, highest), 1)
            return self.on_grid(side, at * tick) if at <= highest else None
        lowest = book.best_bid // tick + 1
        at = min(max(math.floor(middle) + ticks_away, lowest), last)
        return self.on_grid(side, at * tick) if at >= lowest else None


def _size(dice: random.Random, step: int) -> int:
    shares = math.exp(dice.gauss(3.8 + min(step, 8) * 0.12, 1.1))
    if dice.random() < LARGE:
        shares *= min(TEN_TIMES * dice.paretovariate(0.6), HUGE)
    return max(5 * ONE, int(shares * 100) * CENT)
