"""Lists of markets, each in an order of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from api.endpoints.base.lists import Computed, Listing, array, listed
from api.endpoints.base.resource import Reading
from api.endpoints.prices.resource import several
from api.errors import Problem
from sql.queries import rankings, taxonomy

if TYPE_CHECKING:
    from api.endpoints.markets.requests import ByTimeframe, Compared, Most, OfCategory, OfEvent, SearchFor, Top

TOP = {
    ("volume", "1h"): rankings.by_volume_1h,
    ("volume", "24h"): rankings.by_volume_24h,
    ("volume", "7d"): rankings.by_volume_7d,
    ("trades", "1h"): rankings.by_trades_1h,
    ("trades", "24h"): rankings.by_trades_24h,
    ("trades", "7d"): rankings.by_trades_7d,
}
BY_SORT = {
    ("event_id", "resolution"): taxonomy.event_by_resolution,
    ("event_id", "created"): taxonomy.event_by_created,
    ("category", "resolution"): taxonomy.category_by_resolution,
    ("category", "created"): taxonomy.category_by_created,
}
MOST_COMPARED = 10
BUSIEST, NEWEST = 4000, 2000  # markets whose titles are read one by one
MOST_TITLED = 1000  # titles sorted for one search
INDEXED = re.compile(r"\w{3}")  # shorter text is in no trigram


class WithinTime(Listing):
    """A list that says how far it looks ahead."""

    repeats = ("within",)


class InHours(Listing):
    """A list that says how far it looks back."""

    repeats = ("hours",)


class Standing(Reading):
    """The head of a ranking that is computed every so often."""

    def answer(self, given: Most, **path: str) -> bytes:
        """Give it, and say when that was."""
        computed_at, records = self.read(limit=given.limit)
        return listed([(record,) for record in records], computed_at=computed_at)


class Busiest(Computed):
    """Markets by what was traded in a period."""

    def latest(self, given: Top) -> tuple[int | None, list[str]]:
        """Ask by what is meant."""
        found: tuple[int | None, list[str]] = self.read(TOP[given.by, given.period], limit=given.limit)
        return found


class Timed(Reading):
    """Markets by the time left to them."""

    def answer(self, given: ByTimeframe, **path: str) -> bytes:
        """Give the seven timeframes."""
        asked: dict[str, Any] = {"status": given.status, "limit": given.limit}
        if given.asset is None:
            return self.found(self.read(**asked))
        return self.found(self.read(rankings.by_timeframe_of, pattern=containing(given.asset), **asked))


class SideBySide(Reading):
    """A few markets with their last 24 hours."""

    def answer(self, given: Compared, **path: str) -> bytes:
        """Give those that there are."""
        keys = []
        for name in several(given.ids, MOST_COMPARED):
            try:
                keys.append(self.service.markets.of(name).key)
            except Problem as problem:
                if problem.problem != "not_found":
                    raise
        return listed(self.rows(rankings.compared, market_keys=list(dict.fromkeys(keys))))


class Search(Reading):
    """Markets whose title contains something, most traded first."""

    def answer(self, given: SearchFor, **path: str) -> bytes:
        """Give an array."""
        return array(record for _, record in search(self, given.q, given.limit, given.status, given.exchange))


class Belonging(Reading):
    """Markets of one event or category."""

    of = ""

    def answer(self, given: OfEvent | OfCategory, **path: str) -> bytes:
        """Give them, or say that there is no such thing."""
        name = next(iter(path.values()))
        asked = msgspec.structs.asdict(given)
        rows = self.rows(BY_SORT[self.of, asked.pop("sort")], name=name, **asked) if "\0" not in name else []
        if not rows and ("\0" in name or not self.read(name=name)):
            raise Problem("not_found", self.endpoint.missing, hint=self.endpoint.hint or None)
        return listed(rows, **{self.of: name})


class EventMarkets(Belonging):
    """Markets of one event."""

    of = "event_id"


class CategoryMarkets(Belonging):
    """Markets of one category."""

    of = "category"


def search(
    reading: Reading, text: str, limit: int, status: str | None = None, exchange: str = "polymarket"
) -> list[tuple[Any, ...]]:
    """Give markets whose title contains a text, most traded first.

    What many titles contain is found among the busiest markets. What few contain is found by the trigrams' index, or
    among the newest when it is too short for that.
    """
    asked = {"pattern": containing(text), "status": status, "exchange": exchange, "limit": limit}
    found = reading.rows(rankings.titled_busy, most=BUSIEST, **asked)
    if len(found) < limit:
        query, most = (rankings.titled, MOST_TITLED) if INDEXED.search(text) else (rankings.titled_new, NEWEST)
        met = {key for key, _ in found}
        found += [row for row in reading.rows(query, most=most, **asked) if row[0] not in met]
    return found[:limit]


def containing(text: str) -> str:
    r"""Give the pattern of what contains a text, in which % and _ mean themselves.

    >>> containing("100%_sure")
    '%100\\%\\_sure%'
    """
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"
