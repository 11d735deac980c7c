"""Trades served by the Data API: the newest N, newest first."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

import msgspec

from upstream.sandbox.common.book import Side
from upstream.sandbox.exchange.transactions import Form

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_TRADES = 200_000


class SandboxTrade(msgspec.Struct, gc=False):
    """One fill: the taker's amount from one resting level; `form` is how the maker settles on the chain."""

    n: int
    condition_id: str
    token: str
    outcome: int
    side: Side
    price: int
    size: int
    ts_ms: int
    tx: str
    taker: str = ""
    maker: str = ""
    form: Form = ""


class RecentTrades:
    """The newest trades, indexed by market."""

    def __init__(self, kept: int = MAX_TRADES) -> None:
        self.total = 0
        self._kept = kept
        self._all: deque[SandboxTrade] = deque()
        self._of: defaultdict[str, deque[SandboxTrade]] = defaultdict(deque)

    def __len__(self) -> int:
        return len(self._all)

    def add(self, trade: SandboxTrade) -> None:
        """Add a trade, dropping the oldest beyond the limit."""
        if len(self._all) == self._kept:
            oldest = self._all.popleft()
            of_market = self._of[oldest.condition_id]
            of_market.popleft()
            if not of_market:
                del self._of[oldest.condition_id]
        self._all.append(trade)
        self._of[trade.condition_id].append(trade)
        self.total += 1

    def newest_first(self, condition_ids: list[str] | None = None) -> Iterator[SandboxTrade]:
        """Yield trades of some markets (None: of all), newest first."""
        if condition_ids is None:
            return reversed(self._all)
        if len(condition_ids) == 1:
            return reversed(self._of.get(condition_ids[0], deque()))
        found = [trade for condition_id in set(condition_ids) for trade in self._of.get(condition_id, ())]
        return iter(sorted(found, key=lambda trade: -trade.n))
