"""Coverage: stored data by kind and time, and its gaps."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from api.data import cursor
from api.endpoints.base.resource import ReadResource
from api.schemas.requests import EARLIEST, LATEST
from config.exchanges import DEFAULT
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.endpoints.coverage.requests import CoverageParameters, GapParameters

BEHIND_ALL = 1 << 62  # greater than any gap's number
SUMMARY_S = 10.0


class GapFilter(msgspec.Struct, frozen=True):
    """The filter of a paginated gap list."""

    kind: str | None
    status: str | None
    since: float
    until: float


class ExchangeGapFilter(GapFilter, frozen=True):
    """The same of another exchange than Polymarket, whose cursors stay as they were before there was one."""

    exchange: str


class GapCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in the gap list, which goes back in time, so that gaps added meanwhile do not shift pages."""

    filter: bytes
    ts: datetime = LATEST
    place: int = BEHIND_ALL


class GapPages(ReadResource):
    """Pages of gaps."""

    def page(self, given: GapParameters, query: Callable[..., Any], /, **of: Any) -> bytes:
        """Return a page of gaps and the cursor of the next page; `of` is for the query."""
        since, until = given.from_ or EARLIEST, given.to or LATEST
        filtered = given.kind, given.status, since.timestamp(), until.timestamp()
        exchange = of.get("exchange", DEFAULT.name)
        is_other = exchange != DEFAULT.name
        meant = cursor.digest(ExchangeGapFilter(*filtered, exchange) if is_other else GapFilter(*filtered))
        place = GapCursor(meant) if given.cursor is None else self.service.cursors.read(given.cursor, GapCursor)
        if place.filter != meant:
            raise cursor.invalid("It belongs to a list with a different filter")
        rows = self.read(
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
            tail = self.service.cursors.write(GapCursor(meant, *shown[-1][:2]))
        data = ",".join(record for _, _, record in shown)
        more = "true" if tail else "false"
        return f'"data":[{data}],"count":{len(shown)},"next_cursor":"{tail}","has_more":{more}'.encode()


class CoverageResource(GapPages):
    """Coverage of every kind of an exchange's data, with all gaps."""

    def answer(self, given: CoverageParameters, **path: str) -> bytes:
        """Return the kinds, the reconciled days and a page of gaps."""
        exchange = given.exchange
        key = "coverage", "summary", exchange
        summary, _ = self.service.cache.get(key, SUMMARY_S, lambda: (self.summary(exchange), ""))
        return b"{" + summary + b"," + self.page(given, queries.gaps, exchange=exchange) + b"}"

    def summary(self, exchange: str) -> bytes:
        """Return the part that does not depend on the page."""
        kinds, days = self.read(queries.kinds, exchange=exchange), self.read(queries.days, exchange=exchange)
        return f'"kinds":{kinds},"days":{days}'.encode()


class MarketCoverageResource(GapPages):
    """Coverage of one market."""

    def answer(self, given: GapParameters, **path: str) -> bytes:
        """Return the market's kinds, reconciled days and a page of its gaps."""
        market = self.service.markets.of(path["id"])
        of = {"market_key": market.key}
        kinds, days = self.read(queries.kinds_of_market, **of), self.read(queries.days_of_market, **of)
        held = f'{{"market_id":"{market.market_id}","kinds":{kinds},"days":{days},'.encode()
        return held + self.page(given, queries.gaps_of_market, **of) + b"}"
