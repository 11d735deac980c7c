"""Resources of the order book endpoints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from api.endpoints.base.credits import PAST_COST
from api.endpoints.base.resource import OutcomeResource
from api.endpoints.books.requests import MAX_SPAN_S, MAX_STEPS
from api.errors import Problem, invalid
from api.replay.past_books import PastBooks
from sql.queries import books

if TYPE_CHECKING:
    from typing import NoReturn

    from api.data.lookup import MarketRef
    from api.endpoints.books.requests import BookHistoryParameters, OrderbookParameters


WITHHELD = {  # why there is no live book, by the reason that books.withheld returns
    "ended": "The market has ended: `outcome_prices` of GET /v1/markets/{id} are the payouts or last prices",
    "doubted": "The book disagrees with the exchange's best prices and is being refetched: retry in a few seconds",
    "late": "The live feed is late: GET /v1/status/pipeline shows by how much",
}


def cost_of_book(given: OrderbookParameters) -> int:
    """Return the credits of a book: a past one has to be rebuilt."""
    return 1 if given.at is None else PAST_COST


class LiveResource(OutcomeResource):
    """A live row of an outcome; while it is not reliable, 404 with the reason as hint."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Return the row."""
        return self.live(*self.outcome(given, path))

    def live(self, market: MarketRef, outcome: int) -> bytes:
        """Return the row; if there is none, raise `not_found` with the reason."""
        text = self.read(market_key=market.key, outcome=outcome)
        if text is None:
            why = self.read(books.withheld, market_key=market.key, outcome=outcome)
            return self.required(None, WITHHELD.get(why))
        return self.required(text)


class OrderbookResource(LiveResource):
    """The order book of an outcome, only while it agrees with the exchange's best prices."""

    def answer(self, given: OrderbookParameters, **path: str) -> bytes:
        """Return the live book, or the book at the requested moment."""
        market, outcome = self.outcome(given, path)
        if given.at is not None:
            past = self.service.expired_books.reader(market, outcome, given.at, given.at)
            book = PastBooks(past or self.read, market, outcome).book(given.at)
            if book is None:
                self.none_yet(market, outcome, whole=past is None)
            return msgspec.json.encode(book)
        return self.live(market, outcome)

    def none_yet(self, market: MarketRef, outcome: int, *, whole: bool) -> NoReturn:
        """Raise `not_found`, with the time of the first stored book as hint, if the database has all that there are."""
        first: datetime | None = None
        if whole:
            first = self.read(books.first_event, market_key=market.key, outcome=outcome)
        hint = None if first is None else f"Books of this outcome are stored from {first:%Y-%m-%dT%H:%M:%S.%fZ} on"
        raise Problem("not_found", "No order book is stored for that moment", hint=hint)


class OrderbookHistory(OutcomeResource):
    """The order book of an outcome at even steps."""

    def answer(self, given: BookHistoryParameters, **path: str) -> bytes:
        """Return the books of the range."""
        market, outcome = self.outcome(given, path)
        until = given.to or datetime.now(UTC)
        since = given.from_ or until - timedelta(hours=1)
        span_s = (until - since).total_seconds()
        if span_s < 0:
            raise invalid("from", "is after `to`", "a moment before `to`")
        if span_s > MAX_SPAN_S:
            raise invalid("from", "is more than a day before `to`", "a moment within the day before `to`")
        if span_s / given.step >= MAX_STEPS:
            raise invalid("step", f"gives more than {MAX_STEPS} books", f"{int(span_s / MAX_STEPS) + 1} or more")
        rows = self.service.expired_books.reader(market, outcome, since, until) or self.read
        return msgspec.json.encode(
            PastBooks(rows, market, outcome).history(since, until, step_s=given.step, depth=given.depth)
        )
