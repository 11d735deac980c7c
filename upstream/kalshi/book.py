"""Order book of a market: bids for YES and bids for NO; each outcome's asks are the other's bids."""

from __future__ import annotations

import msgspec

from upstream.kalshi.fields import PRICES, SIZES
from upstream.transport.numbers import MICRO, Number

Level = tuple[int, int]
"""Price and size, in micro-units."""
SentLevel = tuple[Number, Number]
"""A level as sent: `["0.2700","31.54"]`."""


class KalshiBook(msgspec.Struct, frozen=True, gc=False):
    """The whole book of one market at one instant: bids only, highest first, no empty levels."""

    ticker: str
    yes: list[Level]
    no: list[Level]

    def outcome(self, index: int) -> tuple[list[Level], list[Level]]:
        """Return bids and asks of an outcome (0 YES, 1 NO), best first: a bid of 0.72 for NO is an ask of 0.28."""
        bids, others = (self.yes, self.no) if index == 0 else (self.no, self.yes)
        return bids, [(MICRO - price, size) for price, size in others]


def side(levels: list[SentLevel] | None) -> list[Level]:
    """Return one side, sorted, as no order can be relied upon; of two entries for one price the later holds."""
    totals = {PRICES[price]: SIZES[size] for price, size in levels or ()}
    return sorted(((price, size) for price, size in totals.items() if size), reverse=True)


def check_absent(sides: bytes | msgspec.Raw, known: tuple[str, str]) -> None:
    """Refuse an object that lacks a side and has another field of its name's beginning: a renamed side is no empty one.

    The exchange leaves empty sides out, and has renamed them before.
    """
    for name in _keys.decode(sides):
        if name not in known and name.startswith(("yes", "no")):
            raise ValueError(f"a side by another name: {name!r:.40}")


_keys = msgspec.json.Decoder(dict[str, msgspec.Raw])
