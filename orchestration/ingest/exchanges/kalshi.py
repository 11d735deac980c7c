"""Kalshi: its REST API, which needs no key, and its WebSocket API, which does."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from config.exchanges import KALSHI
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.exchanges.kalshi_connection import KalshiConnection
from orchestration.ingest.plausible import MAX_SIZE
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import Refusal, Token, TradeRow, value_usd
from upstream.kalshi.fields import OUTCOMES, token_id
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.polymarket.book import Book
from upstream.transport.http import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from orchestration.ingest.exchanges.base import Connection, Keep, Missed
    from upstream.kalshi.signing import Signer
    from upstream.kalshi.trades import KalshiTrade

MARKETS_PER_SOCKET = 2_000
"""84,000 open markets need 42 connections: 200 are allowed, and the limit of one subscription is not published."""

CACHED_MS = 15_000
"""Answers of REST without a key may be so old."""
MAX_NAMED = 20
"""Markets whose trades are asked for one by one; of more, those of all markets are read."""


class KalshiListed(NamedTuple):
    """A trade of the exchange's list. Each is one of YES: of NO it is the other side, at 1 less the price."""

    trade: KalshiTrade

    @property
    def token_id(self) -> str:
        """YES's token."""
        return token_id(self.trade.ticker, 0)

    @property
    def market(self) -> str:
        """Its market's ticker."""
        return self.trade.ticker


class KalshiClient(ExchangeClient):
    """Client by the addresses of Kalshi's APIs; without a signer its connections say what is missing."""

    exchange = KALSHI
    assets_per_socket = MARKETS_PER_SOCKET * len(OUTCOMES)

    def __init__(self, rest_url: str, socket_url: str, signer: Signer | None, source: str = "exchange") -> None:
        super().__init__()
        self._rest_url, self._socket_url = rest_url, socket_url
        self._signer = signer
        self.source = source

    @property
    def socket_url(self) -> str:
        """Address of the WebSocket API."""
        return self._socket_url

    @cached_property
    def _client(self) -> Client:
        return Client(read_s=5.0, total_s=20.0, attempts=3)

    @cached_property
    def _kalshi(self) -> Kalshi:
        return Kalshi(self._client, self._rest_url, on_refused=self._refuse)

    @cached_property
    def _listings(self) -> KalshiListings:
        return KalshiListings(self._kalshi)

    def connect(
        self,
        assets: Iterable[str],
        *,
        number: int,
        keep: Keep | None,  # noqa: ARG002 (numbered messages have to be read in order)
        on_missed: Callable[[Missed], None],
        now_ms: Callable[[], int],
    ) -> Connection:
        """Return a connection that is not open yet; the first one of a run hears of new and settled markets, too."""
        return KalshiConnection(
            self._signer, self._socket_url, assets, news=number == 1, on_missed=on_missed, now_ms=now_ms
        )

    def books(self, token_ids: Iterable[str]) -> list[Book]:
        """Fetch books to find out whether a silent connection is dead, and not to begin a book with.

        They may be `CACHED_MS` old and have no time: they get that of the oldest answer.
        """
        ts_ms = int(time.time() * 1000) - CACHED_MS
        tickers = dict.fromkeys(each.rpartition(":")[0] for each in token_ids)
        return [
            Book(token_id(book.ticker, outcome), book.ticker, ts_ms, "", *book.outcome(outcome))
            for book in self._kalshi.books(tickers)
            for outcome in range(len(OUTCOMES))
        ]

    def markets(self, market_ids: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Fetch markets, and the events they belong to, as rows."""
        page = self._listings.named(list(market_ids))
        for refused in page.refused:
            self._refuse(refused)
        events = [event for listing in page.items if (event := listing.event_row())]
        return [listing.row(self.source) for listing in page.items], events

    def listed(self, markets: Collection[str], from_ms: int, to_ms: int) -> list[KalshiListed]:
        """List trades of some markets (none: all but combos) between two instants, newest first.

        The first and last second are listed whole.
        """
        from_ms, to_ms = from_ms // 1000 * 1000, to_ms // 1000 * 1000 + 999
        span = datetime.fromtimestamp(from_ms / 1000, UTC), datetime.fromtimestamp(to_ms / 1000, UTC)
        tickers = sorted(markets) if 0 < len(markets) <= MAX_NAMED else (None,)
        found = [
            KalshiListed(trade)
            for ticker in tickers
            for trade in self._kalshi.trades(ticker, *span)
            if from_ms <= trade.ts_ms <= to_ms and (not markets or trade.ticker in markets)
        ]
        return sorted(found, key=lambda listed: -listed.trade.ts_ms)

    def rows(self, tokens: dict[str, Token], listed: Sequence[KalshiListed]) -> list[TradeRow]:
        """Convert listed trades of some tokens to rows, oldest first."""
        rows: list[TradeRow] = []
        for nth, (trade,) in enumerate(reversed(listed)):
            token = tokens.get(token_id(trade.ticker, 0))
            if token is None:
                continue
            ts_ms, price, size = trade.ts_ms, trade.price, trade.size
            if not (price and size <= MAX_SIZE):
                self.refusals.append(Refusal("kalshi", f"impossible {price} x {size}", repr(trade)))
                continue
            number, value = ids.trade_id(trade.trade_id), value_usd(price, size)
            rows.append(TradeRow(token, ts_ms, number, ids.seq(ts_ms, nth), trade.side, price, size, value, None))
        return rows

    def is_paused(self) -> bool:
        """Ask whether no part of the exchange is trading, as for two hours on Thursdays."""
        return self._kalshi.status().is_paused()

    def close(self) -> None:
        """Close the connections of HTTP."""
        if "_client" in self.__dict__:
            self._client.close()
