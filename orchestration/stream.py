"""Stream messages: numbered last in the transaction that wrote the data that they describe."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.binary_copy import HEADER, LENGTH, TRAILER, microseconds, nullable
from sql.queries import feed as queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import psycopg

MESSAGES_PER_PIECE = 500  # a piece fits the socket's buffer: encoding goes on while the server reads it
_COPY = "copy stream_events (seq, ts, type, market_id, wallet, message) from stdin (format binary)"
_EVENT = struct.Struct(">hiqiq").pack
_encode = msgspec.json.Encoder().encode


class StreamMessage(msgspec.Struct, gc=False):
    """A message, encoded except for its sequence number: that is assigned while the stream's head is locked."""

    type: str
    ts: int
    """Unix milliseconds, as in the message."""
    market_id: str | None
    rest: bytes
    wallet: bytes | None = None
    """Sent only to subscribers who follow this wallet."""

    def at(self, seq: int) -> bytes:
        """Return the message's text with its sequence number."""
        return b'{"type":"%b","seq":%d,%b' % (self.type.encode(), seq, self.rest)


class _Rest(msgspec.Struct, gc=False):
    ts: int
    market_id: str | None
    data: Any


def message(type_: str, ts: int, market_id: str | None, data: Any, wallet: bytes | None = None) -> StreamMessage:
    """Build a message; `data` is a record as the API serves it: a struct, a dict, or JSON as `msgspec.Raw`."""
    return StreamMessage(type_, ts, market_id, _encode(_Rest(ts, market_id, data))[1:], wallet)


def publish(conn: psycopg.Connection[Any], messages: Sequence[StreamMessage], now_ms: int) -> int:
    """Append messages to the stream, in this order; return the last number.

    Called last in a transaction: whoever locks the stream's head keeps all other writers waiting until the commit.
    """
    if not messages:
        return 0
    last = int(queries.advance_stream(conn, events=len(messages)))
    with conn.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(HEADER)
        for piece in packed(last - len(messages) + 1, messages, now_ms):
            copy.write(piece)
        copy.write(TRAILER)
    return last


def packed(first: int, messages: Sequence[StreamMessage], now_ms: int) -> Iterator[bytes]:
    """Encode rows of `stream_events`, the messages numbered from `first`, in pieces."""
    ts = microseconds(now_ms)
    for start in range(0, len(messages), MESSAGES_PER_PIECE):
        values: list[bytes] = []
        for seq, each in enumerate(messages[start : start + MESSAGES_PER_PIECE], first + start):
            text = each.at(seq)
            values += (
                _EVENT(6, 8, seq, 8, ts),
                _columns(each.type, each.market_id, each.wallet),
                LENGTH(len(text)),
                text,
            )
        yield b"".join(values)


@lru_cache(maxsize=20_000)
def _columns(type_: str, market_id: str | None, wallet: bytes | None) -> bytes:
    return nullable(type_.encode()) + nullable(None if market_id is None else market_id.encode()) + nullable(wallet)
