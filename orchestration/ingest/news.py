"""Markets that the exchange announces or settles: asked for at once, so that they are followed within seconds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestration.ingest.exchange import Exchange
from orchestration.markets import catalogue
from sql import database
from upstream.polymarket.market_channel.socket import NewMarket, Resolved
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from psycopg import Connection

RETRY_S = (1.0, 3.0, 10.0, 30.0)  # the catalogue may know it a little later than the socket; then discovery sees to it


class News:
    """Fetches announced markets and stores them; every call blocks."""

    def __init__(self, url: str, exchange: Exchange) -> None:
        self._url = url
        self._exchange = exchange
        self._conn: Connection[Any] | None = None
        self._waiting: dict[str, tuple[float, int, str]] = {}  # market → when to ask, how often it was asked for, why

    def hear(self, messages: Sequence[NewMarket | Resolved], now: float) -> None:
        """Take note of what was announced."""
        for message in messages:
            cause = "market_resolved" if isinstance(message, Resolved) else "new_market"
            self._waiting[message.market] = (now, 0, cause)

    def forget(self, before: float) -> None:
        """Forget what was announced before a time: somebody else has dealt with it."""
        for market in [market for market, (at, _, _) in self._waiting.items() if at < before]:
            del self._waiting[market]

    def due(self, now: float) -> bool:
        """Whether something is to be asked for."""
        return any(at <= now for at, _, _ in self._waiting.values())

    def settle(self, now: float) -> int:
        """Ask for what is due; return how many markets were stored or changed."""
        due = {market: waiting for market, waiting in self._waiting.items() if waiting[0] <= now}
        changed = 0
        for cause in {cause for _, _, cause in due.values()}:
            markets = [market for market, (_, _, why) in due.items() if why == cause]
            changed += self._fetch(markets, cause)
        for market, (_, asked, cause) in due.items():
            if market in self._waiting and asked < len(RETRY_S):
                self._waiting[market] = (now + RETRY_S[asked], asked + 1, cause)
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
        """Let go of the connection."""
        if self._conn is not None:
            self._conn.close()
