"""The paginated list of markets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.data import cursor
from api.endpoints.base.resource import ReadResource
from api.endpoints.markets import from_exchange as exchange
from api.errors import invalid
from sql.queries import markets as queries

if TYPE_CHECKING:
    from api.endpoints.markets.requests import MarketParameters

FILTERS = ("status", "category", "tag", "series", "exchange")
ABOVE_ALL = 1 << 40  # greater than any market_key
# At most so many ranked markets are sorted, in 20 ms. More are found by walking the ranking, which usually ends early
# and takes 40 ms at most if 200,000 markets are in it.
FEW = 2000


class MarketCursor(msgspec.Struct, frozen=True, array_like=True):
    """A position in the list: first in one immutable ranking, then among the markets that are not in it."""

    filter: bytes
    generation: int
    rank: int = 0
    before: int | None = None  # a market_key, once the ranked markets are exhausted


class Markets(ReadResource):
    """Markets by recent activity, then the rest, newest first."""

    def answer(self, given: MarketParameters, **path: str) -> bytes:
        """Return one page."""
        if given.source == "polymarket":
            if given.exchange != "polymarket":
                raise invalid(
                    "exchange", "`source=polymarket` has its own markets alone", "polymarket, or `source=local`"
                )
            return exchange.markets(self, given)
        rows, following = self._page(given, self._place(given))
        tail = self.service.cursors.write(following) if following else ""
        data = ",".join(rows)
        return f'{{"data":[{data}],"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'.encode()

    def _place(self, given: MarketParameters) -> MarketCursor:
        meant = cursor.digest(msgspec.structs.replace(given, limit=50, offset=0, cursor=None))
        if given.cursor is None:
            return MarketCursor(meant, self.read(queries.generation) or 0)
        if given.offset:
            raise cursor.invalid("A cursor and an offset cannot be combined")
        place = self.service.cursors.read(given.cursor, MarketCursor)
        if place.filter != meant:
            raise cursor.invalid("It belongs to a list with a different filter")
        return place

    def _page(self, given: MarketParameters, place: MarketCursor) -> tuple[list[str], MarketCursor | None]:
        """Return a page's rows and the position of the next page, if there is one."""
        wanted, skipped = given.limit, given.offset
        chosen = {name: value for name in FILTERS if (value := getattr(given, name)) is not None}
        filters = {"kinds": list(chosen), "names": list(chosen.values())}
        rows: list[str] = []
        if place.before is None:
            # Counted first: what the offset skips as a whole, of a ranking or all of it, need not be walked.
            total, after, passed = None, place.rank, 0
            if skipped:
                total, after, passed = self.read(
                    queries.skip_ranked, generation=place.generation, offset=skipped, **filters
                )
            if total is None or total > skipped:
                ranked = self.read(
                    queries.ranked,
                    generation=place.generation,
                    after=after,
                    limit=wanted + 1,
                    offset=skipped - passed,
                    few=FEW,
                    **filters,
                )
                rows = [record for _, record in ranked[:wanted]]
                if len(ranked) > wanted:
                    return rows, msgspec.structs.replace(place, rank=ranked[wanted - 1][0])
            skipped -= min(skipped, total or 0)  # the part of the offset that the ranked markets did not use
            place = msgspec.structs.replace(place, before=ABOVE_ALL)
        unranked = self.read(
            queries.unranked,
            generation=place.generation,
            before=place.before,
            limit=wanted - len(rows) + 1,
            offset=skipped,
            **filters,
        )
        # Checked last: if the ranking was dropped meanwhile, markets were missed or returned twice as unranked.
        if place.generation and not self.read(queries.generation_kept, generation=place.generation):
            raise cursor.invalid("It is too old: its ranking is no longer stored")
        if len(unranked) <= wanted - len(rows):
            return rows + [record for _, record in unranked], None
        shown = unranked[: wanted - len(rows)]
        last = shown[-1][0] if shown else place.before
        return rows + [record for _, record in shown], msgspec.structs.replace(place, before=last)
