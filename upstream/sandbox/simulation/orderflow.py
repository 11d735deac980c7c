"""Order flow of a simulated market of Polymarket: whose orders they are, and how each is settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from upstream.sandbox.common.book import BUY, SELL, Side
from upstream.sandbox.common.orderflow import TRADES, QuoteFlow
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    import random

    from upstream.sandbox.exchange.catalogue import SandboxMarket
    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.exchange.population import Population

Held: TypeAlias = Callable[[str, str], int]  # (wallet, token) -> shares held

MADE_TO_SELL = 0.02  # share of sales of tokens that were not bought, but minted for it as one of a pair
MAX_BUYERS = 32  # buyers remembered per token
SELLER_TRIES = 4  # of them, checked for holding enough to sell
FINE_TICK = 1000  # 0.001: once a price is beyond 0.04 or 0.96


class Orderflow(QuoteFlow):
    """Generator of a market's orders; all from one random generator."""

    def __init__(self, exchange: SandboxExchange, dice: random.Random, population: Population, held: Held) -> None:
        super().__init__(dice)
        self._exchange = exchange
        self._population = population
        self._held = held
        self._buyers: dict[str, list[str]] = {}

    def fill(self, market: SandboxMarket, fair: float) -> None:
        """Put the first orders into an empty book, without publishing them."""
        self.fill_book(market.books[0][0], market.tick, fair)

    def order(self, market: SandboxMarket, fair: float, ts_ms: int) -> int:
        """Make one order, and return how many level changes and prints it published."""
        book = market.books[0][0]
        dice = self._dice
        tick = market.tick
        if tick != FINE_TICK and not 0.04 * ONE <= (book.best_bid + book.best_ask) / 2 <= 0.96 * ONE:
            self._exchange.change_tick(market, ts_ms, FINE_TICK)
        stale = self.stale(book, fair, tick)
        chance = dice.random()
        if chance < (0.5 if stale else TRADES):
            taken = self._take(market, fair, ts_ms)
            if taken:
                return taken
        if stale and chance > 0.7:
            price = book.best_ask if stale == SELL else book.best_bid
            self._exchange.change(market, ts_ms, ((stale, price, 0),))
            return 1
        self._exchange.change(market, ts_ms, self.changes(book, market.tick, fair))
        return 1

    def _take(self, market: SandboxMarket, fair: float, ts_ms: int) -> int:
        dice = self._dice
        lifts, fills = self.taken(market.books[0][0], fair)
        if not fills:
            return 0
        outcome = 0 if dice.random() < 0.6 else 1
        side: Side = BUY if lifts == (outcome == 0) else SELL
        taker = self._taker(market.tokens[outcome], side, sum(taken for _, taken in fills))
        if not taker:  # nobody holds it: buying the other outcome is equivalent
            outcome, side = 1 - outcome, BUY
            taker = self._taker(market.tokens[outcome], side, 0)
        self._exchange.trade(
            market,
            ts_ms,
            outcome=outcome,
            side=side,
            fills=[(price, size, self._maker(market.tokens[outcome], side, size, taker)) for price, size in fills],
            tx=f"0x{dice.getrandbits(256) ^ ts_ms << 192:064x}",  # new ones when the same dice are thrown again later
            taker=taker,
        )
        return 1 + len(fills)

    def _taker(self, token: str, side: Side, size: int) -> str:
        """Return the taker: for a sale, a wallet that has bought the token before; "" if there is none."""
        dice = self._dice
        chance = dice.random()
        buyers = self._buyers.get(token)
        if side == SELL:
            if chance < MADE_TO_SELL:
                return self._population.at(dice.random())
            some = [dice.choice(buyers) for _ in range(SELLER_TRIES)] if buyers else []
            return next((wallet for wallet in some if self._held(wallet, token) >= size), "")
        if buyers is None:
            buyers = self._buyers[token] = []
        taker = self._population.at(chance)
        buyers.append(taker)
        del buyers[:-MAX_BUYERS]
        return taker

    def _maker(self, token: str, side: Side, size: int, taker: str) -> str:
        """Return the maker: now and then one that has bought the token before, and sells it."""
        dice = self._dice
        if side == BUY:
            wallet = dice.choice(self._buyers[token])
            if wallet != taker and self._held(wallet, token) >= size:
                return wallet
        return self._population.other(taker, dice.random())

    def forget(self, market: SandboxMarket) -> None:
        """Drop the state of a market that ended."""
        for token in market.tokens:
            self._buyers.pop(token, None)
