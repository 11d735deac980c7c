"""Book events of past days packed, a few bytes each, where the columnstore is not to be had (the Apache licence).

A day is packed once, some hours after its end: what comes from the exchange is of the moment, so hardly anything is
late. An event stands either as a row or in a pack, and moves from one to the other within a transaction.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from itertools import chain
from operator import itemgetter
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import psycopg
from psycopg import sql

from orchestration.ingest.storage import ids
from sql import database
from sql.packs import MOST, Event, Levels, Pack, key, pack, unpack, whole
from sql.queries import packs as queries
from sql.queries import retention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Connection = psycopg.Connection[tuple[Any, ...]]
Place = tuple[int, int]  # market key and outcome

SETTLED = timedelta(hours=6)  # a day's events are packed so long after its end
AT_ONCE = 50_000  # rows of a transaction
LOCK_MS = 2000
DAY_US = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNPACKED = "copy unpacked (market_key, outcome, event_id, ts, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash) from stdin"  # fmt: skip  # noqa: E501
EVENT = slice(2, 2 + len(Event._fields))  # of a row: behind its place
IN_ORDER = itemgetter(0, 1)  # of an event: instant and seq


class Packed(msgspec.Struct):
    """What a pass came to."""

    events: int = 0
    packs: int = 0
    bytes: int = 0
    finished: bool = True  # false: there is more to do, and the time is up
    chunks: int = 0  # whose room was given back
    anchors: int = 0  # chunks of whole books that packs now stand in for


class Made(NamedTuple):
    """A pack, as it is stored."""

    ts_us: int
    until_us: int
    whole_us: int | None
    events: int
    data: bytes


def horizon(now: datetime) -> datetime:
    """Give the instant before which events are packed: a midnight (UTC)."""
    return (now - SETTLED).replace(hour=0, minute=0, second=0, microsecond=0)


def bring_up_to_date(
    conn: Connection, now: datetime, *, most_s: float = 600.0, report: Callable[[Packed], None] = lambda _: None
) -> Packed:
    """Pack what is due. Takes an autocommit connection; what was packed when this is interrupted stays packed."""
    packed, before, until = Packed(), horizon(now), monotonic() + most_s
    emptied: set[int] = set()
    if database.license(conn) != "apache" or not queries.due(conn, before=before) or not queries.try_pack(conn):
        return packed
    try:
        for places in _portions(list(queries.outcomes(conn, before=before))):
            if monotonic() > until:
                packed.finished = False
                return packed
            with conn.transaction():
                _pack(conn, places, before, packed, emptied)
            report(packed)
        packed.chunks = _give_room_back(conn, before, emptied)
        packed.anchors = retention.drop_before(conn, hypertable="book_anchors", before=before)
    finally:
        queries.done(conn)
    return packed


@contextlib.contextmanager
def as_rows(conn: Connection, since: datetime, until: datetime) -> Iterator[int]:
    """Have all events of a stretch of time stand as rows meanwhile, for who reads them by SQL; gives how many came.

    Takes an autocommit connection. The next pass packs them again.
    """
    queries.hold(conn)
    try:
        yield put_back(conn, since, until)
    finally:
        queries.let_go(conn)


def put_back(conn: Connection, since: datetime, until: datetime) -> int:
    """Make rows again of what is packed of a stretch of time; give how many."""
    count = 0
    queries.make_room(conn)
    with conn.transaction(), conn.cursor() as cursor:
        queries.alone(conn)
        packs = list(queries.take_out(conn, since=since, until=until))
        with cursor.copy(UNPACKED) as copy:
            for token_id, market_key, outcome, data in packs:
                for row in _rows(token_id, unpack(data).events()):
                    copy.write_row((market_key, outcome, *row))
                    count += 1
        queries.put_back(conn)
    return count


def remade(
    moved: Sequence[Event], taken: Sequence[Pack], last: Pack | None, stay: Sequence[Event], since_us: int
) -> Iterator[Made]:
    """Pack one outcome's events, given in order, those of the packs `taken` among them.

    These are all that end at `since_us` or later; `last` is the one before. Events that `stay` rows are in no pack, but
    what follows builds on them. No two packs begin at the same instant.
    """
    events = _merged(moved, taken)
    if not events:
        return
    first = IN_ORDER(events[0])
    levels: Levels = {}
    known = False
    if taken and int(taken[0].ts[0]) <= since_us:
        levels, known = taken[0].base, taken[0].known
        stay = [event for event in stay if IN_ORDER(event) > first]
    elif last is not None:
        levels, known = last.after()
        stay = [event for event in stay if event.ts >= int(last.ts[-1])]
    run: list[Event] = []
    among: list[Event] = []  # those that stay rows of the one instant of which the run is
    staying = {id(event) for event in stay}
    for event in sorted([*events, *stay], key=IN_ORDER):
        stays = id(event) in staying
        full = stays or among or len(run) >= MOST
        if run and event.ts != run[0].ts and (full or event.ts // DAY_US != run[0].ts // DAY_US):
            each, after, whole = _made(run, levels, known=known)
            yield each
            if among:
                _, after, whole = _made(sorted([*run, *among], key=IN_ORDER), levels, known=known)
            levels, known = after, whole
            run, among = [], []
        if not stays:
            run.append(event)
        elif run:
            among.append(event)
        else:
            _, levels, known = _made([event], levels, known=known)
    if run:
        yield _made(run, levels, known=known)[0]


def _made(run: Sequence[Event], base: Levels, *, known: bool) -> tuple[Made, Levels, bool]:
    """Pack some events upon the levels before them; give the levels after them, and whether they are a whole book."""
    data, after = pack(run, base, known=known)
    whole_us = run[0].ts if known else next((event.ts for event in run if event.side is None), None)
    return Made(run[0].ts, run[-1].ts, whole_us, len(run), data), after, whole_us is not None


def _pack(conn: Connection, places: Sequence[Place], before: datetime, packed: Packed, emptied: set[int]) -> None:
    conn.execute("set local enable_seqscan = off")  # a portion is a small part of its chunk
    queries.alone(conn)
    # Millions of rows: fetched at once and in binary, in half the time that an iterator takes.
    rows = conn.execute(queries.move_out.sql, {"before": before, **_asked(places)}, binary=True).fetchall()
    emptied.update({row[-1] for row in rows})
    moved = _by_place(rows)
    stay = _by_place(queries.left_behind(conn, before=before, **_asked(places)))
    # What comes late goes where it belongs: the packs from there on are made anew.
    begin = {place: events[0].ts for place, events in moved.items()}
    held = {place: events[-1].ts for place, events in stay.items()}
    for market_key, outcome, data in queries.first_after(conn, **_since(held)):
        place = market_key, outcome
        if unpack(data).base != _folded(stay[place]):
            begin[place] = min(held[place], begin.get(place, held[place]))
    since = _since(begin)
    taken: dict[Place, list[Pack]] = defaultdict(list)
    for market_key, outcome, _, data in sorted(queries.take_back(conn, **since)):
        taken[market_key, outcome].append(unpack(data))
    last = {(key, outcome): unpack(data) for key, outcome, data in queries.last_before(conn, **since)}
    made = [
        {"market_key": place[0], "outcome": place[1], **each._asdict()}
        for place, since_us in begin.items()
        for each in remade(moved.get(place, ()), taken[place], last.get(place), stay.get(place, ()), since_us)
    ]
    if made:
        queries.add(conn, made)
    packed.events += sum(map(len, moved.values()))
    packed.packs += len(made)
    packed.bytes += sum(len(each["data"]) for each in made)


def _portions(found: Iterable[tuple[int, int, int]]) -> Iterator[list[Place]]:
    """Give outcomes in portions that are one transaction's work."""
    portion: list[Place] = []
    rows = 0
    for market_key, outcome, count in found:
        if portion and rows + count > AT_ONCE:
            yield portion
            portion, rows = [], 0
        portion.append((market_key, outcome))
        rows += count
    if portion:
        yield portion


def _folded(events: Sequence[Event]) -> Levels:
    """Give the levels after some events, a whole book among them."""
    levels: Levels = {}
    for event in events:
        if event.side is None:
            levels = whole(event)
        else:
            assert event.price is not None
            levels[key(event.side, event.price)] = event.size or 0
    return {name: size for name, size in levels.items() if size}


def _merged(moved: Sequence[Event], taken: Sequence[Pack]) -> Sequence[Event]:
    """Give the events of both, each once."""
    if not taken:
        return moved
    every = {_identity(event): event for event in chain(moved, *(each.events() for each in taken))}
    return sorted(every.values(), key=IN_ORDER)


def _identity(event: Event) -> tuple[object, ...]:
    return event.ts, event.seq, event.side, event.price, event.size, event.hash


def _asked(places: Sequence[Place]) -> dict[str, list[int]]:
    return {"market_keys": [key for key, _ in places], "outcomes": [outcome for _, outcome in places]}


def _since(begin: Mapping[Place, int]) -> dict[str, list[int]]:
    return {**_asked([*begin]), "since_us": [*begin.values()]}


def _by_place(rows: Iterable[tuple[Any, ...]]) -> dict[Place, list[Event]]:
    found: dict[Place, list[Event]] = defaultdict(list)
    for row in rows:
        found[row[0], row[1]].append(Event._make(row[EVENT]))
    for events in found.values():
        events.sort(key=IN_ORDER)
    return found


def _rows(token_id: str, events: Iterable[Event]) -> Iterator[tuple[Any, ...]]:
    """Give rows with the ids that they had."""
    instant, seen = 0, defaultdict[object, int](int)
    for event in events:
        if event.ts != instant:
            instant, seen = event.ts, defaultdict(int)
        hash_ = event.hash.hex() if event.hash else ""
        if event.side is None:
            bids = zip(event.bid_prices or (), event.bid_sizes or (), strict=True)
            asks = zip(event.ask_prices or (), event.ask_sizes or (), strict=True)
            event_id = ids.snapshot_id(token_id, event.ts // 1000, hash_ or str(([*bids], [*asks])))
        else:
            what = (hash_, event.side, event.price, event.size)
            event_id = ids.change_id(token_id, event.ts // 1000, *what, seen[what])  # type: ignore[arg-type]
            seen[what] += 1
        yield event_id, EPOCH + timedelta(microseconds=event.ts), *event[1:]


def _give_room_back(conn: Connection, before: datetime, emptied: set[int]) -> int:
    """Rewrite chunks that rows have left; one that somebody reads at the moment waits for the next pass."""
    given = 0
    conn.execute(sql.SQL("set lock_timeout = {}").format(LOCK_MS))
    try:
        for (chunk,) in list(queries.emptied(conn, before=before, chunks=[*emptied])):
            with contextlib.suppress(psycopg.errors.LockNotAvailable):
                conn.execute(sql.SQL("vacuum (full, analyze) {}").format(sql.SQL(chunk)))
                given += 1
    finally:
        conn.execute("reset lock_timeout")
    return given
