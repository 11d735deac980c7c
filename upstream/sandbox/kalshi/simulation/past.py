"""Settled markets from before a simulation's start, on both sides of the cutoff, with their trades and candles."""

from __future__ import annotations

import random
import uuid
from typing import TYPE_CHECKING

from upstream.sandbox.kalshi.exchange.entries import KalshiTrade
from upstream.sandbox.kalshi.simulation.universe import KalshiUniverse, Life
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
    from upstream.sandbox.kalshi.exchange.listings import KalshiMarket

DAY_MS = 86_400_000
PAST_EVENTS, PAST_DAYS, LIVE_DAYS = 60, 120, 90
TRADES = 25  # of each market
TIMER_MS = 300_000


def remember(exchange: KalshiExchange, universe: KalshiUniverse, seed: int, start_ms: int) -> None:
    """Add the past to an exchange, and set its cutoff."""
    dice = random.Random(f"{seed}/past")  # noqa: S311 - repeatable dice are what is wanted
    exchange.cutoff_ms = start_ms // DAY_MS * DAY_MS - LIVE_DAYS * DAY_MS
    trades: list[KalshiTrade] = []
    for nth in range(PAST_EVENTS):
        close_ms = start_ms - DAY_MS - nth * (PAST_DAYS - 1) * DAY_MS // PAST_EVENTS
        life = Life(close_ms - DAY_MS, close_ms - DAY_MS, close_ms)
        event = universe.event(life)
        markets, event.markets = event.markets, []
        exchange.add_event(event)
        winner = dice.randrange(len(markets))
        for at, market in enumerate(markets):
            exchange.add_market(market)
            wins = at == winner if event.exclusive else dice.random() < 0.5
            _end(market, dice, wins=wins)
            trades += _trades(market, dice, wins=wins)
    for trade in sorted(trades, key=lambda trade: trade.ts_ms):
        exchange.record(trade)


def _end(market: KalshiMarket, dice: random.Random, *, wins: bool) -> None:
    market.status = "finalized"
    market.settled_ms = market.updated_ms = market.close_ms + TIMER_MS
    if market.kind == "scalar":
        market.result, market.settlement = "scalar", dice.randint(1, 99) * ONE // 100
    else:
        market.result, market.settlement = ("yes", ONE) if wins else ("no", 0)


def _trades(market: KalshiMarket, dice: random.Random, *, wins: bool) -> list[KalshiTrade]:
    step, price = market.grid.step(ONE // 2), ONE // 2
    found = []
    for nth in range(TRADES):
        drift = step if wins else -step
        price = min(max(price + drift + dice.randint(-2, 2) * step, step), ONE - step)
        found.append(
            KalshiTrade(
                ts_ms=market.open_ms + (nth * DAY_MS + dice.randrange(DAY_MS)) // TRADES,
                market=market,
                id=str(uuid.UUID(int=dice.getrandbits(128))),
                price=price // step * step,
                size=dice.randint(1, 50_000) * 10_000,
                takes_yes=dice.random() < 0.5,
            )
        )
    return found
