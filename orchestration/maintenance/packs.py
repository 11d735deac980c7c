"""Packing of past days' book events, a few bytes each, where no columnstore is available (the Apache licence).

A day is packed once, some hours after its end: the exchange sends current data only, so hardly anything is late. An
event is stored either as a row or in a pack, and moves between them within one transaction.
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
from sql.book_hashes import HashSearch
from sql.packs import MAX_EVENTS, BookEvent, Levels, Pack, key, pack, unpack, whole
from sql.queries import packs as queries
from sql.queries import retention

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Connection = psycopg.Connection[tuple[Any, ...]]
OutcomeKey = tuple[int, int]  # market key and outcome

SETTLE_TIME = timedelta(hours=6)  # a day's events are packed this long after its end
MAX_ROWS_PER_TRANSACTION = 50_000  # rows of a transaction, and those of the instant where it is cut
LOCK_MS = 2000
DAY_US = 86_400_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNPACKED = "copy unpacked (market_key, outcome, event_id, ts, seq, side, price, size, bid_prices, bid_sizes, ask_prices, ask_sizes, hash) from stdin"  # fmt: skip  # noqa: E501
EVENT_FIELDS = slice(2, 2 + len(BookEvent._fields))  # of a row: the fields after its market key and outcome
BY_TIME_AND_SEQ = itemgetter(0, 1)  # of an event: instant and seq


class PackingResult(msgspec.Struct):
    """Result of a pass."""

    events: int = 0
    packs: int = 0
    bytes: int = 0
    finished: bool = True  # False: the time ran out before all was done
    chunks: int = 0  # whose space was reclaimed
    anchors: int = 0  # chunks of full books that packs have replaced


class StoredPack(NamedTuple):
    """A pack, as it is stored."""

    ts_us: int
    until_us: int
    whole_us: int | None
    events: int
    data: bytes


def horizon(now: datetime) -> datetime:
    """Return the instant before which events are packed: a midnight (UTC)."""
    return (now - SETTLE_TIME).replace(hour=0, minute=0, second=0, microsecond=0)


def bring_up_to_date(
    conn: Connection, now: datetime, *, max_s: float = 600.0, report: Callable[[PackingResult], None] = lambda _: None
) -> PackingResult:
    """Pack what is due. Takes an autocommit connection; when interrupted, what was packed stays packed."""
    packed, before, until = PackingResult(), horizon(now), monotonic() + max_s
    emptied: set[int] = set()
    if database.license(conn) != "apache" or not queries.due(conn, before=before) or not queries.try_pack(conn):
        return packed
    try:
        for places in _portions(list(queries.outcomes(conn, before=before))):
            for upto in _cuts(conn, places, before):
                if monotonic() > until:
                    packed.finished = False
                    return packed
                with conn.transaction():
                    _pack(conn, places, upto, packed, emptied)
                report(packed)
        packed.chunks = _reclaim_space(conn, before, emptied)
        packed.anchors = retention.drop_before(conn, hypertable="book_anchors", before=before)
    finally:
        queries.done(conn)
    return packed


@contextlib.contextmanager
def as_rows(conn: Connection, since: datetime, until: datetime) -> Iterator[int]:
    """Unpack a time range into rows for the duration of a block, for SQL readers; yield the number of rows restored.

    Takes an autocommit connection. The next pass packs them again.
    """
    queries.hold(conn)
    try:
        yield restore_rows(conn, since, until)
    finally:
        queries.let_go(conn)


def restore_rows(conn: Connection, since: datetime, until: datetime) -> int:
    """Restore the packed events of a time range as rows; return how many."""
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
        queries.restore(conn)
    return count


def repacked(  # noqa: PLR0917 (what is stored of an outcome)
    moved: Sequence[BookEvent],
    taken: Sequence[Pack],
    last: Pack | None,
    stay: Sequence[BookEvent],
    since_us: int,
    search: HashSearch | None = None,
) -> Iterator[StoredPack]:
    """Pack one outcome's events, passed in order, including those of the packs `taken`.

    These are all packs that end at `since_us` or later; `last` is the one before. Events in `stay` remain rows and are
    in no pack, but later events build on them. No two packs begin at the same instant.
    """
    events = _merged(moved, taken)
    if not events:
        return
    first = BY_TIME_AND_SEQ(events[0])
    levels: Levels = {}
    known = False
    if taken and int(taken[0].ts[0]) <= since_us:
        levels, known = taken[0].base, taken[0].known
        stay = [event for event in stay if BY_TIME_AND_SEQ(event) > first]
    elif last is not None:
        levels, known = last.after()
        stay = [event for event in stay if event.ts >= int(last.ts[-1])]
    run: list[BookEvent] = []
    among: list[BookEvent] = []  # those of the run's instant that stay rows
    staying = {id(event) for event in stay}
    for event in sorted([*events, *stay], key=BY_TIME_AND_SEQ):
        stays = id(event) in staying
        full = stays or among or len(run) >= MAX_EVENTS
        if run and event.ts != run[0].ts and (full or event.ts // DAY_US != run[0].ts // DAY_US):
            each, after, whole = _pack_run(run, levels, known=known, search=search)
            yield each
            if among:
                _, after, whole = _pack_run(sorted([*run, *among], key=BY_TIME_AND_SEQ), levels, known=known)
            levels, known = after, whole
            run, among = [], []
        if not stays:
            run.append(event)
        elif run:
            among.append(event)
        else:
            _, levels, known = _pack_run([event], levels, known=known)
    if run:
        yield _pack_run(run, levels, known=known, search=search)[0]


def _pack_run(
    run: Sequence[BookEvent], base: Levels, *, known: bool, search: HashSearch | None = None
) -> tuple[StoredPack, Levels, bool]:
    """Pack events on top of the levels before them; return pack, levels after it, and whether these are whole."""
    data, after = pack(run, base, known=known, search=search)
    whole_us = run[0].ts if known else next((event.ts for event in run if event.side is None), None)
    return StoredPack(run[0].ts, run[-1].ts, whole_us, len(run), data), after, whole_us is not None


def _pack(
    conn: Connection, places: Sequence[OutcomeKey], before: datetime, packed: PackingResult, emptied: set[int]
) -> None:
    conn.execute("set local enable_seqscan = off")  # a portion is a small part of its chunk
    queries.alone(conn)
    # Millions of rows: fetched at once and in binary, in half the time that an iterator takes.
    rows = conn.execute(queries.move_out.sql, {"before": before, **_by_column(places)}, binary=True).fetchall()
    emptied.update({row[-1] for row in rows})
    moved = _by_place(rows)
    stay = _by_place(queries.left_behind(conn, before=before, **_by_column(places)))
    # Late events go where they belong: the packs from there on are rebuilt.
    begin = {place: events[0].ts for place, events in moved.items()}
    held = {place: events[-1].ts for place, events in stay.items()}
    for market_key, outcome, data in queries.first_after(conn, **_since(held)):
        place = market_key, outcome
        if unpack(data).base != _folded(stay[place]):
            begin[place] = min(held[place], begin.get(place, held[place]))
    since = _since(begin)
    taken: dict[OutcomeKey, list[Pack]] = defaultdict(list)
    for market_key, outcome, _, data in sorted(queries.take_back(conn, **since)):
        taken[market_key, outcome].append(unpack(data))
    last = {(key, outcome): unpack(data) for key, outcome, data in queries.last_before(conn, **since)}
    named = queries.names(conn, **_by_column([*begin]))
    searches = {(key, outcome): HashSearch(market_id, token_id) for key, outcome, market_id, token_id in named}
    made = [
        {"market_key": place[0], "outcome": place[1], **each._asdict()}
        for place, since_us in begin.items()
        for each in repacked(
            *(moved.get(place, ()), taken[place], last.get(place), stay.get(place, ()), since_us, searches.get(place))
        )
    ]
    if made:
        queries.add(conn, made)
    packed.events += sum(map(len, moved.values()))
    packed.packs += len(made)
    packed.bytes += sum(len(each["data"]) for each in made)


def _portions(found: Iterable[tuple[int, int, int]]) -> Iterator[list[OutcomeKey]]:
    """Split outcomes into portions that fit one transaction."""
    portion: list[OutcomeKey] = []
    rows = 0
    for market_key, outcome, count in found:
        if portion and rows + count > MAX_ROWS_PER_TRANSACTION:
            yield portion
            portion, rows = [], 0
        portion.append((market_key, outcome))
        rows += count
    if portion:
        yield portion


def _cuts(conn: Connection, places: Sequence[OutcomeKey], before: datetime) -> Iterator[datetime]:
    """Yield the instants up to which to pack, one after the other: several for an outcome with very many rows."""
    if len(places) == 1:
        ((market_key, outcome),) = places
        of = {"market_key": market_key, "outcome": outcome, "rows": MAX_ROWS_PER_TRANSACTION, "before": before}
        last = None
        while (cut := queries.instant_after(conn, **of)) not in {None, last}:
            yield cut
            last = cut
    yield before


def _folded(events: Sequence[BookEvent]) -> Levels:
    """Return the levels after some events that include a full book."""
    levels: Levels = {}
    for event in events:
        if event.side is None:
            levels = whole(event)
        else:
            assert event.price is not None
            levels[key(event.side, event.price)] = event.size or 0
    return {name: size for name, size in levels.items() if size}


def _merged(moved: Sequence[BookEvent], taken: Sequence[Pack]) -> Sequence[BookEvent]:
    """Merge the events of both, each once."""
    if not taken:
        return moved
    every = {_identity(event): event for event in chain(moved, *(each.events() for each in taken))}
    return sorted(every.values(), key=BY_TIME_AND_SEQ)


def _identity(event: BookEvent) -> tuple[object, ...]:
    return event.ts, event.seq, event.side, event.price, event.size, event.hash


def _by_column(places: Sequence[OutcomeKey]) -> dict[str, list[int]]:
    return {"market_keys": [key for key, _ in places], "outcomes": [outcome for _, outcome in places]}


def _since(begin: Mapping[OutcomeKey, int]) -> dict[str, list[int]]:
    return {**_by_column([*begin]), "since_us": [*begin.values()]}


def _by_place(rows: Iterable[tuple[Any, ...]]) -> dict[OutcomeKey, list[BookEvent]]:
    found: dict[OutcomeKey, list[BookEvent]] = defaultdict(list)
    for row in rows:
        found[row[0], row[1]].append(BookEvent._make(row[EVENT_FIELDS]))
    for events in found.values():
        events.sort(key=BY_TIME_AND_SEQ)
    return found


def _rows(token_id: str, events: Iterable[BookEvent]) -> Iterator[tuple[Any, ...]]:
    """Yield rows with their original IDs."""
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


def _reclaim_space(conn: Connection, before: datetime, emptied: set[int]) -> int:
    """Rewrite emptied chunks to reclaim space; one that is being read waits for the next pass."""
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
