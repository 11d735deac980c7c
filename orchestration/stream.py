"""What subscribers are told: messages, numbered last of all in the transaction that wrote what they tell of."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.ingest.storage.copy_format import HEADER, PG_EPOCH_MS, TRAILER
from sql.queries import feed as queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import psycopg

PIECE = 500  # events packed at a time
_COPY = "copy stream_events (seq, ts, type, market_id, wallet, message) from stdin (format binary)"
_EVENT = struct.Struct(">hiqiq").pack
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)
_encode = msgspec.json.Encoder().encode


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message, encoded but for its place in the stream: that is given while the stream's head is held."""

    type: str
    ts: int
    """Unix milliseconds, as the message has it."""
    market_id: str | None
    rest: bytes
    wallet: bytes | None = None
    """Told only to those who follow this wallet."""

    def at(self, seq: int) -> bytes:
        """Give its text."""
        return b'{"type":"%b","seq":%d,%b' % (self.type.encode(), seq, self.rest)


class _Rest(msgspec.Struct, gc=False):
    ts: int
    market_id: str | None
    data: Any


def message(type_: str, ts: int, market_id: str | None, data: Any, wallet: bytes | None = None) -> Message:
    """Put a message together; `data` is a record as the API serves it: a struct, a dict, or JSON as `msgspec.Raw`."""
    return Message(type_, ts, market_id, _encode(_Rest(ts, market_id, data))[1:], wallet)


def tell(conn: psycopg.Connection[Any], messages: Sequence[Message], now_ms: int) -> int:
    """Add messages to the stream, in this order; give the last number.

    Called last in a transaction: whoever holds the stream's head keeps all other writers waiting until the commit.
    """
    if not messages:
        return 0
    last = int(queries.advance_stream(conn, events=len(messages)))
    first = last - len(messages) + 1
    with conn.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(HEADER)
        for start in range(0, len(messages), PIECE):
            copy.write(_packed(first + start, messages[start : start + PIECE], (now_ms - PG_EPOCH_MS) * 1000))
        copy.write(TRAILER)
    return last


def _packed(first: int, messages: Iterable[Message], ts_us: int) -> bytes:
    packed = []
    for seq, each in enumerate(messages, first):
        text = each.at(seq)
        packed += [
            _EVENT(6, 8, seq, 8, ts_us),
            _bytes(each.type.encode()),
            _NULL if each.market_id is None else _bytes(each.market_id.encode()),
            _NULL if each.wallet is None else _bytes(each.wallet),
            _bytes(text),
        ]
    return b"".join(packed)


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value
