"""Portfolios: the positions of each wallet."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from upstream.sandbox.common.book import BUY
from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from upstream.sandbox.exchange.catalogue import Catalogue
    from upstream.sandbox.exchange.trades import SandboxTrade
    from upstream.sandbox.exchange.transactions import Form


MAX_POSITIONS = 500_000  # of all wallets; the oldest are forgotten


@dataclass(slots=True)
class SandboxPosition:
    """Shares of one token and their cost, in micro-units; `bought` counts all shares ever bought."""

    token: str
    size: int = 0
    cost: int = 0
    bought: int = 0
    spent: int = 0
    realized: int = 0
    ts_ms: int = 0

    @property
    def average(self) -> float:
        """Return the average cost of a share: of those held, or of all ever bought when none is held."""
        if self.size:
            return self.cost / self.size
        return self.spent / self.bought if self.bought else 0.0


class Portfolios:
    """Every wallet's positions, changed as the chain changes them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._of: defaultdict[str, dict[str, SandboxPosition]] = defaultdict(dict)
        self._in_order: deque[tuple[str, str]] = deque()  # wallets and tokens, the oldest position first

    def of(self, wallet: str) -> list[SandboxPosition]:
        """Return a wallet's positions."""
        return list(self._of.get(wallet.lower(), {}).values())

    def held(self, wallet: str, token: str) -> int:
        """Return how many shares of a token a wallet holds."""
        position = self._of.get(wallet.lower(), _NONE).get(token)
        return position.size if position else 0

    def holders(self, token: str) -> list[tuple[str, int]]:
        """Return the holders of a token and their shares; the largest first."""
        held = [(wallet, of[token].size) for wallet, of in self._of.items() if token in of and of[token].size]
        return sorted(held, key=lambda holder: -holder[1])

    def settle(self, trade: SandboxTrade) -> tuple[Form, int]:
        """Settle a trade on both sides' positions.

        A maker that does not hold the token sold bought the other token instead, and one that holds the other token
        sold that. A taker that does not hold the token sold first had a pair split: the shares split are returned too.
        """
        form: Form = ""
        missing = 0
        size, price, token, ts_ms = trade.size, trade.price, trade.token, trade.ts_ms
        other = self._other(token)
        buys = trade.side == BUY
        if trade.taker:
            if buys:
                self.buy(trade.taker, token, size, price, ts_ms)
            else:
                missing = size - self.sell(trade.taker, token, size, price, ts_ms)
                if missing and other:
                    self.buy(trade.taker, other, missing, ONE - price, ts_ms)
        if trade.maker:
            if buys:
                if other and self.held(trade.maker, token) < size:
                    form = "mint"
                    self.buy(trade.maker, other, size, ONE - price, ts_ms)
                else:
                    self.sell(trade.maker, token, size, price, ts_ms)
            elif other and self.held(trade.maker, other) >= size:
                form = "merge"
                self.sell(trade.maker, other, size, ONE - price, ts_ms)
            else:
                self.buy(trade.maker, token, size, price, ts_ms)
        return form, missing

    def buy(self, wallet: str, token: str, size: int, price: int, ts_ms: int) -> None:
        """Add shares at a price each."""
        held = self._of[wallet.lower()]
        position = held.get(token)
        if position is None:
            position = held[token] = SandboxPosition(token)
            self._in_order.append((wallet.lower(), token))
            if len(self._in_order) > MAX_POSITIONS:
                oldest, of_token = self._in_order.popleft()
                self._of[oldest].pop(of_token, None)
        cost = price * size // ONE
        position.size += size
        position.cost += cost
        position.bought += size
        position.spent += cost
        position.ts_ms = ts_ms

    def sell(self, wallet: str, token: str, size: int, price: int, ts_ms: int) -> int:
        """Remove shares at a price each, as far as there are any; return how many were removed."""
        position = self._of.get(wallet.lower(), _NONE).get(token)
        sold = min(size, position.size) if position else 0
        if position and sold:
            cost = position.cost * sold // position.size
            position.realized += price * sold // ONE - cost
            position.size -= sold
            position.cost -= cost
            position.ts_ms = ts_ms
        return sold

    def forget(self, tokens: Iterable[str]) -> None:
        """Drop tokens that were resolved long ago."""
        gone = tuple(tokens)
        for held in self._of.values():
            for token in gone:
                held.pop(token, None)

    def _other(self, token: str) -> str | None:
        at = self._catalogue.find(token)
        return at[0].tokens[1 - at[1]] if at is not None and len(at[0].tokens) == 2 else None


_NONE: dict[str, SandboxPosition] = {}
