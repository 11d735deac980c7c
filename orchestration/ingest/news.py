"""Announced and resolved markets, fetched at once so that they are followed within seconds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.markets import catalogue
from sql import database
from upstream.polymarket.market_channel.socket import NewMarket, Resolved
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from psycopg import Connection

RETRY_S = (1.0, 3.0, 10.0, 30.0)  # Gamma may list a market later than the socket; after these, discovery finds it


class MarketNews:
    """Fetches announced markets and stores them; every call blocks."""

    def __init__(self, url: str, exchange: ExchangeClient) -> None:
        self._url = url
        self._exchange = exchange
        self._conn: Connection[Any] | None = None
        self._waiting: dict[str, tuple[float, int, str]] = {}  # market → due time, attempts, cause

    def add(self, messages: Sequence[NewMarket | Resolved], now: float) -> None:
        """Queue announced markets."""
        for message in messages:
            cause = "market_resolved" if isinstance(message, Resolved) else "new_market"
            self._waiting[message.market] = (now, 0, cause)

    def forget(self, before: float) -> None:
        """Drop markets announced before a time: the leader has handled them."""
        for market in [market for market, (at, _, _) in self._waiting.items() if at < before]:
            del self._waiting[market]

    def due(self, now: float) -> bool:
        """Return whether any market is due."""
        return any(at <= now for at, _, _ in self._waiting.values())

    def settle(self, now: float) -> int:
        """Fetch due markets; return how many were stored or changed."""
        due = {market: waiting for market, waiting in self._waiting.items() if waiting[0] <= now}
        changed = 0
        for cause in {cause for _, _, cause in due.values()}:
            markets = [market for market, (_, _, why) in due.items() if why == cause]
            changed += self._fetch(markets, cause)
        for market, (_, attempts, cause) in due.items():
            if market in self._waiting and attempts < len(RETRY_S):
                self._waiting[market] = (now + RETRY_S[attempts], attempts + 1, cause)
            else:
                self._waiting.pop(market, None)
        return changed

    def _fetch(self, markets: list[str], cause: str) -> int:
        try:
            rows, events = self._exchange.markets(markets)
        except UpstreamError:
            return 0
        if self._conn is None or self._conn.closed:
            self._conn = database.connect(self._url, autocommit=True, name="presage feed: announced markets")
        stored = catalogue.store(self._conn, rows, cause=cause, events=events)
        for row in rows:
            if cause == "new_market" or row["status"] == "RESOLVED":
                self._waiting.pop(row["market_id"], None)
        return stored.inserted + stored.changed

    def close(self) -> None:
        """Close the connection."""
        if self._conn is not None:
            self._conn.close()
