"""Encodes rows in PostgreSQL's binary COPY format: one precompiled `struct` per table, about a microsecond a row."""

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from orchestration.binary_copy import NULL, microseconds, nullable
from orchestration.ingest.storage.ids import as_bytes
from orchestration.ingest.storage.rows import Change, LiveBook, LivePrice, Quote, Snapshot, TradeRow, mid

_TRADE = struct.Struct(">hiqiiihiqiqihiqiqiq").pack
_CHANGE = struct.Struct(">hiqiiihiqiqihiiiq").pack
_STATE = struct.Struct(">hihiiihiqiq").pack
_BIGINT = struct.Struct(">iq").pack
_ARRAY = struct.Struct(">iiiiii").pack

_INT4, _INT8 = 23, 20  # type OIDs in array headers
_ELEMENT4 = np.dtype([("length", ">i4"), ("value", ">i4")])
_ELEMENT8 = np.dtype([("length", ">i4"), ("value", ">i8")])


def _bigint(value: int | None) -> bytes:
    return NULL if value is None else _BIGINT(8, value)


def _array(values: Sequence[int], element: "np.dtype[np.void]", oid: int, size: int) -> bytes:
    if not values:
        return struct.pack(">iiii", 12, 0, 0, oid)
    elements = np.empty(len(values), dtype=element)
    elements["length"] = size
    elements["value"] = values
    return _ARRAY(20 + elements.nbytes, 1, 0, oid, len(values), 1) + elements.tobytes()


def _ints(values: Sequence[int]) -> bytes:
    return _array(values, _ELEMENT4, _INT4, 4)


def _bigints(values: Sequence[int]) -> bytes:
    return _array(values, _ELEMENT8, _INT8, 8)


# fmt: off
def trades(rows: Iterable[TradeRow]) -> bytes:
    """Encode ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash."""
    return b"".join(
        _TRADE(
            10, 8, microseconds(row.ts_ms), 4, row.token.market_key, 2, row.token.outcome, 8, row.trade_id, 8, row.seq,
            2, row.side, 8, row.price, 8, row.size, 8, row.value_usd,
        ) + nullable(row.tx_hash)
        for row in rows
    )


def changes(rows: Iterable[Change]) -> bytes:
    """Encode ts, market_key, outcome, event_id, seq, side, price, size, hash."""
    return b"".join(
        _CHANGE(
            9, 8, microseconds(row.ts_ms), 4, row.token.market_key, 2, row.token.outcome, 8, row.event_id, 8, row.seq,
            2, row.side, 4, row.price, 8, row.size,
        ) + nullable(as_bytes(row.hash))
        for row in rows
    )


def snapshots(rows: Iterable[Snapshot]) -> bytes:
    """Encode `new_state` rows of kind 1."""
    return b"".join(
        _STATE(19, 2, 1, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, row.seq)
        + _BIGINT(8, row.event_id) + NULL * 8
        + _ints([price for price, _ in row.bids]) + _bigints([size for _, size in row.bids])
        + _ints([price for price, _ in row.asks]) + _bigints([size for _, size in row.asks])
        + nullable(as_bytes(row.hash))
        for row in rows
    )


def quotes(rows: Iterable[Quote]) -> bytes:
    """Encode `new_state` rows of kind 2."""
    return b"".join(
        _STATE(19, 2, 2, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, 0)
        + NULL * 2 + _best(row) + NULL * 7
        for row in rows
    )


def prices(rows: Iterable[LivePrice]) -> bytes:
    """Encode `new_state` rows of kind 3."""
    return b"".join(
        _STATE(19, 2, 3, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, 0)
        + NULL * 2 + _best(row)
        + _bigint(row.last) + _bigint(None if row.last_ms is None else microseconds(row.last_ms)) + NULL * 5
        for row in rows
    )


def books(rows: Iterable[LiveBook]) -> bytes:
    """Encode `new_state` rows of kind 4."""
    return b"".join(
        _STATE(19, 2, 4, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, row.seq)
        + NULL + _bigint(row.tick_size) + NULL * 6 + _BIGINT(8, microseconds(row.anchored_ms))
        + _ints(row.bid_prices) + _bigints(row.bid_sizes) + _ints(row.ask_prices) + _bigints(row.ask_sizes)
        + nullable(as_bytes(row.hash))
        for row in rows
    )


def _best(row: Quote | LivePrice) -> bytes:
    return (
        _bigint(row.bid) + _bigint(row.ask) + _bigint(mid(row.bid, row.ask))
        + _bigint(row.bid_size) + _bigint(row.ask_size)
    )
# fmt: on
