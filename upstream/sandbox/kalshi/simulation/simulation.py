"""Seeded simulation of Kalshi: the same seed and start give the same exchange."""

from __future__ import annotations

import heapq
import random
from itertools import count
from typing import TYPE_CHECKING, Any

from upstream.sandbox.common import zipf
from upstream.sandbox.kalshi.simulation.flow import KalshiFlow
from upstream.sandbox.kalshi.simulation.lives import LIFE_MS, TURNOVER_MS, Lives
from upstream.sandbox.kalshi.simulation.past import remember
from upstream.sandbox.kalshi.simulation.universe import KalshiUniverse, Life

if TYPE_CHECKING:
    from collections.abc import Callable

    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket

DAY_MS = 86_400_000
MIN_MARKETS, MAX_MARKETS = 20, 200_000
COMBOS = 0.25  # share of the markets at the start
FIRST_RANK = 10.0  # of Zipf's law: the tenth market trades half as often as the first
PRELUDE_MS = 2 * LIFE_MS  # of short-lived markets before the start, so that some are in each state


class KalshiSimulation:
    """Event source: long-lived markets that trade by Zipf's law, and short-lived ones that go through all states."""

    source = "simulated"

    def __init__(
        self, exchange: KalshiExchange, *, seed: int, start_ms: int, markets: int = 200, rate: float = 200
    ) -> None:
        if not MIN_MARKETS <= markets <= MAX_MARKETS:
            raise ValueError(f"a simulation has {MIN_MARKETS} to {MAX_MARKETS} markets")
        self.exchange = exchange
        self.seed, self.start_ms, self.rate = seed, start_ms, rate
        self.now_ms = float(start_ms)
        self.made = 0
        self.skipped_ms = 0.0
        self._dice = random.Random(f"{seed}/kalshi/orders")  # noqa: S311 - repeatable dice are what is wanted
        self._flow = KalshiFlow(exchange, self._dice)
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._ids = count()
        self._active: list[KalshiMarket] = []  # the busiest first
        universe = KalshiUniverse(seed)
        remember(exchange, universe, seed, start_ms)
        self._list(universe, markets)
        self._lives = Lives(self, universe, self._dice)
        began = start_ms - PRELUDE_MS // TURNOVER_MS * TURNOVER_MS
        self.at(began, lambda: self._lives.begin(began))
        self._do_due(start_ms)
        exchange.now_ms = start_ms

    # --- Time ---

    def advance(self, until_ms: float, most: int = 1_000_000) -> bool:
        """Play events up to a moment, at most `most` orders; return whether the moment was reached."""
        exchange, dice = self.exchange, self._dice
        per_ms = self.rate / 1000
        for _ in range(most):
            if self.now_ms > until_ms:
                return True
            self._do_due(self.now_ms)
            exchange.now_ms = now = int(self.now_ms)
            market = self._active[zipf.drawn(dice.random(), len(self._active), int(FIRST_RANK))]
            made = 0
            if market.status == "active" and market.shard not in exchange.paused:
                assert market.walk is not None
                made = self._flow.order(market, market.walk.fair(self.now_ms, dice), now)
            self.made += made
            self.now_ms += sum(dice.expovariate(per_ms) for _ in range(max(made, 1)))
        return False

    def skip(self, until_ms: float) -> None:
        """Move the clock to a moment without any orders on the way; what else is due happens then."""
        self.skipped_ms += until_ms - self.now_ms
        self.now_ms = until_ms

    @property
    def asked_rate(self) -> float:
        """How many changed levels and prints a second there are to be."""
        return self.rate

    @property
    def ended(self) -> bool:
        """Return False: a simulation runs until it is stopped."""
        return False

    def at(self, ms: float, action: Callable[[], None]) -> None:
        """Do something at a moment."""
        heapq.heappush(self._due, (ms, next(self._ids), action))

    def _do_due(self, until_ms: float) -> None:
        while self._due and self._due[0][0] <= until_ms:
            at, _, action = heapq.heappop(self._due)
            self.exchange.now_ms = max(self.exchange.now_ms, int(at))
            action()

    # --- Markets ---

    def open(self, market: KalshiMarket, *, aloud: bool) -> None:
        """Let a market trade: aloud after a pause, silently when its time has come."""
        if aloud:
            self.exchange.activate(market)
        else:
            self.exchange.set_status(market, "active")
        assert market.walk is not None
        self._flow.refill(market, market.walk.price, self.exchange.now_ms)
        if market not in self._active:
            place = self._dice.randrange(min(len(self._active), 30) + 1)
            self._active.insert(place, market)

    def close(self, market: KalshiMarket) -> None:
        """Let a market trade no more, silently; its resting orders are cancelled."""
        self._active.remove(market)
        self.exchange.set_status(market, "closed")
        self.exchange.cancel_orders(market)

    def _list(self, universe: KalshiUniverse, markets: int) -> None:
        """List what is open at the start, without messages."""
        created = self.start_ms - DAY_MS
        combos = int(markets * COMBOS)
        regular: list[KalshiMarket] = []
        while len(regular) < markets - combos:
            life = Life(created, created, self.start_ms + self._dice.randint(1, 300) * DAY_MS)
            event = universe.event(life)
            regular += self._open(event, markets - combos - len(regular))
        for _ in range(combos):
            legs = [(self._dice.choice(regular), self._dice.choice(("yes", "no"))) for _ in range(2)]
            self._open(universe.combo(legs, Life(created, created, self.start_ms + 30 * DAY_MS)), 1)
        self._dice.shuffle(self._active)

    def _open(self, event: KalshiEvent, most: int) -> list[KalshiMarket]:
        """List up to so many of an event's markets, with their first orders."""
        found, event.markets = event.markets[:most], []
        self.exchange.add_event(event)
        for market in found:
            assert market.walk is not None
            market.status = "active"
            self._flow.fill(market, market.walk.price)
            self.exchange.add_market(market)
        self._active += found
        return found

    def state(self) -> dict[str, Any]:
        """Return the simulation's state as JSON."""
        return {"seed": self.seed, "rate": self.rate, "active": len(self._active), "made": self.made}
