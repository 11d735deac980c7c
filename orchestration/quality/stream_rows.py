"""The stream's new messages as rows, unpacked from their blocks, for their suite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sql.queries import quality as queries
from sql.queries import stream
from sql.stream_reader import StoredBlock, StreamReader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

SHARE = 100  # one in so many is checked, as they are many, and alike
EVENTS = 20_000  # read at once


def lay_out(conn: psycopg.Connection[Any], *, after: int | None, most: int) -> int:
    """Copy a sample of the new messages, and where some cannot be read, into the temporary table; return how many."""
    reader, rows = StreamReader(), 0
    begin, end = queries.new_stream_events(conn, after=after, most=most)
    while begin < end:
        upto = min(begin + EVENTS, end)
        blocks = [StoredBlock(*row) for row in stream.between(conn, after=begin, upto=upto)]
        sample = [row for block in blocks for row in _rows(conn, reader, block, begin, upto)]
        with conn.cursor().copy("copy fresh_stream_events (seq, ts, type, market_id, message) from stdin") as copy:
            for row in sample:
                copy.write_row(row)
        rows += len(sample)
        begin = upto
    return rows


def _rows(
    conn: psycopg.Connection[Any], reader: StreamReader, block: StoredBlock, after: int, upto: int
) -> Iterator[tuple[Any, ...]]:
    after, upto = max(block.seq_from - 1, after), min(block.seq_to, upto)
    page = reader.unpack(conn, [block], after, upto, lambda seq, _: seq % SHARE == 0)
    for event in page.events:
        yield event.seq, block.ts, event.type, event.market_id, event.message.decode(errors="replace")
    for seq, _ in page.missing:
        yield seq, block.ts, None, None, None
