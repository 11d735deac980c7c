"""Price grids: bands of prices, each with its step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from upstream.sandbox.common.book import BUY
from upstream.sandbox.kalshi.formats import dollars
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upstream.sandbox.common.book import Side


class Band(NamedTuple):
    """Prices from `start` to `end`, multiples of `step`."""

    start: int
    end: int
    step: int


class Grid:
    """The prices that a market's orders may have."""

    def __init__(self, structure: str, bands: Iterable[Band]) -> None:
        self.structure = structure
        self.bands = list(bands)
        self.ranges = [
            {"start": dollars(band.start), "end": dollars(band.end), "step": dollars(band.step)} for band in self.bands
        ]

    def step(self, price: int) -> int:
        """Return the step of the band that holds a price."""
        return next((band.step for band in self.bands if band.start <= price <= band.end), self.bands[-1].step)

    def on_grid(self, side: Side, price: int) -> int | None:
        """Return the nearest price on the grid that is not better than a given one; None if there is none."""
        step = self.step(price)
        found = price // step * step if side == BUY else -(-price // step) * step
        return found if 0 < found < ONE else None


GRIDS = {
    grid.structure: grid
    for grid in (
        Grid("linear_cent", [Band(0, ONE, 10_000)]),
        Grid("deci_cent", [Band(0, ONE, 1_000)]),
        Grid(
            "tapered_deci_cent",
            [Band(0, 100_000, 1_000), Band(100_000, 900_000, 10_000), Band(900_000, ONE, 1_000)],
        ),
        Grid(
            "center_deci_edge_centi_cent",
            [Band(0, 10_000, 100), Band(10_000, 990_000, 1_000), Band(990_000, ONE, 100)],
        ),
    )
}
