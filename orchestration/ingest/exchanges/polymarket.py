"""Polymarket: its HTTP APIs, and the market channel."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from config.exchanges import POLYMARKET
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.plausible import MAX_PRICE, MAX_SIZE
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import Refusal, Token, TradeRow, value_usd
from upstream.polymarket import identity
from upstream.polymarket.clob.client import Clob
from upstream.polymarket.data_api.client import DataApi
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.market_channel.socket import MarketSocket
from upstream.transport.http import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from orchestration.ingest.exchanges.base import Connection, Keep, Missed
    from upstream.polymarket.book import Book
    from upstream.polymarket.data_api.client import DataApiTrade


class PolymarketClient(ExchangeClient):
    """Client by the addresses of Polymarket's APIs."""

    exchange = POLYMARKET

    def __init__(
        self, gamma_url: str, clob_url: str, socket_url: str, data_api_url: str, source: str = "exchange"
    ) -> None:
        super().__init__()
        self.gamma_url, self.clob_url, self.data_api_url = gamma_url, clob_url, data_api_url
        self._socket_url = socket_url
        self.source = source

    @property
    def socket_url(self) -> str:
        """Address of the market channel."""
        return self._socket_url

    def connect(
        self,
        assets: Iterable[str],
        *,
        number: int,  # noqa: ARG002 (its connections are alike)
        keep: Keep | None,
        on_missed: Callable[[Missed], None],  # noqa: ARG002 (its messages are not numbered)
        now_ms: Callable[[], int],  # noqa: ARG002 (its messages have times)
    ) -> Connection:
        """Return a connection to the market channel that is not open yet."""
        return MarketSocket(self._socket_url, assets, keep=keep)

    @cached_property
    def _client(self) -> Client:
        return Client(read_s=5.0, total_s=20.0, attempts=3)

    @cached_property
    def _clob(self) -> Clob:
        return Clob(self._client, self.clob_url, on_refused=self._refuse)

    @cached_property
    def _gamma(self) -> Gamma:
        return Gamma(self._client, self.gamma_url, on_refused=self._refuse)

    @cached_property
    def _data_api(self) -> DataApi:
        return DataApi(self._client, self.data_api_url, on_refused=self._refuse)

    def books(self, token_ids: Iterable[str]) -> list[Book]:
        """Fetch books; tokens without a book are absent."""
        return self._clob.books(token_ids)

    def markets(self, condition_ids: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Fetch markets, and the events they belong to, as rows."""
        markets = self._gamma.markets_by_condition(condition_ids)
        events = [event for market in markets if (event := market.event_row())]
        return [market.row(self.source) for market in markets], events

    def listed(self, markets: Collection[str], from_ms: int, to_ms: int) -> list[DataApiTrade]:
        """List settled trades of some markets (none: all) between two instants, newest first.

        Their timestamps are whole seconds, so the first and last second are fetched whole.
        """
        return list(self._data_api.trades(markets, _second(from_ms), _second(to_ms + 999)))

    def rows(self, tokens: dict[str, Token], listed: Sequence[DataApiTrade]) -> list[TradeRow]:
        """Convert listed trades of some tokens to rows, oldest first."""
        rows: list[TradeRow] = []
        for nth, trade in enumerate(reversed(listed)):
            token = tokens.get(trade.token_id)
            ts_ms = int(trade.ts.timestamp()) * 1000
            if token is None:
                continue
            if not (0 < trade.price <= MAX_PRICE and 0 < trade.size <= MAX_SIZE):
                self.refusals.append(Refusal("data_api", f"impossible {trade.price} x {trade.size}", repr(trade)))
                continue
            price, size = trade.price, trade.size
            trade_id = identity.trade_id(trade.token_id, trade.tx_hash, ts_ms, trade.side, price, size, trade.n)
            value, tx_hash = value_usd(price, size), ids.transaction(trade.tx_hash)
            rows.append(TradeRow(token, ts_ms, trade_id, ids.seq(ts_ms, nth), trade.side, price, size, value, tx_hash))
        return rows

    def close(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            self._client.close()


def _second(ms: int) -> datetime:
    return datetime.fromtimestamp(ms // 1000, UTC)
