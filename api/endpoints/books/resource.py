"""Order books."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from api.endpoints.base.resource import AboutOutcome
from api.endpoints.books.requests import LONGEST_S, MOST_STEPS
from api.errors import Problem, invalid
from api.replay.past_books import Past
from sql.queries import books

if TYPE_CHECKING:
    from typing import NoReturn

    from api.data.lookup import Market
    from api.endpoints.books.requests import BooksOf, OrderbookOf
    from api.schemas.requests import Connect

PAST_COST = 5
WITHHELD = {  # why nothing is live, as books.withheld has it
    "ended": "The market has ended: `outcome_prices` of GET /v1/markets/{id} say what it pays, or last cost",
    "doubted": "The book disagrees with the exchange's best prices and is being fetched again: try in a few seconds",
    "late": "The live feed is late: GET /v1/status/pipeline says by how much",
}


def cost_of_book(given: OrderbookOf) -> int:
    """Give the credits of a book: one of the past has to be built."""
    return 1 if given.at is None else PAST_COST


def cost_of_stream(given: Connect) -> int:
    """Give the credits of a stream: one that plays the past reads as much as a book of the past, at least."""
    return 1 if given.replay_from is None else PAST_COST


class Live(AboutOutcome):
    """What is live of an outcome: told while it can be relied on, and otherwise with the reason why not."""

    def answer(self, given: Any, **path: str) -> bytes:
        """Give the row."""
        return self.live(*self.outcome(given, path))

    def live(self, market: Market, outcome: int) -> bytes:
        """Give the row, or say why there is none."""
        text = self.read(market_key=market.key, outcome=outcome)
        if text is None:
            why = self.read(books.withheld, market_key=market.key, outcome=outcome)
            return self.found(None, WITHHELD.get(why))
        return self.found(text)


class Orderbook(Live):
    """The order book of an outcome: one that agrees with the exchange, or none."""

    def answer(self, given: OrderbookOf, **path: str) -> bytes:
        """Give the book."""
        market, outcome = self.outcome(given, path)
        if given.at is not None:
            book = Past(self.rows, market, outcome).book(given.at)
            if book is None:
                self.none_yet(market, outcome)
            return msgspec.json.encode(book)
        return self.live(market, outcome)

    def none_yet(self, market: Market, outcome: int) -> NoReturn:
        """Say from when on there are books."""
        first: datetime | None = self.read(books.first_event, market_key=market.key, outcome=outcome)
        hint = None if first is None else f"Books of this outcome are held from {first:%Y-%m-%dT%H:%M:%S.%fZ} on"
        raise Problem("not_found", "No order book of that moment is held", hint=hint)


class OrderbookHistory(AboutOutcome):
    """The order book of an outcome, step by step."""

    def answer(self, given: BooksOf, **path: str) -> bytes:
        """Give the books."""
        market, outcome = self.outcome(given, path)
        until = given.to or datetime.now(UTC)
        since = given.from_ or until - timedelta(hours=1)
        span_s = (until - since).total_seconds()
        if span_s < 0:
            raise invalid("from", "lies behind `to`", "a moment before `to`")
        if span_s > LONGEST_S:
            raise invalid("from", "lies more than a day before `to`", "a moment within the day before `to`")
        if span_s / given.step >= MOST_STEPS:
            raise invalid("step", f"makes more than {MOST_STEPS} books", f"{int(span_s / MOST_STEPS) + 1} and more")
        return msgspec.json.encode(
            Past(self.rows, market, outcome).history(since, until, step_s=given.step, depth=given.depth)
        )
