"""Trades of a market or of all markets.

Generated from the OpenAPI document: do not edit; run `make client`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from presage_client import _endpoints
from presage_client._async_operations.base import AsyncBaseOperations

if TYPE_CHECKING:
    from presage_client import records
    from presage_client._record import Records
    from presage_client._transport import Instant


class AsyncTradesOperations(AsyncBaseOperations):
    """Trades of a market or of all markets."""

    async def market_trades(
        self,
        id: str,
        *,
        outcome: str | int | None = None,
        from_: Instant | None = None,
        to: Instant | None = None,
        limit: int | None = None,
        source: Literal["data-api", "local"] | None = None,
        wallet: str | None = None,
    ) -> Records[records.Trade]:
        """Trades of one or all outcomes, newest first.

        `outcome=all` returns trades of all outcomes, and so does `wallet` unless an outcome is given. The newest
        `limit` trades from `from` on and before `to`. For the next page, set `to` to the oldest `ts`.

        Credits: 1 for each started 1,000 of `limit`; with `source=data-api` 2 at least.

        Args:
            id: The market: its market_id, its slug, or the exchange's numeric id.
            outcome: The outcome: its index from 0, its name, or `all`. Default: 0, or `all` with `wallet`.
            from_: Only from this moment on: RFC 3339 or Unix milliseconds.
            to: Only before this moment: RFC 3339 or Unix milliseconds; default: now.
            limit: Maximum number of trades in the response. Default: 100. At most 5000.
            source: `local`: as recorded here; `data-api`: requested live from the exchange. Default: local.
            wallet: Only trades of this wallet; needs `source=data-api`.
        """
        return await self._call(
            _endpoints.MARKET_TRADES,
            {"id": id},
            {"outcome": outcome, "from": from_, "to": to, "limit": limit, "source": source, "wallet": wallet},
        )

    async def recent_trades(
        self,
        *,
        exchange: Literal["kalshi", "polymarket"] | None = None,
        limit: int | None = None,
        market_id: str | None = None,
        outcome: str | int | None = None,
    ) -> Records[records.RecentTrade]:
        """Newest trades of all markets, with their wallets.

        Wallets are empty until the trade is settled on the chain.

        Credits: 1.

        Args:
            exchange: The exchange that lists them. Default: polymarket.
            limit: Maximum number of trades in the response. Default: 50. At most 500.
            market_id: Only this market: its market_id, slug or numeric id.
            outcome: Only this outcome of the market `market_id`: its index from 0, its name, or `all`. Default:
                all.
        """
        return await self._call(
            _endpoints.RECENT_TRADES,
            {},
            {"exchange": exchange, "limit": limit, "market_id": market_id, "outcome": outcome},
        )
