"""Resources of market lists: rankings, search, comparison, and markets of an event or category."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from api.endpoints.base.lists import ComputedList, CountedList, json_array, json_list
from api.endpoints.base.resource import ReadResource
from api.endpoints.prices.resource import several
from api.errors import Problem
from sql.queries import rankings, taxonomy

if TYPE_CHECKING:
    from api.endpoints.markets.requests import (
        CategoryMarketParameters,
        CompareParameters,
        EventMarketParameters,
        RankingParameters,
        SearchParameters,
        TimeframeParameters,
        TopParameters,
    )

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
MAX_COMPARED = 10
MAX_BUSIEST, MAX_NEWEST = 4000, 2000  # markets whose titles are scanned
MAX_TITLED = 1000  # titles sorted for one search
FEW = 12_000  # markets with a text are sorted by their end, rather than looked for among those that end first
INDEXED = re.compile(r"\w{3}")  # shorter text is in no trigram


class ResolvingMarkets(CountedList):
    """Markets that end soon, with the period in the response."""

    repeats = ("within",)


class RecentlyListedMarkets(CountedList):
    """Recently listed markets, with the period in the response."""

    repeats = ("hours",)


class Ranking(ReadResource):
    """The top of a periodically recomputed ranking."""

    def answer(self, given: RankingParameters, **path: str) -> bytes:
        """Return the ranking with the time it was computed."""
        computed_at, records = self.read(exchange=given.exchange, limit=given.limit)
        return json_list([(record,) for record in records], computed_at=computed_at)


class TopMarkets(ComputedList):
    """Markets by volume or trades in a period."""

    def latest(self, given: TopParameters) -> tuple[int | None, str]:
        """Read the ranking for the requested measure and period."""
        computed_at, records = self.read(TOP[given.by, given.period], exchange=given.exchange, limit=given.limit)
        return computed_at, ",".join(records)


class MarketsByTimeframe(ReadResource):
    """Markets by remaining time."""

    def answer(self, given: TimeframeParameters, **path: str) -> bytes:
        """Return the seven timeframes."""
        if given.status == "ACTIVE" and given.asset is None:
            return self.required(self.read(limit=given.limit, exchange=given.exchange))
        text = given.asset or ""
        asked = {"status": given.status, "exchange": given.exchange, "limit": given.limit, "few": FEW}
        by = {"pattern": containing(text), "indexed": bool(INDEXED.search(text))}
        return self.required(self.read(rankings.by_timeframe_of, **by, **asked))


class MarketComparison(ReadResource):
    """Several markets with their 24-hour statistics."""

    def answer(self, given: CompareParameters, **path: str) -> bytes:
        """Return the markets that exist."""
        keys = []
        for name in several(given.ids, MAX_COMPARED):
            try:
                keys.append(self.service.markets.of(name).key)
            except Problem as problem:
                if problem.problem != "not_found":
                    raise
        return json_list(self.read(rankings.compared, market_keys=list(dict.fromkeys(keys))))


class MarketSearch(ReadResource):
    """Markets whose title contains a text, most traded first."""

    def answer(self, given: SearchParameters, **path: str) -> bytes:
        """Return an array."""
        return json_array(record for _, record in search(self, given.q, given.limit, given.status, given.exchange))


class GroupMarkets(ReadResource):
    """Markets of one event or category."""

    of = ""

    def answer(self, given: EventMarketParameters | CategoryMarketParameters, **path: str) -> bytes:
        """Return the markets; raise `not_found` if the event or category does not exist."""
        name = next(iter(path.values()))
        asked = msgspec.structs.asdict(given)
        rows = self.read(BY_SORT[self.of, asked.pop("sort")], name=name, **asked) if "\0" not in name else []
        if not rows and ("\0" in name or not self.read(name=name)):
            raise Problem("not_found", self.endpoint.missing, hint=self.endpoint.hint or None)
        return json_list(rows, **{self.of: name})


class EventMarketsResource(GroupMarkets):
    """Markets of one event."""

    of = "event_id"


class CategoryMarketsResource(GroupMarkets):
    """Markets of one category."""

    of = "category"


def search(
    reading: ReadResource, text: str, limit: int, status: str | None = None, exchange: str = "polymarket"
) -> list[tuple[Any, ...]]:
    """Return markets whose title contains a text, most traded first, each with its key.

    Frequent texts are found by scanning the most traded markets, or the newest ones of a state; rare ones by the
    trigram index, unless the text is too short for it.
    """
    asked = {"pattern": containing(text), "limit": limit}
    filters = {"status": status, "exchange": exchange}
    named = {name: value for name, value in filters.items() if value is not None}
    busy = (rankings.titled_busy, {"most": MAX_BUSIEST, **filters})
    new = (rankings.titled_new, {"most": MAX_NEWEST, "kinds": list(named), "names": list(named.values())})
    by_index = (rankings.titled, {"most": MAX_TITLED, **filters})
    indexed = bool(INDEXED.search(text))
    steps: list[tuple[Any, dict[str, Any]]] = [
        *([busy] if status in (None, "ACTIVE") else []),  # few of the most traded ones have ended
        *([new] if status != "ACTIVE" or not indexed else []),
        *([by_index] if indexed else []),
    ]
    found: dict[int, tuple[Any, ...]] = {}
    for query, among in steps:
        found |= {row[0]: row for row in reading.read(query, **asked, **among)}
        if len(found) >= limit:
            break
    first = sorted(found.values(), key=lambda row: -1 if row[1] is None else row[1], reverse=True)
    return [(key, record) for key, _, record in first[:limit]]


def containing(text: str) -> str:
    r"""Return the LIKE pattern for a substring, with % and _ escaped.

    >>> containing("100%_sure")
    '%100\\%\\_sure%'
    """
    for special in ("\\", "%", "_"):
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"
