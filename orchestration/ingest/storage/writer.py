"""Writes batches, each in one short transaction: rows already stored stay, and are not published again."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from operator import attrgetter
from time import time
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg import sql

from orchestration import stream
from orchestration.binary_copy import HEADER, TRAILER
from orchestration.ingest.storage import copy_format, messages, records
from orchestration.ingest.storage.rows import Change, LiveBook, Token, TradeRow, WriteBatch
from sql.queries import feed as queries

Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]
OutcomeKey = tuple[Any, ...]  # market key and outcome
Row = TypeVar("Row")


def _copy(table: str, columns: str) -> sql.Composed:
    names = sql.SQL(", ").join(sql.Identifier(name) for name in columns.split())
    return sql.SQL("copy {} ({}) from stdin (format binary)").format(sql.Identifier(table), names)


_TRADE = "ts market_key outcome trade_id seq side price size value_usd tx_hash"
_CHANGE = "ts market_key outcome event_id seq side price size hash"
TRADES, NEW_TRADES = _copy("trades", _TRADE), _copy("new_trades", _TRADE)
CHANGES, NEW_CHANGES = _copy("book_events", _CHANGE), _copy("new_changes", _CHANGE)
ROWS_PER_PIECE = 500  # rows per COPY write
_TS = attrgetter("ts")


class WriteResult(msgspec.Struct):
    """Counts of what a batch added."""

    trades: int = 0
    events: int = 0
    quotes: int = 0
    books: int = 0
    published: int = 0
    repeats: int = 0
    committed_ms: int = 0
    instants_ms: list[int] = []  # timestamps of pushed rows that were actually inserted, for the lag

    @property
    def rows(self) -> int:
        """Time-series rows added."""
        return self.trades + self.events + self.quotes

    def add(self, other: "WriteResult") -> None:
        """Add another batch's counts."""
        for name in ("trades", "events", "quotes", "books", "published", "repeats"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.committed_ms = max(self.committed_ms, other.committed_ms)
        self.instants_ms = self.instants_ms + other.instants_ms


class Writer:
    """Writes batches over a connection of its own."""

    def __init__(self, conn: Connection, *, has_trade_ids: bool = False, clock: Callable[[], float] = time) -> None:
        self.conn = conn
        self._has_trade_ids = has_trade_ids
        self._clock = clock
        self._replayed: set[OutcomeKey] = set()  # outcomes for which the current replay has added changes
        conn.adapters.register_dumper(records.Records, records.RecordsDumper)
        with conn.transaction():
            queries.make_room(conn)
            self._feed_row = queries.feed_row(conn)

    def write(
        self,
        batch: WriteBatch,
        books: Sequence[LiveBook] = (),
        unverified: Sequence[Token] = (),
        *,
        replay: bool = False,
        fill: bool = False,
        publish: bool = True,
    ) -> WriteResult:
        """Write a batch and the live state; all of it or, when this raises, nothing.

        `replay`: many rows may be stored already. `fill`: rows of the past, so no live state is written, and no prices
        and books are published. Both skip trades stored under another timestamp. `publish=False`: publish nothing to
        the stream, for old data.
        """
        if not replay:
            self._replayed.clear()
        if not (replay or fill):
            with suppress(psycopg.errors.UniqueViolation):  # some rows were stored already
                return self._write(batch, books, unverified, direct=True, fill=False, publish=publish)
        return self._write(batch, books, unverified, direct=False, fill=fill, publish=publish)

    def _write(
        self,
        batch: WriteBatch,
        books: Sequence[LiveBook],
        unverified: Sequence[Token],
        *,
        direct: bool,
        fill: bool,
        publish: bool,
    ) -> WriteResult:
        """Write a batch; `direct` copies into the tables: half again as fast, but raises if a row is stored already."""
        now_ms = int(self._clock() * 1000)
        with self.conn.transaction(), self.conn.cursor() as cursor:
            if not direct:
                queries.fill_alone(self.conn)
            trades, outgoing = self._trades(cursor, batch.trades, direct=direct, fill=fill)
            changes = self._changes(cursor, batch.changes, direct=direct)
            snapshots, quoted, shown = self._state(cursor, batch, books, unverified, fill=fill)
            if not fill:
                whole = {
                    book.token.token_id for book in books if book.needs_snapshot or _outcome_key(book.token) in shown
                }
                outgoing += [messages.snapshot(book) for book in books if book.token.token_id in whole]
                current = changes if direct else self._current(batch.changes, changes)
                outgoing += messages.deltas(row for row in current if row.published and row.token.token_id not in whole)
                moved = {_outcome_key(row.token) for row in trades}.union(quoted)
                outgoing += [
                    messages.price(row, now_ms) for row in batch.prices.values() if _outcome_key(row.token) in moved
                ]
            if publish:  # last of all: while a writer locks the stream's head, others wait
                stream.publish(self.conn, sorted(outgoing, key=_TS), now_ms)
        return WriteResult(
            trades=len(trades),
            events=len(changes) + snapshots,
            quotes=len(quoted),
            books=len(books),
            published=len(outgoing),
            repeats=len(batch.trades) + len(batch.changes) - len(trades) - len(changes),
            committed_ms=int(self._clock() * 1000),
            instants_ms=[] if fill else [row.ts_ms for row in trades] + [row.ts_ms for row in changes],
        )

    def _trades(
        self, cursor: Cursor, rows: list[TradeRow], *, direct: bool, fill: bool
    ) -> tuple[Sequence[TradeRow], list[stream.StreamMessage]]:
        """Insert trades; return the new ones and their messages."""
        if not rows:
            return rows, []
        if direct:
            outgoing: list[stream.StreamMessage] = []

            def pieces() -> Iterator[bytes]:
                for some in _pieces(rows):
                    yield copy_format.trades(some)
                    outgoing.extend(map(messages.trade, some))  # while the server processes the last piece

            _send(cursor, TRADES, pieces())
            return rows, outgoing
        _send(cursor, NEW_TRADES, map(copy_format.trades, _pieces(rows)))
        span = {
            "earliest": _instant(min(row.ts_ms for row in rows)),
            "latest": _instant(max(row.ts_ms for row in rows)),
        }
        queries.forget_known_trades(self.conn, **span)  # in a replay, those of a gap that was filled meanwhile
        if fill and not self._has_trade_ids:
            queries.forget_hashless_trades(self.conn, **span)
        ids = {trade_id for (trade_id,) in queries.insert_trades(self.conn)}
        inserted = _inserted(rows, ids, lambda row: row.trade_id)
        return inserted, [messages.trade(row) for row in inserted]

    def _changes(self, cursor: Cursor, rows: list[Change], *, direct: bool) -> Sequence[Change]:
        """Insert changes; return the new ones."""
        if not rows:
            return rows
        _send(cursor, CHANGES if direct else NEW_CHANGES, map(copy_format.changes, _pieces(rows)))
        if direct:
            return rows
        ids = {event_id for (event_id,) in queries.insert_changes(self.conn)}
        return _inserted(rows, ids, lambda row: row.event_id)

    def _current(self, rows: list[Change], inserted: Sequence[Change]) -> Sequence[Change]:
        """Return all changes of outcomes that got new ones: a level's newest total may be stored already."""
        self._replayed.update(_outcome_key(row.token) for row in inserted)
        return [row for row in rows if _outcome_key(row.token) in self._replayed]

    def _state(
        self, cursor: Cursor, batch: WriteBatch, books: Sequence[LiveBook], unverified: Sequence[Token], *, fill: bool
    ) -> tuple[int, list[OutcomeKey], set[OutcomeKey]]:
        """Write snapshots, quotes, live state; return the count of new snapshots, outcomes with new quotes, books."""
        prices = () if fill else batch.prices.values()
        snapshots, quoted, shown = self.conn.cursor(), self.conn.cursor(), self.conn.cursor()
        with self.conn.pipeline():  # one round trip for all of it
            if batch.snapshots:
                snapshots.execute(queries.insert_snapshots.sql, self._rows(records.snapshots(batch.snapshots)))
            if batch.quotes:
                quoted.execute(queries.upsert_quotes.sql, self._rows(records.quotes(batch.quotes.values())))
            if prices:
                cursor.execute(queries.upsert_prices.sql, self._rows(records.prices(prices)))
            if unverified:
                cursor.execute(queries.disavow_books.sql, _outcomes(unverified))
            if books:
                shown.execute(queries.newly_verified_books.sql, _outcomes([book.token for book in books]))
                cursor.execute(queries.upsert_books.sql, self._rows(records.books(books)))
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

    def _rows(self, rows: Sequence[bytes]) -> dict[str, records.Records]:
        return {"rows": records.Records(self._feed_row, rows)}


def _send(cursor: Cursor, copy: sql.Composed, pieces: Iterable[bytes]) -> None:
    with cursor.copy(copy) as server:
        server.write(HEADER)
        for piece in pieces:
            server.write(piece)
        server.write(TRAILER)


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Split rows so that a piece fits the socket's buffer: encoding goes on while the server reads it."""
    for start in range(0, len(rows), ROWS_PER_PIECE):
        yield rows[start : start + ROWS_PER_PIECE]


def _inserted(rows: Sequence[Row], ids: set[int], id_of: Callable[[Row], int]) -> Sequence[Row]:
    """Return the rows that were inserted; of duplicates in one batch, only the first was."""
    picked = []
    for row in rows:
        row_id = id_of(row)
        if row_id in ids:
            ids.discard(row_id)
            picked.append(row)
    return picked


def _instant(ts_ms: int) -> datetime:
    return datetime.fromtimestamp(ts_ms / 1000, UTC)


def _outcomes(tokens: Sequence[Token]) -> dict[str, list[Any]]:
    market_keys, outcomes = map(list, zip(*map(_outcome_key, tokens), strict=True))
    return {"market_keys": market_keys, "outcomes": outcomes}


def _outcome_key(token: Token) -> OutcomeKey:
    return token.market_key, token.outcome
