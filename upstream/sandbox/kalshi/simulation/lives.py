"""Lives of short-lived markets: what happens to each, and when, through all states that Kalshi knows."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Protocol

from upstream.sandbox.kalshi.exchange.grid import GRIDS
from upstream.sandbox.kalshi.formats import dollars
from upstream.sandbox.kalshi.simulation.universe import KalshiUniverse, Life
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiEvent, KalshiMarket

TURNOVER_MS = 15_000  # how often an event is made
OPENS_MS, CLOSES_MS = 5_000, 60_000  # after it is made
DETERMINED_MS = 3_000  # after it has closed
DISPUTED_MS, AMENDED_MS = 2_000, 4_000  # after the first result
TIMER_S = 5  # from a result to its payment
CLOSE_EARLY_MS, REOPEN_MS = 40_000, 5_000
PLOTS = ("plain", "paused", "early", "disputed", "scalar", "void", "reopened", "regridded")
SCALARS = (0.5, 0.61, 0.2)
LIFE_MS = OPENS_MS + CLOSES_MS + REOPEN_MS + DETERMINED_MS + DISPUTED_MS + AMENDED_MS + TIMER_S * 1000


class LifeStage(Protocol):
    """What lives need of the simulation."""

    exchange: KalshiExchange

    def at(self, ms: float, action: Callable[[], None]) -> None:
        """Do something at a moment."""

    def open(self, market: KalshiMarket, *, aloud: bool) -> None:
        """Let a market trade."""

    def close(self, market: KalshiMarket) -> None:
        """Let a market trade no more."""


class Lives:
    """Maker of short-lived events, each with its plot; two of their markets make a combo."""

    def __init__(self, stage: LifeStage, universe: KalshiUniverse, dice: random.Random) -> None:
        self._stage, self._universe, self._dice = stage, universe, dice
        self._exchange = stage.exchange
        self._plots = count()
        self._winners: dict[str, KalshiMarket] = {}  # by event
        self._combos: dict[str, KalshiMarket] = {}
        self._last: KalshiMarket | None = None

    def begin(self, ms: int) -> None:
        """Make an event now, and another one after a while."""
        nth = next(self._plots)
        plot = PLOTS[nth % len(PLOTS)]
        life = Life(ms, ms + OPENS_MS, ms + OPENS_MS + CLOSES_MS, TIMER_S, can_close_early=plot == "early")
        event = self._universe.event(life, kind=5 if plot == "scalar" and nth % 2 else None)
        self._list(event)
        for market in event.markets:
            self._plan(market, plot, ms)
        if plot == "regridded":
            self._stage.at(ms + 12_000, lambda: self._exchange.change_fee(event, "quadratic_with_maker_fees", 0.5))
            self._stage.at(ms + 30_000, lambda: self._exchange.change_fee(event, None, None))
        last, self._last = self._last, event.markets[0]
        if last is not None:
            self._combine(last, event.markets[0], life)
        self._stage.at(ms + TURNOVER_MS, partial(self.begin, ms + TURNOVER_MS))

    def _list(self, event: KalshiEvent) -> None:
        markets, event.markets = event.markets, []
        self._exchange.add_event(event)
        self._exchange.announce_event(event)
        for market in markets:
            self._exchange.add_market(market)
            self._exchange.announce(market)

    def _plan(self, market: KalshiMarket, plot: str, ms: int) -> None:
        at, exchange = self._stage.at, self._exchange
        opened, closed = ms + OPENS_MS, ms + OPENS_MS + CLOSES_MS
        at(opened, lambda: self._stage.open(market, aloud=False))
        if plot == "paused":
            at(opened + 15_000, lambda: exchange.pause(market))
            at(opened + 20_000, lambda: self._stage.open(market, aloud=True))
        elif plot == "regridded":
            at(opened + 10_000, lambda: exchange.redescribe(market, f"{market.yes_sub_title} (corrected)"))
            at(opened + 20_000, lambda: exchange.regrid(market, GRIDS["deci_cent"]))
        elif plot == "early":
            closed = opened + CLOSE_EARLY_MS
            at(closed, lambda: exchange.move_close(market, exchange.now_ms))
        at(closed, lambda: self._stage.close(market))
        if plot == "reopened":
            again = closed + REOPEN_MS
            at(again, lambda: exchange.move_close(market, again + CLOSE_EARLY_MS))
            at(again, lambda: self._stage.open(market, aloud=True))
            closed = again + CLOSE_EARLY_MS
            at(closed, lambda: self._stage.close(market))
        self._end(market, plot, closed + DETERMINED_MS)

    def _end(self, market: KalshiMarket, plot: str, determined: int) -> None:
        at, exchange = self._stage.at, self._exchange
        at(determined, lambda: self._determine(market, plot))
        paid = determined + TIMER_S * 1000
        if plot == "disputed":
            at(determined + DISPUTED_MS, lambda: exchange.set_status(market, "disputed"))
            amended = determined + DISPUTED_MS + AMENDED_MS
            at(amended, lambda: exchange.set_status(market, "amended"))
            at(amended + 1_000, lambda: self._determine(market, "amended"))
            paid = amended + 1_000 + TIMER_S * 1000
        at(paid, lambda: exchange.settle(market))
        at(paid, self._settle_combos)

    def _determine(self, market: KalshiMarket, plot: str) -> None:
        result, value = self._outcome(market, plot)
        self._exchange.determine(market, result, value)

    def _outcome(self, market: KalshiMarket, plot: str) -> tuple[str, int | None]:
        """Return the result and the payout of YES."""
        if plot == "void":
            return "", None
        if plot == "scalar" or market.kind == "scalar":
            return "scalar", round(self._dice.choice(SCALARS) * ONE)
        if plot == "amended":
            wins = self._next_wins(market) if market.event.exclusive else market.result == "no"
        elif market.event.exclusive:
            wins = market is self._winner(market.event)
        else:
            wins = self._dice.random() < _chance(market)
        return ("yes", ONE) if wins else ("no", 0)

    def _winner(self, event: KalshiEvent) -> KalshiMarket:
        """Return the market that wins an event of which one does."""
        if event.ticker not in self._winners:
            chances = [_chance(market) for market in event.markets]
            self._winners[event.ticker] = self._dice.choices(event.markets, chances)[0]
        return self._winners[event.ticker]

    def _next_wins(self, market: KalshiMarket) -> bool:
        """Return whether a market follows the one that seemed to have won."""
        members = market.event.markets
        return market is members[(members.index(self._winner(market.event)) + 1) % len(members)]

    # --- Combos ---

    def _combine(self, one: KalshiMarket, other: KalshiMarket, life: Life) -> None:
        legs = [(one, self._dice.choice(("yes", "no"))), (other, self._dice.choice(("yes", "no")))]
        event = self._universe.combo(legs, life)
        combo = event.markets[0]
        self._list(event)
        self._combos[combo.ticker] = combo
        self._stage.at(life.open_ms, lambda: self._stage.open(combo, aloud=False))
        self._stage.at(life.close_ms, lambda: self._stage.close(combo))

    def _settle_combos(self) -> None:
        """Settle the combos all of whose legs are settled: the product of what the legs pay."""
        for combo in list(self._combos.values()):
            value = self._product(combo)
            if value is None or combo.status != "closed":
                continue
            del self._combos[combo.ticker]
            result = {0: "no", ONE: "yes"}.get(value, "scalar")
            self._exchange.determine(combo, result, value)
            self._exchange.settle(combo)

    def _product(self, combo: KalshiMarket) -> int | None:
        value = ONE
        for leg in combo.extra["mve_selected_legs"]:
            market = self._exchange.markets[leg["market_ticker"]]
            if market.status != "finalized":
                return None
            if market.settlement is None:
                continue  # a void leg counts as none
            leg["yes_settlement_value_dollars"] = dollars(market.settlement)
            paid = market.settlement if leg["side"] == "yes" else ONE - market.settlement
            value = value * paid // ONE
        return value


def _chance(market: KalshiMarket) -> float:
    return 0.5 if market.walk is None else market.walk.price
