"""Routes of the order book endpoints."""

from __future__ import annotations

from api.endpoints.base.credits import PAST_COST
from api.endpoints.base.endpoint import Endpoint
from api.endpoints.books.requests import BookHistoryParameters, OrderbookParameters
from api.endpoints.books.resource import OrderbookHistory, OrderbookResource, cost_of_book
from api.schemas import records
from api.schemas.books import BookHistory
from sql.queries import books

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_orderbook",
        path="/v1/markets/{id}/orderbook",
        resource=OrderbookResource,
        query=books.of_outcome,
        parameters=OrderbookParameters,
        answers=records.Orderbook,
        cost=cost_of_book,
        cost_rule=f"1, or {PAST_COST} for each book of the past",
        errors=("not_found",),
        missing="The outcome has no live order book",
        hint="The market may have ended, or may not trade on the order book",
        tag="Prices",
        summary="Order book of an outcome",
        description="Complete and verified: there is no book for a market that has ended, while it disagrees with the "
        "exchange's own best prices, or while the live feed is late. With `at`, the book at a past moment; "
        "`integrity` says how reliable it is.",
    ),
    Endpoint(
        name="market_orderbook_history",
        path="/v1/markets/{id}/orderbook/history",
        resource=OrderbookHistory,
        parameters=BookHistoryParameters,
        answers=BookHistory,
        credits=PAST_COST,
        errors=("not_found",),
        missing="The market does not exist",
        tag="Prices",
        summary="Order book history of an outcome",
        description="Books at even steps from `from` (default: an hour ago) to `to`; at most one day and 1,000 books. "
        "Moments before the first stored full book are omitted.",
    ),
)
