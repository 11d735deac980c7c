"""Routes of the price and candle endpoints."""

from __future__ import annotations

from api.endpoints.base.credits import cost_of_rows
from api.endpoints.base.endpoint import Endpoint
from api.endpoints.books.resource import LiveResource
from api.endpoints.prices.requests import CandleParameters, PriceHistoryParameters, PriceParameters
from api.endpoints.prices.resource import UNKNOWN_IDS, CandleBars, PriceHistory, Prices, cost_of_several
from api.schemas import records
from api.schemas.requests import OutcomeParameters
from sql.queries import prices

NO_MARKET = "The market does not exist"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_price",
        path="/v1/markets/{id}/price",
        resource=LiveResource,
        query=prices.of_outcome,
        parameters=OutcomeParameters,
        answers=records.Price,
        errors=("not_found",),
        missing="The outcome has no live price",
        hint="The market may not be trading actively",
        tag="Prices",
        summary="Live price of an outcome",
        description="Returned only while reliable: the market is active, its book agrees with the exchange's best "
        "prices, "
        "and the live feed is alive. Otherwise 404, with the reason in `hint`. A quiet market keeps its price, "
        "however old.",
    ),
    Endpoint(
        name="prices",
        path="/v1/prices",
        resource=Prices,
        query=prices.of_ids,
        parameters=PriceParameters,
        answers=dict[str, records.Price | None],
        cost=cost_of_several,
        cost_rule="1 for each started 25 ids",
        headers=UNKNOWN_IDS,
        tag="Prices",
        summary="Live prices of several markets",
        description="Keyed by the requested id; null where there is no live price (see `/v1/markets/{id}/price`). "
        "Ids that match no market are also null, and listed in `X-Unknown-Ids`. Prices are of the first outcome.",
    ),
    Endpoint(
        name="market_price_history",
        path="/v1/markets/{id}/price-history",
        resource=PriceHistory,
        parameters=PriceHistoryParameters,
        answers=list[records.Candle],
        cost=cost_of_rows,
        cost_rule="1 for each started 1,000 of `limit`",
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Prices",
        summary="Candles of an outcome, oldest first",
        description="The newest `limit` candles that begin at or after `from` and before `to`.",
    ),
    Endpoint(
        name="market_candles",
        path="/v1/markets/{id}/candles",
        resource=CandleBars,
        parameters=CandleParameters,
        answers=records.Bars,
        errors=("not_found",),
        missing=NO_MARKET,
        tag="Prices",
        summary="Candles in UDF column format",
        description="The column format of a UDF data feed. Without `from`, the range is the width of 500 bars.",
    ),
)
