"""What is held from when to when, and what is missing."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from api.data import cursor
from api.endpoints.base.resource import Reading
from api.schemas.requests import EARLIEST, LATEST
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.endpoints.coverage.requests import GapsWithin

BEHIND_ALL = 1 << 62  # no gap has such a number
SUMMARY_S = 10.0


class Filter(msgspec.Struct, frozen=True):
    """What a walk of the gaps was asked for."""

    kind: str | None
    status: str | None
    since: float
    until: float


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a walk of the gaps stands: it goes back in time, and what is noted meanwhile lies behind it or is new."""

    filter: bytes
    ts: datetime = LATEST
    place: int = BEHIND_ALL


class Coverage(Reading):
    """Every kind of data, and every gap."""

    def answer(self, given: GapsWithin, **path: str) -> bytes:
        """Give the kinds, the days counted, and a page of gaps."""
        summary, _ = self.service.cache.get(("coverage", "summary"), SUMMARY_S, lambda: (self.summary(), ""))
        return b"{" + summary + b"," + self.page(given, queries.gaps) + b"}"

    def summary(self) -> bytes:
        """Give what does not depend on the page."""
        kinds, days = self.read(queries.kinds), self.read(queries.days)
        return f'"kinds":{kinds},"days":{days}'.encode()

    def page(self, given: GapsWithin, query: Callable[..., Any], **of: Any) -> bytes:
        """Give a page of gaps, and where the next one begins."""
        since, until = given.from_ or EARLIEST, given.to or LATEST
        meant = cursor.digest(Filter(given.kind, given.status, since.timestamp(), until.timestamp()))
        place = Place(meant) if given.cursor is None else self.service.cursors.read(given.cursor, Place)
        if place.filter != meant:
            raise cursor.invalid("It belongs to a list with another filter")
        rows = self.rows(
            query,
            kind=given.kind,
            status=given.status,
            since=since,
            until=until,
            before_ts=place.ts,
            before_place=place.place,
            limit=given.limit + 1,
            **of,
        )
        shown, tail = rows[: given.limit], ""
        if len(rows) > given.limit:
            tail = self.service.cursors.write(Place(meant, *shown[-1][:2]))
        data = ",".join(record for _, _, record in shown)
        more = "true" if tail else "false"
        return f'"data":[{data}],"count":{len(shown)},"next_cursor":"{tail}","has_more":{more}'.encode()


class MarketCoverage(Coverage):
    """The same of one market."""

    def answer(self, given: GapsWithin, **path: str) -> bytes:
        """Give what is held of it, the days counted, and a page of its gaps."""
        market = self.service.markets.of(path["id"])
        kinds = self.read(queries.kinds_of_market, market_key=market.key)
        days = self.read(queries.days_of_market, market_key=market.key)
        held = f'{{"market_id":"{market.market_id}","kinds":{kinds},"days":{days},'.encode()
        return held + self.page(given, queries.gaps_of_market, market_key=market.key) + b"}"
