"""Reads the stored events of outcomes in order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from api.data.lookup import MarketRef
from api.replay.past_books import BookSides, PastBooks
from sql.packs import BookEvent, unpack
from sql.queries import books
from sql.queries import replays as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Rows = Callable[..., list[tuple[Any, ...]]]

FEW_EVENTS, MANY_EVENTS, MAX_EVENTS = 500, 4_000, 40_000  # events per read: a read blocks the worker's other clients
FIRST_WINDOW, MIN_WINDOW, MAX_WINDOW = timedelta(seconds=10), timedelta(milliseconds=100), timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)
MAX_PACKS = 200  # per read, in addition to the one or two that each outcome has in any window
ALL = 1 << 40


class OutcomeRef(NamedTuple):
    """An outcome, with the current properties of its market."""

    token_id: str
    market_id: str
    market_key: int
    outcome: int
    tick_size: int | None
    neg_risk: bool
    least_order: str | None


class TradeRecord(NamedTuple):
    """A trade; the side is the taker's."""

    trade_id: int
    side: int
    price: int
    size: int
    value_usd: int
    tx_hash: bytes | None


class TickChange(NamedTuple):
    """A change of the tick size."""

    before: int | None
    tick_size: int


class HistoricEvent(NamedTuple):
    """A stored event of an outcome. Within one instant, `seq` is the order of arrival."""

    us: int
    seq: int
    place: OutcomeRef
    what: BookEvent | TradeRecord | TickChange


class OutcomeState:
    """The state of an outcome at a replay's current position."""

    def __init__(self, place: OutcomeRef) -> None:
        self.place = place
        self.sides = BookSides()
        self.whole = False  # a full book is known
        self.seq = self.ms = 0  # of the last event applied to the book
        self.hash: str | None = None
        self.tick_size = place.tick_size
        self.last: int | None = None
        self.last_ms: int | None = None
        self.published_best: tuple[int | None, int | None] | None = None  # the best prices sent last

    def apply(self, event: BookEvent) -> None:
        """Apply a book event."""
        self.sides.apply(event)
        self.whole = self.whole or event.side is None
        self.seq, self.ms = event.seq, event.ts // 1000
        self.hash = event.hash.hex() if event.hash else None


class HistoryReader:
    """Reads stored events, one time window after the other.

    `rows` runs a query and returns its rows; `pause` is called between units of work, to let others run.
    """

    def __init__(self, rows: Rows, pause: Callable[[], object] = lambda: None) -> None:
        self._rows, self._pause = rows, pause
        self._window = FIRST_WINDOW

    def places(self, token_ids: Iterable[str]) -> list[OutcomeRef]:
        """Return the outcomes of tokens; unknown ones are omitted."""
        return [OutcomeRef(*row) for row in self._rows(queries.outcomes, token_ids=list(token_ids))]

    def of_markets(self, names: Iterable[str]) -> list[OutcomeRef]:
        """Return the outcomes of markets given by condition id, slug or the exchange's numeric id."""
        return [OutcomeRef(*row) for row in self._rows(queries.of_markets, ids=list(names))]

    def state(self, place: OutcomeRef, at: datetime) -> OutcomeState:
        """Return an outcome's state after all events up to a moment."""
        asked = {"market_key": place.market_key, "outcome": place.outcome}
        state = OutcomeState(place)
        market = MarketRef(place.market_key, place.market_id, [], [])
        found = PastBooks(self._rows, market, place.outcome).build(state.sides, at)
        if found is not None:
            (ts, state.seq, hash_), _, _ = found
            state.whole, state.ms = True, in_us(ts) // 1000
            state.hash = hash_.hex() if hash_ else None
        for (tick_size,) in self._rows(queries.tick_size_at, **asked, at=at):
            state.tick_size = tick_size or place.tick_size
        for price, ms in self._rows(queries.last_trade, **asked, at=at):
            state.last, state.last_ms = price, ms
        return state

    def next(
        self, places: Sequence[OutcomeRef], after: datetime, until: datetime
    ) -> tuple[list[HistoricEvent], datetime]:
        """Return the next events, and the moment up to which they are complete."""
        while (found := self._between(places, after, upto := min(until, after + self._window))) is None:
            self._window = max(MIN_WINDOW, self._window / 8)
        if len(found) > MANY_EVENTS:
            self._window = max(MIN_WINDOW, self._window / 2)
        elif len(found) < FEW_EVENTS and self._window < MAX_WINDOW:
            self._window *= 2
        elif not found:
            ((instant,),) = self._rows(queries.next_instant, **_asked(places), after=upto)
            upto = until if instant is None else min(until, max(upto, instant - MICROSECOND))
        return found, upto

    def _between(self, places: Sequence[OutcomeRef], after: datetime, upto: datetime) -> list[HistoricEvent] | None:
        """Read a window; None if it has too many events for one read."""
        asked = _asked(places)
        most, most_packs = (MAX_EVENTS, MAX_PACKS + 2 * len(places)) if upto - after > MIN_WINDOW else (ALL, ALL)
        span = {"after": after, "upto": upto, "most": most}
        # Rows first: events packed meanwhile are read twice and deduplicated.
        events = [(n, BookEvent(*event)) for n, *event in self._rows(queries.book_events, **asked, **span)]
        packs = self._rows(books.packs, **asked, since=after, until=upto, most=most_packs)
        trades = self._rows(queries.trades, **asked, **span)
        if max(len(events), len(trades)) == most or len(packs) == most_packs:
            return None
        if packs:
            packed = list(islice(self._unpacked(packs, in_us(after), in_us(upto)), most))
            if len(packed) == most:
                return None
            every = {(n, *event[:5], event.hash): (n, event) for n, event in chain(events, packed)}
            events = list(every.values())
        self._pause()
        found = [HistoricEvent(event.ts, event.seq, places[n - 1], event) for n, event in events]
        found += [HistoricEvent(us, seq, places[n - 1], TradeRecord(*trade)) for n, us, seq, *trade in trades]
        found += [
            HistoricEvent(us, 0, places[n - 1], TickChange(*tick))
            for n, us, *tick in self._rows(queries.tick_sizes, **asked, after=after, upto=upto)
        ]
        found.sort(key=itemgetter(0, 1))
        return found

    def _unpacked(self, packs: Iterable[tuple[Any, ...]], after: int, upto: int) -> Iterator[tuple[int, BookEvent]]:
        for n, _, data in packs:
            pack = unpack(data)
            self._pause()
            for event in pack.events(since=pack.upto(after), upto=pack.upto(upto)):
                yield n, event


def _asked(places: Sequence[OutcomeRef]) -> dict[str, list[int]]:
    return {"market_keys": [place.market_key for place in places], "outcomes": [place.outcome for place in places]}


def in_us(instant: datetime) -> int:
    """Return microseconds since 1970."""
    return (instant - EPOCH) // MICROSECOND


def at_us(us: int) -> datetime:
    """Return the instant of microseconds since 1970."""
    return EPOCH + timedelta(microseconds=us)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
