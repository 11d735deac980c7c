"""ASGI middleware that keeps the exchange's published request limits: what exceeds one waits, and then is refused.

The exchange's CDN slows requests above a limit down before it answers 429. How long it lets them wait is not published.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from typing import TYPE_CHECKING

from upstream.sandbox.common.answers import answer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

WINDOW_S = 10.0
MAX_WAIT_S = 5.0
PUBLISHED = {
    "/gamma": 4_000,
    "/gamma/events": 500,
    "/gamma/markets": 300,
    "/gamma/tags": 200,
    "/gamma/public-search": 350,
    "/clob": 9_000,
    "/clob/book": 1_500,
    "/clob/price": 1_500,
    "/clob/midpoint": 1_500,
    "/clob/books": 500,
    "/clob/prices": 500,
    "/clob/midpoints": 500,
    "/clob/prices-history": 1_000,
    "/clob/tick-size": 200,
    "/data": 1_000,
    "/data/trades": 200,
    "/data/v2/trades": 200,
    "/data/positions": 150,
    "/data/closed-positions": 150,
}
"""Requests of one address in ten seconds, by path; those of a whole API hold for all of its paths."""


class RequestWindow:
    """The requests of one address under one limit: each is due a window after the one `limit` before it."""

    def __init__(self, limit: int) -> None:
        self._due_at: deque[float] = deque(maxlen=limit)

    def wait_s(self, now: float) -> float:
        """Return how long a request must wait now."""
        full = len(self._due_at) == self._due_at.maxlen
        return max(0.0, self._due_at[0] + WINDOW_S - now) if full else 0.0

    def take(self, at: float) -> None:
        """Count a request that is answered at an instant."""
        self._due_at.append(at)


class Throttle:
    """Delays and refuses requests by path and address."""

    def __init__(
        self, app: ASGIApp, limits: Mapping[str, int] = PUBLISHED, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app, self._limits, self._clock = app, limits, clock
        self._windows: dict[tuple[str, str], RequestWindow] = {}
        self.counts = Counter({"delayed": 0, "refused": 0})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait_s = self._wait_s(scope) if scope["type"] == "http" else 0.0
        if wait_s > MAX_WAIT_S:
            self.counts["refused"] += 1
            refusal = answer({"error": "Too Many Requests"}, 429, {"Retry-After": str(math.ceil(wait_s))})
            await refusal(scope, receive, send)
            return
        if wait_s:
            self.counts["delayed"] += 1
            await asyncio.sleep(wait_s)
        await self._app(scope, receive, send)

    def _wait_s(self, scope: Scope) -> float:
        """Return how long a request waits under all of its limits; it is counted unless that is too long."""
        path, address = scope["path"].rstrip("/"), (scope.get("client") or ("",))[0]
        service = "/" + path.split("/", 2)[1] if path else ""
        windows = [self._window(name, address) for name in dict.fromkeys((service, self._route(path)))]
        now = self._clock()
        wait_s = max((window.wait_s(now) for window in windows if window is not None), default=0.0)
        if wait_s <= MAX_WAIT_S:
            for window in windows:
                if window is not None:
                    window.take(now + wait_s)
        return wait_s

    def _route(self, path: str) -> str:
        """Return the most specific path with a limit that a path is below."""
        while path and path not in self._limits:
            path = path.rpartition("/")[0]
        return path

    def _window(self, name: str, address: str) -> RequestWindow | None:
        if name not in self._limits:
            return None
        return self._windows.setdefault((name, address), RequestWindow(self._limits[name]))
