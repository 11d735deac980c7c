"""A trading market of the simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from upstream.sandbox.common.walks import Group, PriceWalk

if TYPE_CHECKING:
    from upstream.sandbox.exchange.catalogue import SandboxMarket


class Running(PriceWalk):
    """A trading market and its fair price; `coin`, `opens_ms` and `ends_ms` are those of an up/down market."""

    __slots__ = ("coin", "ends_ms", "market", "opens_ms", "strike", "weight")

    def __init__(
        self, market: SandboxMarket, probability: float, group: Group | None, *, sigma: float, ms: float
    ) -> None:
        super().__init__(probability, group, sigma=sigma, ms=ms)
        self.market = market
        self.weight = 1.0
        self.coin, self.opens_ms, self.ends_ms = "", 0, 0
        self.strike = 0.0
