"""Routes of the trade endpoints."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.trades.records import RecentTrade
from api.endpoints.trades.requests import RecentTradeParameters, TradeParameters
from api.endpoints.trades.resource import RecentTrades, Trades, cost_of_trades
from api.schemas import records
from sql.queries import trades

NO_MARKET = "The market does not exist"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_trades",
        path="/v1/markets/{id}/trades",
        resource=Trades,
        query=trades.of_outcome,
        parameters=TradeParameters,
        answers=list[records.Trade],
        cost=cost_of_trades,
        cost_rule="1 for each started 1,000 of `limit`; with `source=data-api` 2 at least",
        errors=("not_found", "upstream_unavailable"),
        missing=NO_MARKET,
        tag="Trades",
        summary="Trades of one or all outcomes, newest first",
        description="`outcome=all` returns trades of all outcomes, and so does `wallet` unless an outcome is given. "
        "The "
        "newest `limit` trades from `from` on and before `to`. For the next page, set `to` to the oldest `ts`.",
    ),
    Endpoint(
        name="recent_trades",
        path="/v1/trades/recent",
        resource=RecentTrades,
        query=trades.recent,
        parameters=RecentTradeParameters,
        answers=list[RecentTrade],
        errors=("not_found",),
        missing=NO_MARKET,
        cache_s=0.25,
        tag="Trades",
        summary="Newest trades of all markets, with their wallets",
        description="Wallets are empty until the trade is settled on the chain.",
    ),
)
