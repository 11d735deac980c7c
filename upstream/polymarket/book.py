"""Order book as the exchange sends it, over REST and over the socket, in micro-units and best first."""

from __future__ import annotations

import msgspec

from upstream.polymarket.fields import PRICES, SIZES, digest, named, optional, optional_price
from upstream.transport.numbers import Number, milliseconds

Level = tuple[int, int]
"""Price and total size, in micro-units."""


class Book(msgspec.Struct, frozen=True, gc=False):
    """The whole book of one token at one instant."""

    asset_id: str
    market: str
    ts_ms: int
    hash: str
    """Hex digits, or "" when missing or unreadable."""
    bids: list[Level]
    """Highest price first; no empty levels."""
    asks: list[Level]
    """Lowest price first; no empty levels."""
    tick_size: int | None = None
    last_trade_price: int | None = None
    neg_risk: bool | None = None
    min_order_size: int | None = None


class WireLevel(msgspec.Struct, gc=False):
    """A price level as sent."""

    price: Number
    size: Number


class WireBook(msgspec.Struct, gc=False, tag_field="event_type", tag="book"):
    """{"market":"0x…","asset_id":"7132…","timestamp":"1778997825875","hash":"8fb9…","bids":[{"price":"0.001","size":"5579792.8"},…],
    "asks":[…],"min_order_size":"5","tick_size":"0.001","neg_risk":true,"last_trade_price":"0.5"}

    Captures before 2025 say `buys` and `sells`. Over REST there is no event_type, and both sides come worst first.
    """  # noqa: D205

    asset_id: str
    timestamp: str | int
    market: str = ""
    hash: str | None = None
    bids: list[WireLevel] | None = None
    asks: list[WireLevel] | None = None
    buys: list[WireLevel] | None = None
    sells: list[WireLevel] | None = None
    tick_size: Number | None = None
    last_trade_price: Number | None = None
    neg_risk: bool | None = None
    min_order_size: Number | None = None

    def book(self) -> Book:
        """Return the book in our units; ValueError for an invalid number."""
        bids = self.bids if self.bids is not None else self.buys
        asks = self.asks if self.asks is not None else self.sells
        if bids is None and asks is None:
            raise ValueError("a book without sides")
        return Book(
            named(self.asset_id),
            self.market.lower(),
            milliseconds(self.timestamp),
            digest(self.hash),
            side(bids or [], best_first_descends=True),
            side(asks or [], best_first_descends=False),
            optional(self.tick_size),
            optional_price(self.last_trade_price),
            self.neg_risk,
            optional(self.min_order_size),
        )


def side(levels: list[WireLevel], *, best_first_descends: bool) -> list[Level]:
    """Return one side sorted, as no order can be relied upon; of two entries for one price the later wins."""
    prices, sizes = PRICES, SIZES
    totals = {prices[level.price]: sizes[level.size] for level in levels}
    listed = [level for level in totals.items() if level[1]] if 0 in totals.values() else [*totals.items()]
    listed.sort(reverse=best_first_descends)
    return listed
