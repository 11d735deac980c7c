"""Stream messages: numbered last in the transaction that wrote the data that they describe."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import msgspec

from sql import stream_blocks
from sql.queries import stream as queries
from sql.stream_blocks import StreamMessage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

__all__ = ["StreamMessage", "message", "outcome_message", "publish"]

_encode = msgspec.json.Encoder().encode


class _Rest(msgspec.Struct, gc=False):
    ts: int
    market_id: str | None
    data: Any


def message(type_: str, ts: int, market_id: str | None, data: Any, wallet: bytes | None = None) -> StreamMessage:
    """Build a message; `data` is a record as the API serves it: a struct, a dict, or JSON as `msgspec.Raw`."""
    return StreamMessage(type_, ts, market_id, _encode(_Rest(ts, market_id, data))[1:], wallet)


def outcome_message(type_: str, ts: int, market_key: int, outcome: int, data: Any) -> StreamMessage:
    """Build a message of an outcome; `data` has `stream_blocks.MARKET` and `TOKEN` in the place of its IDs."""
    rest = _encode(_Rest(ts, stream_blocks.MARKET, data))[1:]
    return StreamMessage(type_, ts, market_key, rest, None, outcome)


def publish(conn: psycopg.Connection[Any], messages: Sequence[StreamMessage], now_ms: int) -> int:
    """Append messages to the stream, in this order; return the last number.

    Called last in a transaction: whoever locks the stream's head keeps all other writers waiting until the commit.
    """
    if not messages:
        return 0
    blocks = [(len(block), stream_blocks.pack(block)) for block in stream_blocks.split(messages)]
    ts = datetime.fromtimestamp(now_ms / 1000, UTC)
    last = int(queries.advance(conn, events=len(messages)))
    ends = accumulate((size for size, _ in blocks), initial=last - len(messages))
    rows = [
        {"seq_from": before + 1, "seq_to": before + size, "ts": ts, "data": data}
        for before, (size, data) in zip(ends, blocks, strict=False)
    ]
    queries.add_blocks(conn, rows)
    return last
