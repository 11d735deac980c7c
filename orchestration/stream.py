"""Stream messages: numbered last in the transaction that wrote the data that they describe."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import msgspec

from orchestration.ingest.storage.copy_format import HEADER, PG_EPOCH_MS, TRAILER
from sql.queries import feed as queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import psycopg

EVENTS_PER_WRITE = 500  # events encoded at a time
_COPY = "copy stream_events (seq, ts, type, market_id, wallet, message) from stdin (format binary)"
_EVENT = struct.Struct(">hiqiq").pack
_LENGTH = struct.Struct(">i").pack
_NULL = _LENGTH(-1)
_encode = msgspec.json.Encoder().encode


class StreamMessage(msgspec.Struct, frozen=True, gc=False):
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
    first = last - len(messages) + 1
    with conn.cursor() as cursor, cursor.copy(_COPY) as copy:
        copy.write(HEADER)
        for start in range(0, len(messages), EVENTS_PER_WRITE):
            copy.write(
                _packed(first + start, messages[start : start + EVENTS_PER_WRITE], (now_ms - PG_EPOCH_MS) * 1000)
            )
        copy.write(TRAILER)
    return last


def _packed(first: int, messages: Iterable[StreamMessage], ts_us: int) -> bytes:
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
