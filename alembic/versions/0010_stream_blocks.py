"""The stream's messages are kept in compressed blocks, in a tenth of the space."""

from __future__ import annotations

import json
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembic import context, op

from sql import stream_blocks, timescale
from sql.stream_blocks import StreamMessage
from sql.stream_reader import StoredBlock, StreamReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

revision, down_revision = "0010", "0009"

FOLDER = Path(__file__).with_suffix("")
BLOCKS = 20  # read at once


def upgrade() -> None:
    _run("up")
    if not context.is_offline_mode():
        _pack()
    op.execute("drop table stream_events")


def downgrade() -> None:
    _run("down")
    if not context.is_offline_mode():
        _unpack()
    op.execute("drop table stream_blocks")


def _run(name: str) -> None:
    for statement in timescale.statements(FOLDER / f"{name}.sql"):
        op.execute(statement)


def _connection() -> Any:
    return op.get_bind().connection.driver_connection


def _pages(conn: Any, table: str, query: str, size: int) -> Iterator[list[Any]]:
    """Yield the table's rows in pages, in order of their first column.

    A service of another release may still publish: the last rows are read under a lock, and none are added after them.
    """
    after, locked = 0, False
    while True:
        rows = conn.execute(query, (after, size)).fetchall()
        if rows:
            yield rows
            after = rows[-1][0]
        if len(rows) < size:
            if locked:
                return
            conn.execute(f"lock table {table} in access exclusive mode")
            locked = True


def _pack() -> None:
    """Pack rows that follow each other and were published together, a batch at a time."""
    conn = _connection()
    query = """select seq, ts, type, market_id, wallet, message from stream_events
        where seq > %s order by seq limit %s"""
    rows = chain.from_iterable(_pages(conn, "stream_events", query, stream_blocks.MAX_MESSAGES))
    for seq, ts, messages in _published(rows):
        begin = seq
        for block in stream_blocks.split(messages):
            values = (begin, begin + len(block) - 1, ts, stream_blocks.pack(block))
            conn.execute("insert into stream_blocks (seq_from, seq_to, ts, data) values (%s, %s, %s, %s)", values)
            begin += len(block)


def _published(rows: Iterable[Any]) -> Iterator[tuple[int, datetime, list[StreamMessage]]]:
    """Yield the number of the first, the time, and the messages that were published together."""
    for (_, ts), group in groupby(enumerate(rows), lambda each: (each[1][0] - each[0], each[1][1])):
        first, messages = None, []
        for _, (seq, _, type_, market_id, wallet, text) in group:
            first = seq if first is None else first
            messages.append(StreamMessage(type_, 0, market_id, _rest(seq, type_, text), wallet))
            if len(messages) == stream_blocks.MAX_MESSAGES:
                yield first, ts, messages
                first, messages = None, []
        if first is not None:
            yield first, ts, messages


def _rest(seq: int, type_: str, text: str) -> bytes:
    """Return a message without type and number, which come first; one that was written otherwise is written anew."""
    begin = f'{{"type":"{type_}","seq":{seq},'
    if text.startswith(begin):
        return text[len(begin) :].encode()
    fields = json.loads(text)
    kept = {name: fields.get(name) for name in ("ts", "market_id", "data")}
    return json.dumps(kept, separators=(",", ":"), ensure_ascii=False).encode()[1:]


def _unpack() -> None:
    """Unpack the blocks, a few at a time."""
    conn, reader = _connection(), StreamReader()
    query = "select seq_from, seq_to, ts, data from stream_blocks where seq_from > %s order by seq_from limit %s"
    for blocks in _pages(conn, "stream_blocks", query, BLOCKS):
        for row in map(StoredBlock._make, blocks):
            page = reader.unpack(conn, [row], row.seq_from - 1, row.seq_to)
            with (
                conn.cursor() as cursor,
                cursor.copy("copy stream_events (seq, ts, type, market_id, wallet, message) from stdin") as copy,
            ):
                for event in page.events:
                    text = event.message.decode()
                    copy.write_row((event.seq, row.ts, event.type, event.market_id, event.wallet, text))
