"""Coverage: stored data by kind and time, and its gaps."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from api.data import cursor
from api.endpoints.base.resource import ReadResource
from api.schemas.requests import EARLIEST, LATEST
from config.exchanges import POLYMARKET, RECORDED
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.endpoints.coverage.requests import GapParameters

BEHIND_ALL = 1 << 62  # greater than any gap's number
SUMMARY_S = 10.0


class GapFilter(msgspec.Struct, frozen=True):
    """The filter of a paginated gap list."""

    kind: str | None
    status: str | None
    since: float
    until: float


class GapCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in the gap list, which goes back in time, so that gaps added meanwhile do not shift pages."""

    filter: bytes
    ts: datetime = LATEST
    place: int = BEHIND_ALL


class CoverageResource(ReadResource):
    """Coverage of every kind of data, with all gaps."""

    def answer(self, given: GapParameters, **path: str) -> bytes:
        """Return the kinds, the reconciled days and a page of gaps."""
        summary, _ = self.service.cache.get(("coverage", "summary"), SUMMARY_S, lambda: (self.summary(), ""))
        return b"{" + summary + b"," + self.page(given, queries.gaps, exchange=POLYMARKET.name) + b"}"

    def summary(self) -> bytes:
        """Return the part that does not depend on the page."""
        kinds, days = self.read(queries.kinds, exchange=POLYMARKET.name), self.read(queries.days)
        return f'"kinds":{kinds},"days":{days}'.encode()

    def page(self, given: GapParameters, query: Callable[..., Any], **of: Any) -> bytes:
        """Return a page of gaps and the cursor of the next page."""
        since, until = given.from_ or EARLIEST, given.to or LATEST
        meant = cursor.digest(GapFilter(given.kind, given.status, since.timestamp(), until.timestamp()))
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


class MarketCoverageResource(CoverageResource):
    """Coverage of one market."""

    def answer(self, given: GapParameters, **path: str) -> bytes:
        """Return the market's kinds, reconciled days and a page of its gaps."""
        market = self.service.markets.of(path["id"])
        of = {"market_key": market.key, "recorded": RECORDED}
        kinds, days = self.read(queries.kinds_of_market, **of), self.read(queries.days_of_market, **of)
        held = f'{{"market_id":"{market.market_id}","kinds":{kinds},"days":{days},'.encode()
        return held + self.page(given, queries.gaps_of_market, **of) + b"}"
