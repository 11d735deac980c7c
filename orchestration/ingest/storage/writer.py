"""Batches into the database, each in one short transaction: what is there already stays, and is not told again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from time import time
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import sql

from orchestration.ingest.storage import copy_format as packing
from orchestration.ingest.storage import messages
from orchestration.ingest.storage.rows import Batch, Change, LiveBook, Token, Trade
from sql.queries import feed as queries

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
Place = tuple[Any, ...]  # market key and outcome
Row = TypeVar("Row")


def _copy(table: str, columns: str) -> sql.Composed:
    names = sql.SQL(", ").join(sql.Identifier(name) for name in columns.split())
    return sql.SQL("copy {} ({}) from stdin (format binary)").format(sql.Identifier(table), names)


_TRADE = "ts market_key outcome trade_id seq side price size value_usd tx_hash"
_CHANGE = "ts market_key outcome event_id seq side price size hash"
TRADES, NEW_TRADES = _copy("trades", _TRADE), _copy("new_trades", _TRADE)
CHANGES, NEW_CHANGES = _copy("book_events", _CHANGE), _copy("new_changes", _CHANGE)
NEW_STATE = _copy(
    "new_state",
    "kind market_key outcome ts seq event_id tick_size bid ask mid bid_size ask_size last last_ts"
    " bid_prices bid_sizes ask_prices ask_sizes hash",
)
PIECE = 500  # rows sent at a time
_TS = attrgetter("ts")
STREAM = _copy("stream_events", "seq ts type market_id message")


class Written(msgspec.Struct):
    """What a batch came to."""

    trades: int = 0
    events: int = 0
    quotes: int = 0
    books: int = 0
    told: int = 0
    repeats: int = 0
    committed_ms: int = 0
    instants_ms: list[int] = []  # of the pushed rows that were really inserted, for the lag

    @property
    def rows(self) -> int:
        """Rows of the time series."""
        return self.trades + self.events + self.quotes

    def add(self, other: "Written") -> None:
        """Add what another batch came to."""
        for name in ("trades", "events", "quotes", "books", "told", "repeats"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.committed_ms = max(self.committed_ms, other.committed_ms)
        self.instants_ms = self.instants_ms + other.instants_ms


class Writer:
    """Writes batches over one connection, which nobody else uses."""

    def __init__(self, conn: Connection, *, clock: Callable[[], float] = time) -> None:
        self.conn = conn
        self._clock = clock
        self._replayed: set[Place] = set()  # tokens of which a replay has added changes so far
        with conn.transaction():
            queries.make_room(conn)

    def write(
        self,
        batch: Batch,
        books: Sequence[LiveBook] = (),
        disavowed: Sequence[Token] = (),
        *,
        replay: bool = False,
        fill: bool = False,
        tell: bool = True,
    ) -> Written:
        """Write a batch and the live state; all of it or, when this raises, nothing.

        `replay` says that much of it may be there already. `fill` says that it is of the past: no live state, no prices
        and books told, and trades that are stored under another instant are left out. What is old news need not be told
        to the stream at all.
        """
        if not replay:
            self._replayed.clear()
        if not (replay or fill):
            with suppress(psycopg.errors.UniqueViolation):  # something was there already
                return self._write(batch, books, disavowed, straight=True, fill=False, tell=tell)
        return self._write(batch, books, disavowed, straight=False, fill=fill, tell=tell)

    def _write(
        self,
        batch: Batch,
        books: Sequence[LiveBook],
        disavowed: Sequence[Token],
        *,
        straight: bool,
        fill: bool,
        tell: bool,
    ) -> Written:
        """Write a batch; `straight` into the tables is half again as fast, and raises when a row is there already."""
        now_ms = int(self._clock() * 1000)
        with self.conn.transaction(), self.conn.cursor() as cursor:
            if fill:
                queries.fill_alone(self.conn)
            trades, told = self._trades(cursor, batch.trades, straight=straight, fill=fill)
            changes = self._changes(cursor, batch.changes, straight=straight)
            snapshots, quoted, shown = self._state(cursor, batch, books, disavowed, fill=fill)
            if not fill:
                whole = shown | {_place(book.token) for book in books if book.jumped}
                told += [messages.snapshot(book) for book in books if _place(book.token) in whole]
                current = changes if straight else self._current(batch.changes, changes)
                told += messages.deltas(row for row in current if row.told and _place(row.token) not in whole)
                moved = {_place(row.token) for row in trades}.union(quoted)
                told += [messages.price(row, now_ms) for row in batch.prices.values() if _place(row.token) in moved]
            self._tell(cursor, told if tell else [], now_ms)
        return Written(
            trades=len(trades),
            events=len(changes) + snapshots,
            quotes=len(quoted),
            books=len(books),
            told=len(told),
            repeats=len(batch.trades) + len(batch.changes) - len(trades) - len(changes),
            committed_ms=int(self._clock() * 1000),
            instants_ms=[] if fill else [row.ts_ms for row in trades] + [row.ts_ms for row in changes],
        )

    def _trades(
        self, cursor: Cursor, rows: list[Trade], *, straight: bool, fill: bool
    ) -> tuple[Sequence[Trade], list[messages.Message]]:
        """Insert trades; give those that were new, and the messages that tell of them."""
        if not rows:
            return rows, []
        if straight:
            told: list[messages.Message] = []

            def pieces() -> Iterator[bytes]:
                for some in _pieces(rows):
                    yield packing.trades(some)
                    told.extend(map(messages.trade, some))  # while the server is busy with what it was just sent

            _send(cursor, TRADES, pieces())
            return rows, told
        _send(cursor, NEW_TRADES, map(packing.trades, _pieces(rows)))
        if fill:
            span = {
                "earliest": _instant(min(row.ts_ms for row in rows)),
                "latest": _instant(max(row.ts_ms for row in rows)),
            }
            queries.forget_known_trades(self.conn, **span)
            queries.forget_hashless_trades(self.conn, **span)
        ids = {trade_id for (trade_id,) in queries.insert_trades(self.conn)}
        inserted = _inserted(rows, ids, lambda row: row.trade_id)
        return inserted, [messages.trade(row) for row in inserted]

    def _changes(self, cursor: Cursor, rows: list[Change], *, straight: bool) -> Sequence[Change]:
        """Insert changes; give those that were new."""
        if not rows:
            return rows
        _send(cursor, CHANGES if straight else NEW_CHANGES, map(packing.changes, _pieces(rows)))
        if straight:
            return rows
        ids = {event_id for (event_id,) in queries.insert_changes(self.conn)}
        return _inserted(rows, ids, lambda row: row.event_id)

    def _current(self, rows: list[Change], inserted: Sequence[Change]) -> Sequence[Change]:
        """Pick every change of the tokens that got new ones: the newest total of a level may be stored already."""
        self._replayed.update(_place(row.token) for row in inserted)
        return [row for row in rows if _place(row.token) in self._replayed]

    def _state(
        self, cursor: Cursor, batch: Batch, books: Sequence[LiveBook], disavowed: Sequence[Token], *, fill: bool
    ) -> tuple[int, list[Place], set[Place]]:
        """Write snapshots, quotes and live state; give how many snapshots were new, and whose quotes and books are."""
        prices = () if fill else batch.prices.values()
        packed = [
            *map(packing.snapshots, _pieces(batch.snapshots)),
            *map(packing.quotes, _pieces([*batch.quotes.values()])),
            *map(packing.prices, _pieces([*prices])),
            *map(packing.books, _pieces(books)),
        ]
        if packed:
            _send(cursor, NEW_STATE, packed)
        snapshots, quoted, shown = self.conn.cursor(), self.conn.cursor(), self.conn.cursor()
        with self.conn.pipeline():  # one round trip for all of it
            if batch.snapshots:
                snapshots.execute(queries.insert_snapshots.sql)
            if batch.quotes:
                quoted.execute(queries.upsert_quotes.sql)
            if prices:
                queries.upsert_prices(self.conn)
            if disavowed:
                places = zip(*(_place(token) for token in disavowed), strict=True)
                market_keys, outcomes = map(list, places)
                cursor.execute(queries.disavow_books.sql, {"market_keys": market_keys, "outcomes": outcomes})
            if books:
                shown.execute(queries.newly_verified_books.sql)
                cursor.execute(queries.upsert_books.sql)
            if batch.ticks:
                queries.insert_ticks(
                    self.conn,
                    market_keys=[row.token.market_key for row in batch.ticks],
                    outcomes=[row.token.outcome for row in batch.ticks],
                    instants=[_instant(row.ts_ms) for row in batch.ticks],
                    before=[row.before for row in batch.ticks],
                    tick_sizes=[row.tick_size for row in batch.ticks],
                )
            if batch.refusals:
                queries.refuse(
                    self.conn,
                    sources=[row.source for row in batch.refusals],
                    reasons=[row.reason for row in batch.refusals],
                    payloads=[row.payload for row in batch.refusals],
                )
        return (
            len(snapshots.fetchall()) if batch.snapshots else 0,
            quoted.fetchall() if batch.quotes else [],
            set(shown.fetchall()) if books else set(),
        )

    def _tell(self, cursor: Cursor, told: list[messages.Message], now_ms: int) -> None:
        """Add to the stream, last of all: whoever holds the head keeps others waiting."""
        if not told:
            return
        told.sort(key=_TS)
        last = queries.advance_stream(self.conn, events=len(told))
        placed = list(enumerate(told, start=last - len(told) + 1))
        _send(cursor, STREAM, (packing.stream_events(now_ms, some) for some in _pieces(placed)))


def _send(cursor: Cursor, copy: sql.Composed, pieces: Iterable[bytes]) -> None:
    with cursor.copy(copy) as stream:
        stream.write(packing.HEADER)
        for piece in pieces:
            stream.write(piece)
        stream.write(packing.TRAILER)


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Cut rows so that a piece fits the socket's buffer: then packing goes on while the server takes it in."""
    for start in range(0, len(rows), PIECE):
        yield rows[start : start + PIECE]


def _inserted(rows: Sequence[Row], ids: set[int], id_of: Callable[[Row], int]) -> Sequence[Row]:
    """Pick the rows that were inserted; of two alike in one batch, only the first was."""
    picked = []
    for row in rows:
        if id_of(row) in ids:
            ids.discard(id_of(row))
            picked.append(row)
    return picked


def _instant(ts_ms: int) -> datetime:
    return datetime.fromtimestamp(ts_ms / 1000, UTC)


def _place(token: Token) -> Place:
    return token.market_key, token.outcome
