"""Price history, a point per minute, as far back as the sandbox has run, or its past goes."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING

from upstream.transport.micro import ONE

if TYPE_CHECKING:
    from upstream.sandbox.exchange.exchange import SandboxExchange
    from upstream.sandbox.simulation.past import SimulatedPast

MAX_POINTS = 3 * 1440  # minutes
INTERVALS_S = {"1h": 3600, "6h": 6 * 3600, "1d": 86_400, "1w": 7 * 86_400, "1m": 31 * 86_400, "max": 0, "all": 0}


class History:
    """Sampler of every market that moved: the middle of the book, or the last trade where there is no book."""

    def __init__(self, exchange: SandboxExchange) -> None:
        self._exchange = exchange
        self.past: SimulatedPast | None = None
        self._points: defaultdict[str, deque[tuple[int, float]]] = defaultdict(lambda: deque(maxlen=MAX_POINTS))

    def sample(self) -> None:
        """Add a point per market; called once a minute."""
        at = self._exchange.now_ms // 1000
        for market in self._exchange.catalogue:
            if market.closed:
                continue
            for outcome, token in enumerate(market.tokens):
                bid, ask = market.best(outcome)
                last = market.last_price[outcome]
                price = (bid + ask) / 2 if market.has_book and bid and ask < ONE else last
                if price is not None:
                    self._points[token].append((at, round(price / ONE, 6)))

    def points(self, token: str, interval: str | None, start: int, end: int, fidelity: int) -> list[dict[str, float]]:
        """Return points at least `fidelity` minutes apart, always including the last one."""
        seconds = INTERVALS_S.get(interval or "")
        if seconds:
            start = self._exchange.now_ms // 1000 - seconds
        found = [] if self.past is None else list(self.past.points(token, start, end))
        found += [point for point in self._points.get(token, ()) if start <= point[0] <= end]
        chosen: list[tuple[int, float]] = []
        for point in found:
            if not chosen or point[0] - chosen[-1][0] >= fidelity * 60 - 1:
                chosen.append(point)
        if found and chosen[-1] != found[-1]:
            chosen.append(found[-1])
        return [{"t": at, "p": price} for at, price in chosen]
