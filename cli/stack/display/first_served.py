"""Polls the API like a client until it has served a first market and a first price."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from cli.stack.readiness import fetch

if TYPE_CHECKING:
    from collections.abc import Callable


class FirstServed(threading.Thread):
    """Measures the seconds from `began` until the API first served a market of an exchange, and a price."""

    def __init__(self, api: str, key: Callable[[], str | None], began: float, exchange: str) -> None:
        super().__init__(daemon=True, name=f"first served of {exchange}")
        self.api = api
        self.key = key
        self.began = began
        self.exchange = exchange
        self.market_s: float | None = None
        self.price_s: float | None = None
        self._cursor: str | None = None
        self._stopping = threading.Event()

    def run(self) -> None:
        """Poll a few times a second, page by page, because not every market has a price."""
        while not self._stopping.wait(0.3) and self.price_s is None:
            key = self.key()
            ids = self._markets(key) if key else []
            if ids and self.market_s is None:
                self.market_s = time.monotonic() - self.began
            if key and ids and self._priced(key, ids):
                self.price_s = time.monotonic() - self.began

    def stop(self) -> None:
        """Stop polling."""
        self._stopping.set()

    def _markets(self, key: str) -> list[str]:
        after = f"&cursor={quote(self._cursor)}" if self._cursor else ""
        answer = fetch(f"{self.api}/v1/markets?exchange={self.exchange}&status=ACTIVE&limit=100{after}", key=key) or {}
        self._cursor = answer.get("next_cursor")
        return [market["market_id"] for market in answer.get("data", [])]

    def _priced(self, key: str, ids: list[str]) -> bool:
        answer: dict[str, dict[str, object] | None] = fetch(f"{self.api}/v1/prices?ids={','.join(ids)}", key=key) or {}
        return any(
            price and (price.get("mid") is not None or price.get("last") is not None) for price in answer.values()
        )
