"""Order books, now and at any moment that is held."""

from __future__ import annotations

from api.endpoints.base.endpoint import Endpoint
from api.endpoints.books.requests import BooksOf, OrderbookOf
from api.endpoints.books.resource import PAST_COST, Orderbook, OrderbookHistory, cost_of_book
from api.schemas import books as records_books
from api.schemas import records
from sql.queries import books

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        name="market_orderbook",
        path="/v1/markets/{id}/orderbook",
        resource=Orderbook,
        query=books.of_outcome,
        parameters=OrderbookOf,
        answers=records.Orderbook,
        cost=cost_of_book,
        cost_rule=f"1, or {PAST_COST} for each book of the past",
        errors=("not_found",),
        missing="The outcome has no order book right now",
        hint="The market may have ended, or not trade on the order book",
        tag="Prices",
        summary="The order book of an outcome",
        description="Whole and verified: no book is shown of a market that has ended, while it disagrees with the "
        "exchange's own best prices, or while the live feed is late. With `at`, the book of a past moment, and in "
        "`integrity` how far it can be relied on.",
    ),
    Endpoint(
        name="market_orderbook_history",
        path="/v1/markets/{id}/orderbook/history",
        resource=OrderbookHistory,
        parameters=BooksOf,
        answers=records_books.BookHistory,
        credits=PAST_COST,
        errors=("not_found",),
        missing="There is no such market",
        tag="Prices",
        summary="The order book of an outcome at even steps",
        description="From `from` on, an hour ago when left out, up to `to`: a day and 1,000 books at most. Moments "
        "before the first whole book that is held are left out.",
    ),
)
