"""Who holds what: positions of the wallets, from the trades alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upstream.sandbox.book import BUY
from upstream.sandbox.micro import ONE

if TYPE_CHECKING:
    from upstream.sandbox.catalogue import Catalogue
    from upstream.sandbox.trades import Trade


@dataclass
class Position:
    """Shares of one token and what they cost, in micro-units; `bought` counts shares ever bought."""

    token: str
    size: int = 0
    cost: int = 0
    bought: int = 0
    spent: int = 0
    realized: int = 0
    ts_ms: int = 0

    @property
    def average(self) -> float:
        """What a share cost: of those held, or of all ever bought when none is held."""
        if self.size:
            return self.cost / self.size
        return self.spent / self.bought if self.bought else 0.0


class Portfolios:
    """Every wallet's positions.

    Selling what one does not hold mints a pair and keeps the other outcome, as on the chain.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._of: defaultdict[str, dict[str, Position]] = defaultdict(dict)

    def add(self, trade: Trade) -> None:
        if trade.taker:
            self._apply(trade.taker, trade.token, trade, sign=1 if trade.side == BUY else -1)
        if trade.maker:
            self._apply(trade.maker, trade.token, trade, sign=-1 if trade.side == BUY else 1)

    def of(self, wallet: str) -> list[Position]:
        return list(self._of.get(wallet.lower(), {}).values())

    def holders(self, token: str) -> list[tuple[str, int]]:
        """Tell who holds shares of a token, and how many; the largest holder first."""
        held = [(wallet, of[token].size) for wallet, of in self._of.items() if token in of and of[token].size]
        return sorted(held, key=lambda holder: -holder[1])

    def _apply(self, wallet: str, token: str, trade: Trade, sign: int) -> None:
        held = self._of[wallet.lower()]
        if sign > 0:
            self._buy(held, token, trade.size, trade.price, trade.ts_ms)
            return
        position = held.get(token)
        sold = min(trade.size, position.size) if position else 0
        if position and sold:
            cost = position.cost * sold // position.size
            position.realized += trade.price * sold // ONE - cost
            position.size -= sold
            position.cost -= cost
            position.ts_ms = trade.ts_ms
        rest = trade.size - sold
        other = self._other(token)
        if rest and other:
            self._buy(held, other, rest, ONE - trade.price, trade.ts_ms)

    def _buy(self, held: dict[str, Position], token: str, size: int, price: int, ts_ms: int) -> None:
        position = held.setdefault(token, Position(token))
        position.size += size
        position.cost += price * size // ONE
        position.bought += size
        position.spent += price * size // ONE
        position.ts_ms = ts_ms

    def _other(self, token: str) -> str | None:
        at = self._catalogue.find(token)
        return at[0].tokens[1 - at[1]] if at is not None and len(at[0].tokens) == 2 else None
