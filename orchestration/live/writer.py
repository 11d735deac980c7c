"""Batches into the database, each in one short transaction: what is there already stays, and is not told again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from operator import attrgetter
from time import time
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import sql

from orchestration.live import messages, packing
from orchestration.live.rows import Batch, Change, LiveBook, Token, Trade
from sql.queries import feed as queries

Connection = psycopg.Connection[tuple[Any, ...]]
Row = TypeVar("Row")


def _copy(table: str, columns: str) -> sql.Composed:
    names = sql.SQL(", ").join(sql.Identifier(name) for name in columns.split())
    return sql.SQL("copy {} ({}) from stdin (format binary)").format(sql.Identifier(table), names)


_TRADE = "ts market_key outcome trade_id seq side price size value_usd tx_hash"
_CHANGE = "ts market_key outcome event_id seq side price size hash"
_SNAPSHOT = "ts market_key outcome event_id seq bid_prices bid_sizes ask_prices ask_sizes hash"
TRADES, NEW_TRADES = _copy("trades", _TRADE), _copy("new_trades", _TRADE)
CHANGES, NEW_CHANGES = _copy("book_events", _CHANGE), _copy("new_events", _CHANGE)
NEW_SNAPSHOTS = _copy("new_events", _SNAPSHOT)
NEW_QUOTES = _copy("new_quotes", "ts market_key outcome bid ask mid bid_size ask_size")
NEW_PRICES = _copy("new_prices", "market_key outcome ts bid ask mid bid_size ask_size last last_ts")
NEW_BOOKS = _copy(
    "new_books", "market_key outcome seq ts verified bid_prices bid_sizes ask_prices ask_sizes tick_size hash"
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
    ) -> Written:
        """Write a batch and the live state; all of it or, when this raises, nothing.

        `replay` says that much of it may be there already. `fill` says that it is of the past: no live state, no prices
        and books told, and trades that are stored under another instant are left out.
        """
        written = Written()
        now_ms = int(self._clock() * 1000)
        with self.conn.transaction(), self.conn.cursor() as cursor:
            if fill:
                queries.fill_alone(self.conn)
            trades, told = self._trades(cursor, batch.trades, slowly=replay or fill, known=fill)
            changes, written.events = self._events(cursor, batch, slowly=replay or fill)
            written.trades = len(trades)
            quoted = self._quotes(cursor, batch)
            written.quotes = len(quoted)
            if batch.refusals:
                queries.refuse(
                    self.conn,
                    sources=[row.source for row in batch.refusals],
                    reasons=[row.reason for row in batch.refusals],
                    payloads=[row.payload for row in batch.refusals],
                )
            if not fill:
                told += self._live(cursor, batch, books, disavowed, changes=changes)
                moved = set(quoted)
                moved.update((row.token.market_key, row.token.outcome) for row in trades)
                told += [messages.price(row, now_ms) for row in batch.prices.values() if _place(row.token) in moved]
            written.told = self._tell(cursor, told, now_ms)
        written.books = len(books)
        written.committed_ms = int(self._clock() * 1000)
        written.repeats = len(batch.trades) + len(batch.changes) - len(trades) - len(changes)
        if not fill:
            written.instants_ms = [row.ts_ms for row in trades]
            written.instants_ms += [row.ts_ms for row in changes]
        return written

    def _trades(
        self, cursor: psycopg.Cursor[Any], rows: list[Trade], *, slowly: bool, known: bool
    ) -> tuple[Sequence[Trade], list[messages.Message]]:
        """Insert trades; give those that were new, and the messages that tell of them."""
        told: list[messages.Message] = []

        def pieces() -> Iterator[bytes]:
            for some in _pieces(rows):
                yield packing.trades(some)
                told.extend(map(messages.trade, some))  # while the server is busy with what it was just sent

        if not rows or (not slowly and self._straight(TRADES, pieces())):
            return rows, told
        _send(cursor, NEW_TRADES, map(packing.trades, _pieces(rows)))
        if known:
            span = {
                "earliest": _instant(min(row.ts_ms for row in rows)),
                "latest": _instant(max(row.ts_ms for row in rows)),
            }
            queries.forget_known_trades(self.conn, **span)
            queries.forget_hashless_trades(self.conn, **span)
        ids = {trade_id for (trade_id,) in queries.insert_trades(self.conn)}
        inserted = _inserted(rows, ids, lambda row: row.trade_id)
        return inserted, [messages.trade(row) for row in inserted]

    def _events(self, cursor: psycopg.Cursor[Any], batch: Batch, *, slowly: bool) -> tuple[Sequence[Change], int]:
        """Insert changes and snapshots; give the changes that were new, and how many of both were."""
        changes = batch.changes
        straight = not changes or (not slowly and self._straight(CHANGES, map(packing.changes, _pieces(changes))))
        if not straight:
            _send(cursor, NEW_CHANGES, map(packing.changes, _pieces(changes)))
        if batch.snapshots:
            _send(cursor, NEW_SNAPSHOTS, map(packing.snapshots, _pieces(batch.snapshots)))
        if straight and not batch.snapshots:
            return changes, len(changes)
        ids = {event_id for (event_id,) in queries.insert_events(self.conn)}
        if straight:
            return changes, len(changes) + len(ids)
        return _inserted(changes, set(ids), lambda row: row.event_id), len(ids)

    def _quotes(self, cursor: psycopg.Cursor[Any], batch: Batch) -> list[tuple[int, int]]:
        if not batch.quotes:
            return []
        _send(cursor, NEW_QUOTES, map(packing.quotes, _pieces([*batch.quotes.values()])))
        return list(queries.upsert_quotes(self.conn))

    def _live(
        self,
        cursor: psycopg.Cursor[Any],
        batch: Batch,
        books: Sequence[LiveBook],
        disavowed: Sequence[Token],
        *,
        changes: Sequence[Change],
    ) -> list[messages.Message]:
        """Bring the live state up to date; give what subscribers should know of books."""
        told = []
        whole: set[tuple[int, int]] = set()
        if batch.prices:
            _send(cursor, NEW_PRICES, map(packing.prices, _pieces([*batch.prices.values()])))
            queries.upsert_prices(self.conn)
        if disavowed:
            queries.disavow_books(
                self.conn,
                market_keys=[token.market_key for token in disavowed],
                outcomes=[token.outcome for token in disavowed],
            )
        if books:
            _send(cursor, NEW_BOOKS, map(packing.books, _pieces(books)))
            whole = set(queries.newly_verified_books(self.conn))
            queries.upsert_books(self.conn)
            for book in books:
                if book.jumped or _place(book.token) in whole:
                    whole.add(_place(book.token))
                    told.append(messages.snapshot(book))
        return told + messages.deltas(row for row in changes if row.told and _place(row.token) not in whole)

    def _tell(self, cursor: psycopg.Cursor[Any], told: list[messages.Message], now_ms: int) -> int:
        """Add to the stream, last of all: whoever holds the head keeps others waiting."""
        if not told:
            return 0
        told.sort(key=_TS)
        last = queries.advance_stream(self.conn, events=len(told))
        placed = list(enumerate(told, start=last - len(told) + 1))
        _send(cursor, STREAM, (packing.stream_events(now_ms, some) for some in _pieces(placed)))
        return len(told)

    def _straight(self, copy: sql.Composed, pieces: Iterable[bytes]) -> bool:
        """Copy into the table itself, half again as fast; nothing is done when one row was there already."""
        try:
            with self.conn.transaction(), self.conn.cursor() as cursor:
                _send(cursor, copy, pieces)
        except psycopg.errors.UniqueViolation:
            return False
        return True


def _send(cursor: psycopg.Cursor[Any], copy: sql.Composed, pieces: Iterable[bytes]) -> None:
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


def _place(token: Token) -> tuple[int, int]:
    return token.market_key, token.outcome
