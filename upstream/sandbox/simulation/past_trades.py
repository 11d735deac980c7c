"""Trades of a simulation's past, and the splits, merges and redemptions that go with them, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from upstream.sandbox.simulation.past_prices import BURST_MS, DAY_MS, END_MS
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    import numpy.typing as npt

    from upstream.sandbox.exchange.population import Population
    from upstream.sandbox.exchange.transactions import Form, Kind
    from upstream.sandbox.simulation.past_markets import MarketLife
    from upstream.sandbox.simulation.past_prices import Path

    Floats = npt.NDArray[np.float64]
    Array = npt.NDArray[Any]

LATELY, LATELY_TIMES = DAY_MS, 3.0  # the last day is this many times busier
DEALT = 0.6  # share of positions opened with the dealer
CLOSED = 0.45  # share of positions closed before the market's end
TOGETHER = 0.5  # share of those against another maker that both sides close together (merge)
REDEEMED = 0.85  # share of winners who redeem
BURST_OPENED = 12  # positions opened at news
SHARES, SPREAD, LARGE, LARGE_TIMES = 7.5, 1.25, 0.01, 8.0  # the logarithm of the size of a position, in shares

FORMS: tuple[Form, ...] = ("", "mint", "merge")
KINDS: tuple[Kind, ...] = ("prepare", "split", "merge", "resolve", "redeem")
TRADE = np.dtype(
    [
        *(("ts_ms", "i8"), ("market", "i4"), ("outcome", "i1"), ("buys", "?"), ("price", "i8"), ("size", "i8")),
        *(("taker", "i4"), ("maker", "i4"), ("form", "i1")),
    ]
)
MOVE = np.dtype(
    [("ts_ms", "i8"), ("kind", "i1"), ("market", "i4"), ("outcome", "i1"), ("wallet", "i4"), ("amounts", "i8", 2)]
)


class PastTrades:
    """Generator of one market's trades and other position changes, from one random generator."""

    def __init__(self, dice: np.random.Generator, population: Population, seed: int, end_ms: int) -> None:
        self._dice, self._population, self.end_ms = dice, population, end_ms
        self._skill = np.tanh(np.random.default_rng([seed, 0x736B696C]).normal(size=len(population.wallets)))

    def dealer(self) -> int:
        """Draw the wallet that deals in a market."""
        return int(self._population.places(self._dice.random(1))[0])

    def trades(self, nth: int, life: MarketLife, path: Path, dealer: int) -> Array:
        opens_ms, ends_ms = float(life.opens_ms), float(life.ends_ms)
        dice = self._dice
        at_ms = dice.uniform(opens_ms, ends_ms, dice.poisson(life.opened))
        if life.winner is None:  # the last day is busier
            lately = dice.poisson(life.opened * LATELY_TIMES * LATELY / (ends_ms - opens_ms))
            at_ms = np.concatenate([at_ms, dice.uniform(max(ends_ms - LATELY, opens_ms), ends_ms, lately)])
        busy = [burst_ms + dice.exponential(BURST_MS / 2.5, dice.poisson(BURST_OPENED)) for burst_ms in path.bursts]
        at_ms = np.concatenate([at_ms, *busy])
        at_ms = np.sort(at_ms[at_ms < ends_ms])
        many = len(at_ms)
        taker, maker, buyer = (self._population.places(dice.random(many)) for _ in range(3))
        taker = np.where(taker == dealer, taker + 1, taker) % len(self._population.wallets)
        dealt = dice.random(many) < DEALT
        maker = np.where(dealt, dealer, np.where(maker == taker, maker + 1, maker)) % len(self._population.wallets)
        gains = path.price[-1] > path.at(at_ms) if life.winner is None else np.full(many, life.winner == 0)
        knows = dice.random(many) < 0.5 + 0.2 * self._skill[taker]
        outcome = np.where(gains == knows, 0, 1)
        size = self._sizes(many)
        opened = self._rows(nth, path, at_ms, outcome, buys=True)
        opened["size"], opened["taker"], opened["maker"], opened["form"] = size, taker, maker, np.where(dealt, 0, 1)
        closes_ms = at_ms + dice.exponential((ends_ms - opens_ms) / 8 + 600_000, many)
        closing = (dice.random(many) < CLOSED) & (closes_ms < ends_ms)
        closed = self._rows(nth, path, closes_ms[closing], outcome[closing], buys=False)
        closed["size"], closed["taker"] = size[closing], taker[closing]
        pairs = (dice.random(len(closed)) < TOGETHER) & ~dealt[closing]
        buyer = np.where(buyer == taker, maker, buyer)
        closed["maker"] = np.where(pairs, maker[closing], buyer[closing])
        closed["form"] = np.where(pairs, 2, 0)
        return np.concatenate([opened, closed])

    def _rows(self, nth: int, path: Path, at_ms: Floats, outcome: Array, *, buys: bool) -> Array:
        rows = np.zeros(len(at_ms), dtype=TRADE)
        fair = path.at(at_ms)
        fair = np.where(outcome == 0, fair, 1 - fair)
        tick = np.where((fair < 0.04) | (fair > 0.96), 0.001, 0.01)
        paid = fair / tick + (0.5 if buys else -0.5) + self._dice.normal(scale=0.4, size=len(at_ms))
        rows["ts_ms"], rows["market"], rows["outcome"], rows["buys"] = at_ms, nth, outcome, buys
        rows["price"] = np.rint(np.clip(np.rint(paid) * tick, tick, 1 - tick) * ONE)
        return rows

    def _sizes(self, many: int) -> Array:
        shares = np.exp(self._dice.normal(SHARES, SPREAD, many))
        shares *= np.where(self._dice.random(many) < LARGE, LARGE_TIMES, 1.0)
        return np.maximum((shares * 100).astype(np.int64) * (ONE // 100), 5 * ONE)

    def moves(self, nth: int, life: MarketLife, trades: Array, dealer: int) -> Array:
        dice = self._dice
        dealt = trades[trades["buys"] & (trades["form"] == 0)]
        needed = int(max(np.bincount(dealt["outcome"], dealt["size"], 2))) if len(dealt) else 0
        spare = int(dice.integers(200, 3_000)) * ONE
        made = -(-needed // ONE) * ONE + spare
        moves = [
            (life.opens_ms, "prepare", 0, 0, (0, 0)),
            (life.opens_ms, "split", 0, dealer, (made, 0)),
        ]
        left = made
        if dice.random() < 0.5:
            left -= spare
            moves.append(((life.opens_ms + life.ends_ms) // 2, "merge", 0, dealer, (spare, 0)))
        if life.winner is not None:
            moves.append((life.resolved_ms, "resolve", life.winner, 0, (0, 0)))
            held = self._held(trades)
            held[dealer] += left
            for winner in np.flatnonzero(held[:, life.winner] > 0).tolist():
                at_ms = life.resolved_ms + 3_000 + int(dice.exponential(1_800_000))
                if dice.random() < REDEEMED and at_ms < self.end_ms - END_MS:
                    amounts = (int(held[winner, 0]), int(held[winner, 1]))
                    moves.append((at_ms, "redeem", life.winner, winner, amounts))
        rows = np.zeros(len(moves), dtype=MOVE)
        for place, (at_ms, kind, outcome, who, amounts) in enumerate(moves):
            rows[place] = (at_ms, KINDS.index(kind), nth, outcome, who, amounts)
        return rows

    def _held(self, trades: Array) -> Array:
        """Return what each wallet holds of each outcome after some trades of one market."""
        held = np.zeros((len(self._population.wallets), 2), dtype=np.int64)
        size, outcome = trades["size"], trades["outcome"]
        np.add.at(held, (trades["taker"], outcome), np.where(trades["buys"], size, -size))
        # In a minted or merged pair the maker got, or gave, the other outcome; else it sold or bought this one.
        pairs = trades["form"] > 0
        given = (trades["form"] == 2) | (~pairs & trades["buys"])
        np.add.at(held, (trades["maker"], np.where(pairs, 1 - outcome, outcome)), np.where(given, -size, size))
        return held


def in_order(parts: list[Array], dtype: np.dtype[Any]) -> Array:
    """Return rows of several markets by time."""
    whole = np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)
    return whole[np.argsort(whole["ts_ms"], kind="stable")]
