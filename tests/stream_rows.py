"""The stream's messages as rows, and rows into the stream: past all that numbers and publishes them."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from sql import stream_blocks
from sql.queries import stream as queries
from sql.stream_blocks import BlockError, StreamMessage
from sql.stream_reader import StoredBlock, StreamReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import psycopg

    from orchestration.ingest.storage.rows import Token

SELECT = "select seq_from, seq_to, ts, data from stream_blocks order by seq_from"


class StreamRow(NamedTuple):
    """A message as subscribers receive it, and what it is filtered by."""

    seq: int
    ts: datetime
    type: str
    market_id: str | None
    wallet: bytes | None
    message: str


def stored(conn: psycopg.Connection) -> list[StoredBlock]:
    """Return the blocks."""
    return [StoredBlock(*row) for row in conn.execute(SELECT)]


def rows(conn: psycopg.Connection, type_: str | None = None, known: Iterable[Token] = ()) -> list[StreamRow]:
    """Return all messages, or those of a type, in order; `known` are outcomes that the catalogue need not have."""

    def run(conn: psycopg.Connection, query: Any, arguments: dict[str, Any]) -> Any:
        found = list(query(conn, **arguments))
        if query is queries.outcome_ids:
            found += [(each.market_key, each.outcome, each.market_id, each.token_id) for each in known]
        return found

    reader, found = StreamReader(run), []
    for block in stored(conn):
        page = reader.unpack(conn, [block], block.seq_from - 1, block.seq_to)
        assert page.missing == []
        found += [
            StreamRow(event.seq, block.ts, event.type, event.market_id, event.wallet, event.message.decode())
            for event in page.events
        ]
    return [row for row in found if type_ in {None, row.type}]


def add(conn: psycopg.Connection, seq: int, messages: Sequence[StreamMessage], ts: datetime | None = None) -> None:
    """Store messages from a number on, without moving the head."""
    for block in stream_blocks.split(messages):
        conn.execute(
            "insert into stream_blocks (seq_from, seq_to, ts, data) values (%s, %s, %s, %s)",
            [seq, seq + len(block) - 1, ts or datetime.now(UTC), stream_blocks.pack(block)],
        )
        seq += len(block)


def rewrite(conn: psycopg.Connection, change: Callable[[int, StreamMessage], StreamMessage | None]) -> None:
    """Replace messages, or remove those for which there is none; what cannot be read stays."""
    for block in stored(conn):
        try:
            unpacked = stream_blocks.unpack(block.data, block.seq_to - block.seq_from + 1)
        except BlockError:
            continue
        found = []
        for seq, index, rest in zip(
            range(block.seq_from, block.seq_to + 1), unpacked.indexes, unpacked.rests(), strict=True
        ):
            type_, market, outcome, wallet = unpacked.heads[index]
            before = StreamMessage(type_, 0, market, rest, wallet, outcome)
            found.append((seq, before, change(seq, before)))
        if any(after is not before for _, before, after in found):
            conn.execute("delete from stream_blocks where seq_from = %s", [block.seq_from])
            for kept, group in groupby(found, lambda each: each[2] is not None):
                if kept:
                    messages = list(group)
                    add(conn, messages[0][0], [after for _, _, after in messages], block.ts)


def remove(conn: psycopg.Connection, gone: Callable[[int], bool]) -> None:
    """Remove messages by number."""
    rewrite(conn, lambda seq, message: None if gone(seq) else message)


def spoil(conn: psycopg.Connection, seq: int) -> None:
    """Damage the block that has a message."""
    conn.execute(
        "update stream_blocks set data = set_byte(data, length(data) / 2, 255 - get_byte(data, length(data) / 2))"
        " where %s between seq_from and seq_to",
        [seq],
    )
