"""The newest trades of an exchange, indexed by market."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAX_TRADES = 200_000


class Numbered(Protocol):
    """A trade with its number."""

    @property
    def n(self) -> int:
        """Return the number."""


Trade = TypeVar("Trade", bound=Numbered)


class RecentTrades(Generic[Trade]):
    """The newest trades, indexed by market."""

    def __init__(self, market_of: Callable[[Trade], str], kept: int = MAX_TRADES) -> None:
        self.total = 0
        self._market_of = market_of
        self._kept = kept
        self._all: deque[Trade] = deque()
        self._of: defaultdict[str, deque[Trade]] = defaultdict(deque)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, trade: Trade) -> None:
        """Add a trade, dropping the oldest beyond the limit."""
        if len(self._all) == self._kept:
            oldest = self._market_of(self._all.popleft())
            of_market = self._of[oldest]
            of_market.popleft()
            if not of_market:
                del self._of[oldest]
        self._all.append(trade)
        self._of[self._market_of(trade)].append(trade)
        self.total += 1

    def newest_first(self, markets: list[str] | None = None) -> Iterator[Trade]:
        """Yield trades of some markets (None: of all), newest first."""
        if markets is None:
            return reversed(self._all)
        if len(markets) == 1:
            return reversed(self._of.get(markets[0], deque()))
        found = [trade for market in set(markets) for trade in self._of.get(market, ())]
        return iter(sorted(found, key=lambda trade: -trade.n))
