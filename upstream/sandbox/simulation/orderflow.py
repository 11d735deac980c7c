"""Order flow of a simulated market: makers quote around a fair price, takers now and then hit resting levels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from upstream.sandbox.exchange.book import BUY, SELL, SandboxBook, Side
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    import random

    from upstream.sandbox.exchange.catalogue import SandboxMarket
    from upstream.sandbox.exchange.exchange import Change, Fill, SandboxExchange
    from upstream.sandbox.exchange.population import Population

Held: TypeAlias = Callable[[str, str], int]  # (wallet, token) -> shares held

CENT = ONE // 100
MIN_LEVELS, MAX_LEVELS = 11, 30  # levels per side that makers maintain
TRADES = 0.07  # share of orders that take
MOVES = 0.12  # share of the changes that move an order from one level to another, two changes in one message
LARGE = 0.03  # share of orders ten times as large, some of them much larger
TEN_TIMES, HUGE = 10, 1_000
WHALES = 0.01  # share of takers that take the whole side
MADE_TO_SELL = 0.02  # share of sales of tokens that were not bought, but minted for it as one of a pair
MAX_BUYERS = 32  # buyers remembered per token
SELLER_TRIES = 4  # of them, checked for holding enough to sell
FIRST_LEVELS = 12  # per side of a new book
FINE_TICK = 1000  # 0.001: once a price is beyond 0.04 or 0.96


class Orderflow:
    """Generator of a market's orders; all from one random generator."""

    def __init__(self, exchange: SandboxExchange, dice: random.Random, population: Population, held: Held) -> None:
        self._exchange = exchange
        self._dice = dice
        self._population = population
        self._held = held
        self._buyers: dict[str, list[str]] = {}

    def fill(self, market: SandboxMarket, fair: float) -> None:
        """Put the first orders into an empty book, without publishing them."""
        book, dice = market.books[0][0], self._dice
        for side in (BUY, SELL):
            for step in range(1, FIRST_LEVELS + 1):
                price = _price(market, fair, side, step + (step // 5) * dice.randint(0, 3))
                if price is not None:
                    book.set(side, price, _size(dice, step))

    def order(self, market: SandboxMarket, fair: float, ts_ms: int) -> int:
        """Make one order, and return how many level changes and prints it published."""
        book = market.books[0][0]
        dice = self._dice
        tick = market.tick
        if tick != FINE_TICK and not 0.04 * ONE <= (book.best_bid + book.best_ask) / 2 <= 0.96 * ONE:
            self._exchange.change_tick(market, ts_ms, FINE_TICK)
        stale = self._stale(book, fair * ONE, tick)
        chance = dice.random()
        if chance < (0.5 if stale else TRADES):
            taken = self._take(market, fair, ts_ms)
            if taken:
                return taken
        if stale and chance > 0.7:
            price = book.best_ask if stale == SELL else book.best_bid
            self._exchange.change(market, ts_ms, ((stale, price, 0),))
            return 1
        self._exchange.change(market, ts_ms, self._changes(market, book, fair))
        return 1

    def _changes(self, market: SandboxMarket, book: SandboxBook, fair: float) -> list[Change]:
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
                moved = self._better(market, fair, side)
                if moved is not None and moved != price:
                    changes.append((side, moved, book.size(side, moved) + _size(dice, 2)))
            return changes
        new = self._better(market, fair, side)
        if new is None:  # no room between the other side and the end of the scale
            if not prices:
                return self._opposite(market, book, fair, side)
            return [(side, prices[0], self._part(sizes[0]))]
        return [(side, new, book.size(side, new) + _size(dice, 1))]

    def _opposite(self, market: SandboxMarket, book: SandboxBook, fair: float, side: Side) -> list[Change]:
        other: Side = SELL if side == BUY else BUY
        new = self._better(market, fair, other)
        price = new if new is not None else book.side(other)[0][0]
        return [(other, price, book.size(other, price) + _size(self._dice, 1))]

    def _better(self, market: SandboxMarket, fair: float, side: Side) -> int | None:
        away = 1 + int(self._dice.expovariate(0.16))
        return _price(market, fair, side, away)

    def _take(self, market: SandboxMarket, fair: float, ts_ms: int) -> int:
        book = market.books[0][0]
        dice = self._dice
        middle = (book.best_bid + book.best_ask) / 2
        lifts = dice.random() < (0.8 if fair * ONE > middle else 0.2)
        side_hit: Side = SELL if lifts else BUY
        prices, sizes = book.side(side_hit)
        if len(prices) < 3:
            return 0
        wanted = _size(dice, 1) * (TEN_TIMES * TEN_TIMES if dice.random() < WHALES else 1)
        fills: list[Fill] = []
        for at in (0, 1, 2) if lifts else (-1, -2, -3):
            taken = min(wanted, sizes[at])
            fills.append((prices[at], taken, ""))
            wanted -= taken
            if not wanted:
                break
        outcome = 0 if dice.random() < 0.6 else 1
        side: Side = BUY if lifts == (outcome == 0) else SELL
        taker = self._taker(market.tokens[outcome], side, sum(taken for _, taken, _ in fills))
        if not taker:  # nobody holds it: buying the other outcome is equivalent
            outcome, side = 1 - outcome, BUY
            taker = self._taker(market.tokens[outcome], side, 0)
        self._exchange.trade(
            market,
            ts_ms,
            outcome=outcome,
            side=side,
            fills=[(price, size, self._maker(market.tokens[outcome], side, size, taker)) for price, size, _ in fills],
            tx=f"0x{dice.getrandbits(256):064x}",
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

    def _stale(self, book: SandboxBook, fair: float, tick: int) -> Side | None:
        """Return the side whose best level the fair price has crossed."""
        if book.best_ask < fair - tick:
            return SELL
        return BUY if book.best_bid > fair + tick else None

    def _part(self, size: int) -> int:
        """Return what is left of a level after a partial cancel: less than before, or nothing."""
        return int(size * self._dice.uniform(0.2, 0.9)) // CENT * CENT


def _price(market: SandboxMarket, fair: float, side: Side, ticks_away: int) -> int | None:
    """Return a price on the grid that does not cross the book; None when there is none left."""
    book, tick = market.books[0][0], market.tick
    middle = fair * ONE / tick
    last = ONE // tick - 1
    if side == BUY:
        highest = book.best_ask // tick - 1
        at = max(min(math.ceil(middle) - ticks_away, highest), 1)
        return at * tick if at <= highest else None
    lowest = book.best_bid // tick + 1
    at = min(max(math.floor(middle) + ticks_away, lowest), last)
    return at * tick if at >= lowest else None


def _size(dice: random.Random, step: int) -> int:
    shares = math.exp(dice.gauss(3.8 + min(step, 8) * 0.12, 1.1))
    if dice.random() < LARGE:
        shares *= min(TEN_TIMES * dice.paretovariate(0.6), HUGE)
    return max(5 * ONE, int(shares * 100) * CENT)
