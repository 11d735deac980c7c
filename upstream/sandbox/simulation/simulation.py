"""Seeded market simulation: deterministic per seed and start, and internally consistent."""

from __future__ import annotations

import heapq
import math
import random
from bisect import bisect_right
from functools import partial
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

import msgspec

from upstream.sandbox.common.walks import Group
from upstream.sandbox.exchange.catalogue import Gamma, SandboxMarket, listed
from upstream.sandbox.exchange.population import Population
from upstream.sandbox.exchange.portfolio import Portfolios
from upstream.sandbox.simulation.figures import figures
from upstream.sandbox.simulation.orderflow import FINE_TICK, Orderflow
from upstream.sandbox.simulation.quiet import QuietMarkets
from upstream.sandbox.simulation.running import Running
from upstream.sandbox.simulation.universe import COINS, WINDOW_S, EventPlan, Plan, Universe, brief, iso, short
from upstream.transport.micro import ONE, parse, text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.simulation.orderflow import Held

LISTED_BEFORE_MS = 86_400_000  # before the start
LISTED_AHEAD = 2  # windows of a coin listed at a time: the running one, and the next
RESOLVES_AFTER_MS = 3_000  # from a window's end to its resolution
PROPOSED_FOR_MS = 10_000  # from proposed to final resolution, for other markets
TURNOVER_MS = 45_000  # how often a long-running event is listed, and one resolves
FIRST_LISTING_MS = 15_000
MAX_BUSY = 1_000  # markets that are kept whole, have a past and are resolved; the others are quiet
BURST_MARKETS = 6


class Burst(msgspec.Struct, forbid_unknown_fields=True):
    """A time of much more trading, all of it in the markets of a few sports events: a final, say."""

    times: float = 10
    for_s: float = 60
    at_s: float = 0

    def __post_init__(self) -> None:
        if self.times < 1 or self.for_s <= 0 or self.at_s < 0:
            raise ValueError("times is 1 or more, for_s above 0, and at_s 0 or more")


class Simulation:
    """Event source that plays orders, listings and resolutions on an exchange, up to any given moment."""

    source = "simulated"

    def __init__(
        self,
        exchange: SandboxExchange,
        *,
        seed: int,
        start_ms: int,
        markets: int = 60,
        rate: float = 200,
        population: Population | None = None,
        held: Held | None = None,
        bursts: Sequence[Burst] = (),
    ) -> None:
        if markets < 10:
            raise ValueError("a simulation has at least 10 markets")
        self.exchange = exchange
        self.seed, self.start_ms, self.rate = seed, start_ms, rate
        self.now_ms = float(start_ms)
        self._dice = random.Random(f"{seed}/orders")  # noqa: S311 - repeatable dice are what is wanted
        self._coin_dice = random.Random(f"{seed}/coins")  # noqa: S311 - repeatable dice are what is wanted
        self._universe = Universe(seed)
        population = population or Population(seed)
        self.wallets = population.wallets
        self._flow = Orderflow(exchange, self._dice, population, held or Portfolios(exchange.catalogue).held)
        self._coins = {coin: price for coin, (_, price) in COINS.items()}
        self._coin_moved_ms = dict.fromkeys(COINS, float(start_ms))
        self._running: dict[str, Running] = {}
        self.opened: list[EventPlan] = []  # listed at the start
        self._order: list[Running] = []
        self._cumulated: list[float] = []  # weights; empty when they have to be added up again
        self._due: list[tuple[float, int, Callable[[int], None]]] = []
        self._ids = count()
        self._stale: set[Running] = set()  # traded since their figures were written
        self.made = 0  # price changes and prints
        self.skipped_ms = 0.0
        self._resumed_ms = start_ms  # where the clock went on after the last skip
        self._burst: tuple[float, list[Running]] | None = None  # how many times the rate, and where
        exchange.refreshers.append(self.refresh)
        exchange.now_ms = start_ms
        busy = min(markets, MAX_BUSY)
        self._open(busy)
        listed_ms = start_ms - LISTED_BEFORE_MS
        rest = markets - busy
        self._quiet = QuietMarkets(seed, rest, rank=busy, start_ms=start_ms, listed_ms=listed_ms)
        if rest:
            exchange.catalogue.quiet = self._quiet
        for burst in bursts:
            self.plan(burst)

    # --- Time ---

    def advance(self, until_ms: float, most: int = 1_000_000) -> bool:
        """Play events up to a moment, at most `most` orders; return whether the moment was reached."""
        gap = self._dice.expovariate
        for _ in range(most):
            if self.now_ms > until_ms:
                return True
            while self._due and self._due[0][0] <= self.now_ms:
                at, _, action = heapq.heappop(self._due)
                self.exchange.now_ms = max(int(at), self._resumed_ms)
                action(int(at))
            running = self._pick()
            self.exchange.now_ms = now = int(self.now_ms)
            made = self._flow.order(running.market, self._fair(running), now)
            self.made += made
            per_ms = self.asked_rate / 1000
            self.now_ms += gap(per_ms) if made == 1 else sum(gap(per_ms) for _ in range(made))
        return False

    def skip(self, until_ms: float) -> None:
        """Move the clock to a moment without any orders on the way; what else is due happens then."""
        self.skipped_ms += until_ms - self.now_ms
        self.now_ms, self._resumed_ms = until_ms, int(until_ms)

    @property
    def asked_rate(self) -> float:
        """How many price changes and prints a second there are to be."""
        return self.rate if self._burst is None else self.rate * self._burst[0]

    def plan(self, burst: Burst) -> None:
        """Plan a burst from now, in the busiest sports events of then."""
        self._at(self.now_ms + burst.at_s * 1000, partial(self._start_burst, burst))

    def _start_burst(self, burst: Burst, ms: int) -> None:
        sports = [running for running in self._running.values() if "sportsMarketType" in running.market.gamma]
        found = sorted(sports or self._running.values(), key=lambda running: -running.weight)[:BURST_MARKETS]
        self._burst = burst.times, found
        self._at(ms + burst.for_s * 1000, self._end_burst)

    def _end_burst(self, _ms: int) -> None:
        self._burst = None

    @property
    def ended(self) -> bool:
        """Return False: a simulation runs until it is stopped."""
        return False

    def state(self) -> dict[str, Any]:
        """Return the simulation's state as JSON."""
        return {
            "seed": self.seed,
            "rate": self.rate,
            "running": len(self._running) + len(self._quiet),
            "quiet": len(self._quiet),
            "quiet_traded": self._quiet.kept,
        }

    def _at(self, ms: float, action: Callable[[int], None]) -> None:
        heapq.heappush(self._due, (ms, next(self._ids), action))

    # --- Listing and resolving ---

    def _open(self, markets: int) -> None:
        listed_ms = self.start_ms - LISTED_BEFORE_MS
        window_ms = WINDOW_S * 1000
        opens_ms = self.start_ms // window_ms * window_ms
        coins = list(COINS)[: max(1, min(len(COINS), markets // 10))]
        for coin in coins:
            for ahead in range(LISTED_AHEAD):
                self._list(
                    self._universe.window(coin, opens_ms + ahead * window_ms, listed_ms), self.start_ms, aloud=False
                )
            self._at(opens_ms + window_ms, partial(self._next_window, coin))
        while (room := markets - len(self._running)) > 0:
            plan = self._universe.event(listed_ms)
            if room > 1 or len(plan.markets) == 1:
                plan.markets = plan.markets[:room]
                self.opened.append(plan)
                self._list(plan, self.start_ms, aloud=False)
        self._at(self.start_ms + FIRST_LISTING_MS, self._list_another)
        self._at(self.start_ms + FIRST_LISTING_MS + TURNOVER_MS // 3, self._propose_one)

    def _list(self, plan: EventPlan, ms: int, *, aloud: bool) -> None:
        catalogue = self.exchange.catalogue
        catalogue.add_event(plan.event)
        group = Group() if plan.event["negRisk"] else None
        fresh = [self._start(one, group, ms) for one in plan.markets]
        for running in fresh:
            self._furnish(running, ms)
            if aloud:
                self.exchange.announce(running.market, self.exchange.now_ms)
                self.exchange.show_books(running.market, self.exchange.now_ms)
        self._cumulated = []

    def _start(self, plan: Plan, group: Group | None, ms: int) -> Running:
        market = SandboxMarket(plan.gamma, mirrored=True)
        self.exchange.catalogue.add(market)
        running = Running(market, plan.probability, group, sigma=self._dice.uniform(0.008, 0.03), ms=ms)
        running.weight = plan.weight
        running.coin, running.opens_ms, running.ends_ms = plan.coin, plan.opens_ms, plan.ends_ms
        if plan.coin:
            running.strike = self._coins[plan.coin]
            running.weight = 4.0 if plan.opens_ms <= ms else 0.5
        else:
            running.weight *= self._dice.paretovariate(1.3)
        self._running[market.id] = running
        self._stale.add(running)
        return running

    def _furnish(self, running: Running, ms: int) -> None:
        """Put the first orders into a market's book, around its fair price."""
        market = running.market
        fair = self._fair(running)
        if not 0.04 <= fair <= 0.96:
            market.tick, market.gamma["orderPriceMinTickSize"] = FINE_TICK, FINE_TICK / ONE
        self._flow.fill(market, fair)
        market.books[0][0].ts_ms = ms
        market.printed(0, round(fair * ONE / market.tick) * market.tick)

    def _next_window(self, coin: str, ms: int) -> None:
        """End the running window, start the next one's price, and list the one after."""
        for running in [running for running in self._running.values() if running.coin == coin]:
            if running.ends_ms <= ms:
                winner = 0 if self._coins[coin] >= running.strike else 1
                self._stop(running)
                self._at(ms + RESOLVES_AFTER_MS, partial(self._resolve, running, winner=winner))
            elif running.opens_ms <= ms:
                running.strike, running.weight = self._coins[coin], 4.0
        self._list(self._universe.window(coin, ms + WINDOW_S * 1000, ms), ms, aloud=True)
        self._at(ms + WINDOW_S * 1000, partial(self._next_window, coin))

    def _list_another(self, ms: int) -> None:
        self._list(self._universe.event(ms), ms, aloud=True)
        self._at(ms + TURNOVER_MS, self._list_another)

    def _propose_one(self, ms: int) -> None:
        """Propose a result for all markets of one long-running event; it is final some seconds later."""
        events: dict[str, list[Running]] = {}
        for running in self._running.values():
            if not running.coin and not running.market.gamma.get("umaResolutionStatus"):
                events.setdefault(running.market.gamma["events"][0]["id"], []).append(running)
        if len(events) > 3:
            members = events[self._dice.choice(sorted(events))]
            if members[0].group is not None:
                true = self._dice.choices(range(len(members)), [max(self._fair(one), 0.001) for one in members])[0]
                winners = [0 if at == true else 1 for at in range(len(members))]
            else:
                winners = [0 if self._dice.random() < self._fair(one) else 1 for one in members]
            for running, winner in zip(members, winners, strict=True):
                running.market.gamma.update(umaResolutionStatus="proposed", umaResolutionStatuses=listed(["proposed"]))
                self._at(ms + PROPOSED_FOR_MS, partial(self._resolve, running, winner=winner))
        self._at(ms + TURNOVER_MS, self._propose_one)

    def _stop(self, running: Running) -> None:
        running.market.gamma["acceptingOrders"] = False
        running.weight = 0.0
        self._cumulated = []

    def _resolve(self, running: Running, ms: int, winner: int) -> None:
        self._stop(running)
        self._figures(running)
        del self._running[running.market.id]
        self._flow.forget(running.market)
        ms = self.exchange.now_ms
        running.market.gamma["updatedAt"] = iso(ms)
        self.exchange.resolve(running.market, ms, winner, short(ms))
        for event in running.market.gamma["events"]:
            whole = self.exchange.catalogue.events[event["id"]]
            if all(market.closed for market in self.exchange.catalogue.members[event["id"]]):
                whole |= {"closed": True, "closedTime": iso(ms), "updatedAt": iso(ms)}
        self._cumulated = []

    # --- Prices ---

    def _pick(self) -> Running:
        """Draw the market of the next order, by activity."""
        if self._burst is not None and self._dice.random() > 1 / self._burst[0]:
            running = [running for running in self._burst[1] if running.weight > 0]
            if running:
                found = self._dice.choice(running)
                self._stale.add(found)
                return found
        if not self._cumulated:
            self._order = [running for running in self._running.values() if running.weight > 0]
            self._cumulated = list(accumulate(running.weight for running in self._order))
        busy, chance = self._cumulated[-1], self._dice.random()
        place = chance * (busy + self._quiet.weight)
        if place >= busy:
            return self._quiet.drawn((place - busy) / self._quiet.weight)
        found = self._order[bisect_right(self._cumulated, place)]
        self._stale.add(found)
        return found

    def _fair(self, running: Running) -> float:
        """Advance the fair price of the first outcome to now, and return it."""
        if not running.coin:
            return running.fair(self.now_ms, self._dice)
        return self._chance_up(running)

    def _chance_up(self, running: Running) -> float:
        coin = running.coin
        elapsed_s = (self.now_ms - self._coin_moved_ms[coin]) / 1000
        if elapsed_s > 0:
            self._coins[coin] *= math.exp(self._coin_dice.gauss(0, 1) * 2e-5 * math.sqrt(elapsed_s))
            self._coin_moved_ms[coin] = self.now_ms
        if self.now_ms < running.opens_ms:
            return 0.5
        left_s = max((running.ends_ms - self.now_ms) / 1000, 0.5)
        z = math.log(self._coins[coin] / running.strike) / (2e-5 * math.sqrt(left_s))
        return min(max(0.5 * (1 + math.erf(z / math.sqrt(2))), 0.004), 0.996)

    # --- Figures of the Gamma objects ---

    def refresh(self) -> None:
        """Update prices, volumes and liquidity in the Gamma objects of markets that traded since the last call."""
        stale, self._stale = self._stale, set()
        events = set()
        for running in stale:
            if running.market.id in self._running:
                self._figures(running)
                events.add(running.market.gamma["events"][0]["id"])
        for event_id in events:
            self._event_figures(event_id)

    def _figures(self, running: Running) -> None:
        market, gamma = running.market, running.market.gamma
        added, market.traded = market.traded, 0
        volume = parse(gamma["volume"]) + added
        gamma.update(
            figures(market),
            volume=text(volume),
            volumeNum=volume / ONE,
            volume24hr=round(gamma["volume24hr"] + added / ONE, 6),
            updatedAt=iso(self.exchange.now_ms),
        )

    def _event_figures(self, event_id: str) -> None:
        catalogue = self.exchange.catalogue
        event: Gamma = catalogue.events[event_id]
        members = catalogue.members[event_id]
        event.update(
            volume=round(sum(market.gamma["volumeNum"] for market in members), 6),
            volume24hr=round(sum(market.gamma["volume24hr"] for market in members), 6),
            liquidity=round(sum(market.gamma["liquidityNum"] for market in members), 5),
            updatedAt=iso(self.exchange.now_ms),
        )
        shown = brief(event)
        for market in members:
            market.gamma["events"] = [shown]
