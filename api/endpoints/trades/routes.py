"""Routes of trades."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.trades.records import RecentTrade
from api.endpoints.trades.requests import Recent
from api.endpoints.trades.resource import RecentTrades, Trades, cost_of_trades
from api.schemas import records
from api.schemas.requests import TradesOf
from sql.queries import trades

NO_MARKET = "There is no such market"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_trades",
        path="/v1/markets/{id}/trades",
        resource=Trades,
        query=trades.of_outcome,
        parameters=TradesOf,
        answers=list[records.Trade],
        cost=cost_of_trades,
        cost_rule="1 for each started 1,000 of `limit`; with `source=data-api` 2 at least",
        errors=("not_found", "upstream_unavailable"),
        missing=NO_MARKET,
        tag="Trades",
        summary="Trades of an outcome or of all, newest first",
        description="`outcome=all` gives those of all outcomes, as `wallet` does unless an outcome is named. The "
        "newest `limit` trades from `from` on and before `to`: to go on, ask again with `to` set to the oldest `ts`.",
    ),
    Endpoint(
        name="recent_trades",
        path="/v1/trades/recent",
        resource=RecentTrades,
        query=trades.recent,
        parameters=Recent,
        answers=list[RecentTrade],
        errors=("not_found",),
        missing=NO_MARKET,
        cache_s=0.25,
        tag="Trades",
        summary="The newest trades of all markets, with their wallets",
        description="Wallets are empty as long as no settlement on the chain tells them.",
    ),
)
