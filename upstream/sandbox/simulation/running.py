"""A trading market of the simulation, and the random walk of its fair price."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from upstream.sandbox.exchange.catalogue import SandboxMarket

MAX_STEP_S = 30.0  # a price walks no further at once, however long nobody traded


class Group:
    """Markets of which exactly one wins: their fair prices sum to 1."""

    def __init__(self) -> None:
        self.total = 0.0


class Running:
    """A trading market and its fair price; `coin`, `opens_ms` and `ends_ms` are those of an up/down market."""

    __slots__ = ("coin", "ends_ms", "group", "logit", "market", "moved_ms", "opens_ms", "sigma", "strike", "weight")

    def __init__(
        self, market: SandboxMarket, probability: float, group: Group | None, *, sigma: float, ms: float
    ) -> None:
        self.market = market
        self.group = group
        self.logit = math.log(probability if group is not None else probability / (1 - probability))
        if group is not None:
            group.total += math.exp(self.logit)
        self.sigma = sigma
        self.moved_ms = ms
        self.weight = 1.0
        self.coin, self.opens_ms, self.ends_ms = "", 0, 0
        self.strike = 0.0

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
