"""Prices of a simulation's past: random paths to given ends, with news that make them jump."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Array = npt.NDArray[Any]

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
END_MS = 30_000  # from the last trade of the past to the first of the simulation: its block is final by then
BURST_EVERY_DAYS, BURST_MS = 2.5, 2_400_000  # news: the price jumps, and trading spikes
REVERTED = 0.4  # share of news that reverts
DRIFT = 0.07  # of the logit, per hour


@dataclass
class Path:
    """The fair price of the first outcome over time."""

    ts_ms: Floats
    price: Floats
    bursts: Floats

    def at(self, ts_ms: Array) -> Floats:
        """Return the prices at some instants."""
        return np.interp(ts_ms, self.ts_ms, self.price)


class PricePaths:
    """Generator of price paths, from one random generator."""

    def __init__(self, dice: np.random.Generator) -> None:
        self._dice = dice

    def draw(self, ends: Sequence[float], begins_ms: int, ends_ms: int, *, together: bool) -> list[Path]:
        """Return random price paths to given ends; for markets of which exactly one wins, prices sum to 1."""
        steps = int(np.clip((ends_ms - begins_ms) // 600_000, 40, 4_000))
        ts_ms = np.linspace(begins_ms, ends_ms, steps + 1)
        hours = (ends_ms - begins_ms) / HOUR_MS
        many = len(ends)
        short = hours < 3
        scale = (0.9 if short else DRIFT) * math.sqrt(hours / steps)
        bursts = [self._bursts(begins_ms, ends_ms) for _ in range(many)]
        moved = self._dice.normal(scale=scale, size=(many, steps))
        for nth, at_ms in enumerate(bursts):
            self._jump(moved[nth], (at_ms - begins_ms) / (ends_ms - begins_ms) * steps)
        walk = np.concatenate([np.zeros((many, 1)), np.cumsum(moved, axis=1)], axis=1)
        chance = np.clip(np.array(ends), 0.005, 0.995)
        last = np.log(chance) if together else np.log(chance / (1 - chance))
        first = np.zeros(many) if short else last * 0.3 + self._dice.normal(scale=0.4, size=many)
        if together:
            first = last * 0.6 + self._dice.normal(scale=0.3, size=many)
        share = np.linspace(0, 1, steps + 1)
        logit = walk + first[:, None] + (last - first - walk[:, -1])[:, None] * share
        if together:
            weight = np.exp(logit)
            price = weight / weight.sum(axis=0)
        else:
            price = 1 / (1 + np.exp(-logit))
        return [Path(ts_ms, np.clip(price[nth], 0.005, 0.995), bursts[nth]) for nth in range(many)]

    def _bursts(self, begins_ms: int, ends_ms: int) -> Floats:
        many = self._dice.poisson((ends_ms - begins_ms) / DAY_MS / BURST_EVERY_DAYS)
        return np.sort(self._dice.uniform(begins_ms, max(ends_ms - BURST_MS, begins_ms + 1), many))

    def _jump(self, moved: Floats, places: Floats) -> None:
        for place in places:
            size = self._dice.uniform(0.5, 1.4) * self._dice.choice((-1.0, 1.0))
            at = int(place) + 1
            if at + 5 >= len(moved):
                continue
            moved[at] += size
            if self._dice.random() < REVERTED:
                moved[at + 3] -= size * self._dice.uniform(0.7, 1.0)
