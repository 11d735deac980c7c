"""Orders of a simulated market, on its grid of prices."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from upstream.sandbox.common.book import SELL, SandboxBook
from upstream.sandbox.common.orderflow import TRADES, QuoteFlow
from upstream.sandbox.kalshi.exchange.grid import GRIDS
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    import random

    from upstream.sandbox.common.book import Side
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket

BLOCKS = 0.01  # share of takers that trade beside the book


class KalshiFlow(QuoteFlow):
    """Generator of orders; all from one random generator."""

    def __init__(self, exchange: KalshiExchange, dice: random.Random) -> None:
        super().__init__(dice)
        self._exchange = exchange
        self._grid = GRIDS["linear_cent"]

    def on_grid(self, side: Side, price: int) -> int | None:
        """Return a price on the market's grid."""
        return self._grid.on_grid(side, price)

    def fill(self, market: KalshiMarket, fair: float) -> None:
        """Put the first orders into an empty book, without a message."""
        self._grid = market.grid
        self.fill_book(market.book, self._tick(market, fair), fair)

    def refill(self, market: KalshiMarket, fair: float, ts_ms: int) -> None:
        """Put the first orders into an empty book, by messages."""
        filled = SandboxBook()
        self._grid = market.grid
        self.fill_book(filled, self._tick(market, fair), fair)
        bids, asks = filled.levels(0)
        self._exchange.replace_book(market, ts_ms, bids, asks)

    def order(self, market: KalshiMarket, fair: float, ts_ms: int) -> int:
        """Make one order, and return how many level changes and prints it published."""
        self._grid = market.grid
        dice, book, tick = self._dice, market.book, self._tick(market, fair)
        stale = self.stale(book, fair, tick)
        chance = dice.random()
        if chance < (0.5 if stale else TRADES) and (taken := self._take(market, fair, ts_ms)):
            return taken
        if stale and chance > 0.7:
            self._exchange.change(market, ts_ms, ((stale, book.best_ask if stale == SELL else book.best_bid, 0),))
            return 1
        changes = self.changes(book, tick, fair)
        self._exchange.change(market, ts_ms, changes)
        return len(changes)

    def _take(self, market: KalshiMarket, fair: float, ts_ms: int) -> int:
        takes_yes, fills = self.taken(market.book, fair)
        if not fills:
            return 0
        if self._dice.random() < BLOCKS:
            price, size = fills[0]
            self._exchange.print(market, ts_ms, price, size, self.trade_id(ts_ms), takes_yes=takes_yes, block=True)
            self._exchange.tick(market, ts_ms)
            return 1
        ids = [self.trade_id(ts_ms) for _ in fills]
        self._exchange.trade(market, ts_ms, fills, ids, takes_yes=takes_yes)
        return 2 * len(fills)

    def trade_id(self, ts_ms: int) -> str:
        """Return another trade's id: shaped as a UUID, though no version of one.

        It is a new one when the same dice are thrown again later.
        """
        return str(uuid.UUID(int=self._dice.getrandbits(128) ^ ts_ms << 64))

    def _tick(self, market: KalshiMarket, fair: float) -> int:
        return market.grid.step(int(fair * ONE))
