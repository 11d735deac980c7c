"""Markets, listed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.data import cursor
from api.endpoints.base.resource import Reading
from api.endpoints.exchange import resource as exchange
from sql.queries import markets as queries

if TYPE_CHECKING:
    from api.schemas.requests import MarketFilter

FILTERS = ("status", "category", "tag", "series", "exchange")
ABOVE_ALL = 1 << 40  # no market_key is so high


class Place(msgspec.Struct, frozen=True, array_like=True):
    """Where a walk of the list stands: in one ranking, which does not change, then among the markets not in it."""

    filter: bytes
    generation: int
    rank: int = 0
    before: int | None = None  # a market_key: the ranked ones are done


class Markets(Reading):
    """Markets by recent activity, then the rest, newest first."""

    def answer(self, given: MarketFilter, **path: str) -> bytes:
        """Give one page."""
        if given.source == "polymarket":
            return exchange.markets(self, given)
        rows, following = self._page(given, self._place(given))
        tail = self.service.cursors.write(following) if following else ""
        data = ",".join(rows)
        return f'{{"data":[{data}],"next_cursor":"{tail}","has_more":{"true" if tail else "false"}}}'.encode()

    def _place(self, given: MarketFilter) -> Place:
        meant = cursor.digest(msgspec.structs.replace(given, limit=50, offset=0, cursor=None))
        if given.cursor is None:
            return Place(meant, self.read(queries.generation) or 0)
        if given.offset:
            raise cursor.invalid("A cursor and an offset exclude each other")
        place = self.service.cursors.read(given.cursor, Place)
        if place.filter != meant:
            raise cursor.invalid("It belongs to a list with another filter")
        return place

    def _page(self, given: MarketFilter, place: Place) -> tuple[list[str], Place | None]:
        """Give a page's rows, and where the next begins if there is one."""
        wanted, skipped = given.limit, given.offset
        chosen = {name: getattr(given, name) for name in FILTERS}
        rows: list[str] = []
        if place.before is None:
            ranked = self.planned(
                queries.ranked,
                generation=place.generation,
                after=place.rank,
                limit=wanted + 1,
                offset=skipped,
                **chosen,
            )
            rows = [record for _, record in ranked[:wanted]]
            if len(ranked) > wanted:
                return rows, msgspec.structs.replace(place, rank=ranked[wanted - 1][0])
            if skipped:  # what the ranked ones did not use up of it
                skipped -= min(skipped, self.read(queries.count_ranked, generation=place.generation, **chosen))
            place = msgspec.structs.replace(place, before=ABOVE_ALL)
        unranked = self.planned(
            queries.unranked,
            generation=place.generation,
            before=place.before,
            limit=wanted - len(rows) + 1,
            offset=skipped,
            **chosen,
        )
        # Asked last: had the ranking been dropped before, markets would have been missed, or met twice as not ranked.
        if place.generation and not self.read(queries.generation_kept, generation=place.generation):
            raise cursor.invalid("It is too old: its ranking is no longer kept")
        if len(unranked) <= wanted - len(rows):
            return rows + [record for _, record in unranked], None
        shown = unranked[: wanted - len(rows)]
        last = shown[-1][0] if shown else place.before
        return rows + [record for _, record in shown], msgspec.structs.replace(place, before=last)
