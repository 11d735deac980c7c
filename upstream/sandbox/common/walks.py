"""Random walk of a market's fair price, alone or in a group of which exactly one wins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

MAX_STEP_S = 30.0  # a price walks no further at once, however long nobody traded


class Group:
    """Markets of which exactly one wins: their fair prices sum to 1."""

    def __init__(self) -> None:
        self.total = 0.0


class PriceWalk:
    """A fair price."""

    __slots__ = ("group", "logit", "moved_ms", "sigma")

    def __init__(self, probability: float, group: Group | None, *, sigma: float, ms: float) -> None:
        self.group = group
        self.logit = math.log(probability if group is not None else probability / (1 - probability))
        if group is not None:
            group.total += math.exp(self.logit)
        self.sigma = sigma
        self.moved_ms = ms

    def fair(self, now_ms: float, dice: random.Random) -> float:
        """Walk the fair price of the first outcome to a moment, and return it."""
        elapsed_s = min((now_ms - self.moved_ms) / 1000, MAX_STEP_S)
        self.moved_ms = now_ms
        moved = dice.gauss(0, 1) * self.sigma * math.sqrt(max(elapsed_s, 0.0))
        if self.group is None:
            self.logit = min(max(self.logit + moved, -4.5), 4.5)
        else:
            before = math.exp(self.logit)
            self.logit = min(max(self.logit + moved, -6.0), 0.0)
            self.group.total += math.exp(self.logit) - before
        return self.price

    @property
    def price(self) -> float:
        """The fair price as of its last move."""
        if self.group is None:
            return 1 / (1 + math.exp(-self.logit))
        return min(math.exp(self.logit) / self.group.total, 0.99)
