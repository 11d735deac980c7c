"""What happened to some outcomes, in the order in which it happened, out of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from api.data.lookup import Market
from api.replay.past_books import Past, Sides
from sql.packs import Event, unpack
from sql.queries import books
from sql.queries import replays as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Rows = Callable[..., list[tuple[Any, ...]]]

FEW, MANY, MOST = 500, 4_000, 40_000  # happenings that are read at once: a reader keeps others waiting meanwhile
FIRST, SHORTEST, LONGEST = timedelta(seconds=10), timedelta(milliseconds=100), timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
MOST_PACKS = 200  # read at once, beside the one or two that each outcome has in any stretch
ALL = 1 << 40


class Place(NamedTuple):
    """An outcome, and what is known of its market now."""

    token_id: str
    market_id: str
    market_key: int
    outcome: int
    tick_size: int | None
    neg_risk: bool
    least_order: str | None


class Trade(NamedTuple):
    """A trade; the side is the taker's."""

    trade_id: int
    side: int
    price: int
    size: int
    value_usd: int
    tx_hash: bytes | None


class Tick(NamedTuple):
    """Prices became finer, or coarser."""

    before: int | None
    tick_size: int


class Happening(NamedTuple):
    """Something that happened to an outcome. Within one instant, `seq` is the order in which it came."""

    us: int
    seq: int
    place: Place
    what: Event | Trade | Tick


class Standing:
    """How an outcome stands, at the moment that a replay has come to."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.sides = Sides()
        self.whole = False  # there was a whole book
        self.seq = self.ms = 0  # of the last event in it
        self.hash: str | None = None
        self.tick_size = place.tick_size
        self.last: int | None = None
        self.last_ms: int | None = None
        self.told: tuple[int | None, int | None] | None = None  # the best prices that were told last

    def hear(self, event: Event) -> None:
        """Take in what happened to the book."""
        self.sides.hear(event)
        self.whole = self.whole or event.side is None
        self.seq, self.ms = event.seq, event.ts // 1000
        self.hash = event.hash.hex() if event.hash else None


class Course:
    """Reads what happened, a stretch of time after the other.

    `rows` runs a query and gives its rows; `pause` is called between two pieces of work, for others who wait.
    """

    def __init__(self, rows: Rows, pause: Callable[[], object] = lambda: None) -> None:
        self._rows, self._pause = rows, pause
        self._stretch = FIRST

    def places(self, token_ids: Iterable[str]) -> list[Place]:
        """Find outcomes by their tokens; unknown ones are left out."""
        return [Place(*row) for row in self._rows(queries.outcomes, token_ids=list(token_ids))]

    def of_markets(self, names: Iterable[str]) -> list[Place]:
        """Find the outcomes of markets: by condition id, slug, or the exchange's number."""
        return [Place(*row) for row in self._rows(queries.of_markets, ids=list(names))]

    def standing(self, place: Place, at: datetime) -> Standing:
        """Tell how an outcome stood after all that happened up to a moment."""
        asked = {"market_key": place.market_key, "outcome": place.outcome}
        standing = Standing(place)
        market = Market(place.market_key, place.market_id, [], [])
        found = Past(self._rows, market, place.outcome).build(standing.sides, at)
        if found is not None:
            (ts, standing.seq, hash_), _, _ = found
            standing.whole, standing.ms = True, in_us(ts) // 1000
            standing.hash = hash_.hex() if hash_ else None
        for (tick_size,) in self._rows(queries.tick_size_at, **asked, at=at):
            standing.tick_size = tick_size or place.tick_size
        for price, ms in self._rows(queries.last_trade, **asked, at=at):
            standing.last, standing.last_ms = price, ms
        return standing

    def next(self, places: Sequence[Place], after: datetime, until: datetime) -> tuple[list[Happening], datetime]:
        """Read what comes next; give also up to when that is all."""
        while (found := self._between(places, after, upto := min(until, after + self._stretch))) is None:
            self._stretch = max(SHORTEST, self._stretch / 8)
        if len(found) > MANY:
            self._stretch = max(SHORTEST, self._stretch / 2)
        elif len(found) < FEW and self._stretch < LONGEST:
            self._stretch *= 2
        elif not found:
            ((instant,),) = self._rows(queries.next_instant, **_asked(places), after=upto)
            upto = until if instant is None else min(until, max(upto, instant - MICROSECOND))
        return found, upto

    def _between(self, places: Sequence[Place], after: datetime, upto: datetime) -> list[Happening] | None:
        """Read a stretch; None if it is too much to be read at once."""
        asked = _asked(places)
        most, most_packs = (MOST, MOST_PACKS + 2 * len(places)) if upto - after > SHORTEST else (ALL, ALL)
        span = {"after": after, "upto": upto, "most": most}
        # Rows first: what is packed meanwhile is seen twice, and taken once.
        told = [(n, Event(*event)) for n, *event in self._rows(queries.book_events, **asked, **span)]
        packs = self._rows(books.packs, **asked, since=after, until=upto, most=most_packs)
        trades = self._rows(queries.trades, **asked, **span)
        if max(len(told), len(trades)) == most or len(packs) == most_packs:
            return None
        if packs:
            packed = list(islice(self._unpacked(packs, in_us(after), in_us(upto)), most))
            if len(packed) == most:
                return None
            every = {(n, *event[:5], event.hash): (n, event) for n, event in chain(told, packed)}
            told = list(every.values())
        self._pause()
        found = [Happening(event.ts, event.seq, places[n - 1], event) for n, event in told]
        found += [Happening(us, seq, places[n - 1], Trade(*trade)) for n, us, seq, *trade in trades]
        found += [
            Happening(us, 0, places[n - 1], Tick(*tick))
            for n, us, *tick in self._rows(queries.tick_sizes, **asked, after=after, upto=upto)
        ]
        found.sort(key=itemgetter(0, 1))
        return found

    def _unpacked(self, packs: Iterable[tuple[Any, ...]], after: int, upto: int) -> Iterator[tuple[int, Event]]:
        for n, _, data in packs:
            pack = unpack(data)
            self._pause()
            for event in pack.events(since=pack.upto(after), upto=pack.upto(upto)):
                yield n, event


def _asked(places: Sequence[Place]) -> dict[str, list[int]]:
    return {"market_keys": [place.market_key for place in places], "outcomes": [place.outcome for place in places]}


def in_us(instant: datetime) -> int:
    """Give microseconds since 1970."""
    return (instant - EPOCH) // MICROSECOND


def at_us(us: int) -> datetime:
    """Give the instant of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=us)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
