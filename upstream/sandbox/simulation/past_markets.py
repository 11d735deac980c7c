"""Markets of a simulation's past: when they opened, traded and were resolved, and who won."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from upstream.sandbox.exchange.catalogue import SandboxMarket, listed
from upstream.sandbox.simulation.past_prices import DAY_MS, END_MS, HOUR_MS
from upstream.sandbox.simulation.universe import COINS, Universe, brief, iso, short
from upstream.transport.micro import ONE, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from upstream.sandbox.exchange.catalogue import Catalogue, Gamma
    from upstream.sandbox.simulation.past_prices import Path, PricePaths
    from upstream.sandbox.simulation.universe import EventPlan

    Array = npt.NDArray[Any]

OPENED = 6_000  # positions opened in markets that are open when the simulation begins, over a fortnight
EVENTS_A_DAY, EVENT_OPENED = 3, 12  # long-running events that resolve per day; positions opened in each market of them
HOUR_OPENED = 6  # positions opened in an up/down market of an hour
FIRST_EVENT, FIRST_MARKET = 700_001, 8_000_001


class MarketLife(NamedTuple):
    """A market, its trading period, and its winning outcome; None for one that is still open."""

    market: SandboxMarket
    opens_ms: int
    ends_ms: int
    winner: int | None
    resolved_ms: int
    opened: float


class PastMarkets:
    """Lists the past's markets in the catalogue, each with the path of its price."""

    def __init__(
        self, catalogue: Catalogue, dice: np.random.Generator, paths: PricePaths, *, seed: int, end_ms: int, days: int
    ) -> None:
        self._catalogue, self._dice, self._paths = catalogue, dice, paths
        self._end_ms, self._start_ms, self._days = end_ms, end_ms - days * DAY_MS, days
        self._universe = Universe(seed, name="past", first_event=FIRST_EVENT, first_market=FIRST_MARKET)

    def open(self, running: Iterable[EventPlan]) -> Iterator[tuple[list[MarketLife], list[Path]]]:
        """Yield the markets open when the past ends: their paths end at the prices that the simulation starts with."""
        plans = [plan for plan in running if not any(one.coin for one in plan.markets)]
        markets = [one for plan in plans for one in plan.markets]
        weights = np.sqrt([one.weight * (1 + self._dice.pareto(1.3)) for one in markets])
        opened = iter(weights / max(weights.sum(), 1e-9) * OPENED * self._days / 14)
        end_ms = self._end_ms - END_MS
        for plan in plans:
            lives = [
                MarketLife(
                    self._catalogue.by_condition[one.gamma["conditionId"]], self._start_ms, end_ms, None, 0, share
                )
                for one, share in zip(plan.markets, opened, strict=False)
            ]
            _backdate(plan, self._start_ms)
            ends = [one.probability for one in plan.markets]
            yield lives, self._paths.draw(ends, self._start_ms, end_ms, together=bool(plan.event["negRisk"]))

    def resolved(self) -> Iterator[tuple[list[MarketLife], list[Path]]]:
        """Yield the markets resolved before the past ends, and list them."""
        last_ms = self._end_ms - HOUR_MS // 2
        for day in range(self._days):
            for nth in range(EVENTS_A_DAY):
                ends_ms = self._end_ms - day * DAY_MS - int((nth + self._dice.random()) / EVENTS_A_DAY * DAY_MS)
                begins_ms = max(ends_ms - int(self._dice.uniform(0.5, 6) * DAY_MS), self._start_ms)
                if ends_ms - begins_ms > HOUR_MS and ends_ms < last_ms:
                    yield self._ended(self._universe.event(begins_ms), begins_ms, ends_ms, EVENT_OPENED)
        coins = list(COINS)
        hour_ms = -(-self._start_ms // HOUR_MS) * HOUR_MS
        while hour_ms + HOUR_MS < last_ms:
            coin = coins[hour_ms // HOUR_MS % len(coins)]
            plan = self._universe.window(coin, hour_ms, hour_ms - HOUR_MS // 2, seconds=HOUR_MS // 1000)
            yield self._ended(plan, hour_ms - HOUR_MS // 2, hour_ms + HOUR_MS, HOUR_OPENED)
            hour_ms += HOUR_MS

    def _ended(self, plan: EventPlan, begins_ms: int, ends_ms: int, opened: int) -> tuple[list[MarketLife], list[Path]]:
        together = bool(plan.event["negRisk"])
        chances = np.array([one.probability for one in plan.markets])
        if together:
            true = int(self._dice.choice(len(chances), p=chances / chances.sum()))
            winners = [0 if nth == true else 1 for nth in range(len(chances))]
        else:
            winners = [int(each) for each in self._dice.random(len(chances)) >= chances]
        resolved_ms = ends_ms + int(self._dice.uniform(30, 600) * 1000)
        self._catalogue.add_event(plan.event)
        lives = []
        for one, winner in zip(plan.markets, winners, strict=True):
            market = SandboxMarket(one.gamma, mirrored=True)
            self._catalogue.add(market)
            _close(market, winner, ends_ms, resolved_ms)
            lives.append(MarketLife(market, begins_ms, ends_ms, winner, resolved_ms, opened * one.weight))
        plan.event |= {"closed": True, "endDate": iso(ends_ms), "closedTime": iso(resolved_ms)}
        plan.event |= {"updatedAt": iso(resolved_ms)}
        ends = [0.965 if winner == 0 else 0.035 for winner in winners]
        return lives, self._paths.draw(ends, begins_ms, ends_ms, together=together)

    def show_volumes(self, lives: list[MarketLife], trades: Array) -> None:
        """Write the volumes traded into the Gamma objects."""
        value = trades["price"] * trades["size"] // ONE
        lately = trades["ts_ms"] >= self._end_ms - DAY_MS
        many = len(lives)
        volume = np.bincount(trades["market"], value, many)
        of_day = np.bincount(trades["market"][lately], value[lately], many)
        events: set[str] = set()
        for nth, life in enumerate(lives):
            gamma = life.market.gamma
            gamma |= {"volume": text(int(volume[nth])), "volumeNum": int(volume[nth]) / ONE}
            gamma["volume24hr"] = int(of_day[nth]) / ONE
            events.add(str(gamma["events"][0]["id"]))
        for event_id in events:
            event, members = self._catalogue.events[event_id], self._catalogue.members[event_id]
            event["volume"] = round(sum(market.gamma["volumeNum"] for market in members), 6)
            event["volume24hr"] = round(sum(market.gamma["volume24hr"] for market in members), 6)
            shown = brief(event)
            for market in members:
                market.gamma["events"] = [shown]


def _backdate(plan: EventPlan, opens_ms: int) -> None:
    """Set an open event's listing time to when its trading began."""
    at = iso(opens_ms)
    plan.event |= {"startDate": at, "creationDate": at, "createdAt": at}
    for one in plan.markets:
        one.gamma |= {
            "startDate": at,
            "createdAt": at,
            "startDateIso": at[:10],
            "acceptingOrdersTimestamp": at[:19] + "Z",
        }


def _close(market: SandboxMarket, winner: int, ends_ms: int, resolved_ms: int) -> None:
    gamma: Gamma = market.gamma
    last = "1" if winner == 0 else "0"
    gamma |= {
        "closed": True,
        "acceptingOrders": False,
        "closedTime": short(resolved_ms),
        "endDate": iso(ends_ms),
        "endDateIso": iso(ends_ms)[:10],
        "updatedAt": iso(resolved_ms),
        "umaResolutionStatus": "resolved",
        "outcomePrices": listed(("1", "0") if winner == 0 else ("0", "1")),
        "lastTradePrice": float(last),
    }
    market.printed(0, int(last) * ONE)
