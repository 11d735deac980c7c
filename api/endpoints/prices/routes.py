"""Routes of prices and candles."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.books.resource import Live
from api.endpoints.prices.resource import UNKNOWN_IDS, Bars, History, Prices, cost_of_rows, cost_of_several
from api.schemas import records
from api.schemas.requests import CandlesOf, HistoryOf, Ids, OfOutcome
from sql.queries import prices

NO_MARKET = "There is no such market"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_price",
        path="/v1/markets/{id}/price",
        resource=Live,
        query=prices.of_outcome,
        parameters=OfOutcome,
        answers=records.Price,
        errors=("not_found",),
        missing="The outcome has no live price",
        hint="The market may not be actively traded",
        tag="Prices",
        summary="What an outcome costs right now",
        description="While it can be relied on: the market is active, its book agrees with the exchange's best prices, "
        "and the live feed is alive. Otherwise 404, and `hint` says why. A quiet market keeps its price, however old.",
    ),
    Endpoint(
        name="prices",
        path="/v1/prices",
        resource=Prices,
        query=prices.of_ids,
        parameters=Ids,
        answers=dict[str, records.Price | None],
        cost=cost_of_several,
        cost_rule="1 for each started 25 ids",
        headers=UNKNOWN_IDS,
        tag="Prices",
        summary="What several markets cost right now",
        description="By the id each was asked by; null where there is no live price (see `/v1/markets/{id}/price`). "
        "Ids that name no market are null too, and named in `X-Unknown-Ids`. Prices are of the first outcome.",
    ),
    Endpoint(
        name="market_price_history",
        path="/v1/markets/{id}/price-history",
        resource=History,
        parameters=HistoryOf,
        answers=list[records.Candle],
        cost=cost_of_rows,
        cost_rule="1 for each started 1,000 of `limit`",
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Prices",
        summary="Candles of an outcome, oldest first",
        description="The newest `limit` candles that begin from `from` on and before `to`.",
    ),
    Endpoint(
        name="market_candles",
        path="/v1/markets/{id}/candles",
        resource=Bars,
        parameters=CandlesOf,
        answers=records.Bars,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Prices",
        summary="Candles as charting libraries take them",
        description="The column format of a UDF data feed. Without `from`, the last 500 bars' time is looked at.",
    ),
)
