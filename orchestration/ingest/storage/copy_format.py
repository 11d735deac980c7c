"""Encodes rows in PostgreSQL's binary COPY format: one precompiled `struct` per table, about a microsecond a row."""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat

import numpy as np

from orchestration.binary_copy import NULL, PG_EPOCH_S, microseconds, nullable
from orchestration.ingest.storage.ids import as_bytes, change_digest
from orchestration.ingest.storage.rows import Change, LiveBook, LivePrice, Quote, Snapshot, TradeRow, mid

_TRADE = struct.Struct(">hiqiiihiqiqihiqiqiq").pack
_HASH_BYTES = 20  # of the exchange's hashes
_CHANGE = struct.Struct(f">hiqiiihi8siqihiiiqi{_HASH_BYTES}s").pack
_STATE = struct.Struct(">hihiiihiqiq").pack
_BIGINT = struct.Struct(">iq").pack
_BEST = struct.Struct(">iqiqiqiqiq").pack
_ARRAY = struct.Struct(">iiiiii").pack

_EPOCH_MS = PG_EPOCH_S * 1000
_INT4, _INT8 = 23, 20  # type OIDs in array headers
_ELEMENT4 = np.dtype([("length", ">i4"), ("value", ">i4")])
_ELEMENT8 = np.dtype([("length", ">i4"), ("value", ">i8")])


def _bigint(value: int | None) -> bytes:
    return NULL if value is None else _BIGINT(8, value)


def _hash_values(hashes: Sequence[str]) -> list[bytes]:
    """Return the hashes in bytes if all of them are of the exchange, as they usually are; otherwise nothing."""
    try:
        joined = bytes.fromhex("".join(hashes))
    except ValueError:
        return []
    if {*map(len, hashes)} != {2 * _HASH_BYTES} or len(joined) != _HASH_BYTES * len(hashes):  # less if there are blanks
        return []
    return [joined[at : at + _HASH_BYTES] for at in range(0, len(joined), _HASH_BYTES)]


def _arrays(columns: Sequence[Sequence[int]], element: "np.dtype[np.void]", oid: int, size: int) -> Iterator[bytes]:
    """Encode arrays, all in one: a call of numpy costs as much as a hundred values."""
    elements = np.empty(sum(map(len, columns)), dtype=element)
    elements["length"] = size
    elements["value"] = [*chain.from_iterable(columns)]
    data, end = elements.tobytes(), 0
    for values in columns:
        begin, end = end, end + len(values) * element.itemsize
        if values:
            yield _ARRAY(20 + end - begin, 1, 0, oid, len(values), 1) + data[begin:end]
        else:
            yield struct.pack(">iiii", 12, 0, 0, oid)


def _levels(books: Iterable[tuple[Sequence[int], ...]]) -> list[bytes]:
    """Encode bid prices, bid sizes, ask prices and ask sizes of each book."""
    columns = [*chain.from_iterable(books)]
    prices = [*_arrays(columns[::2], _ELEMENT4, _INT4, 4)]
    sizes = [*_arrays(columns[1::2], _ELEMENT8, _INT8, 8)]
    sides = zip(prices[::2], sizes[::2], prices[1::2], sizes[1::2], strict=True)
    return [b"".join(side) for side in sides]


def _split(side: Sequence[tuple[int, int]]) -> tuple[Sequence[int], Sequence[int]]:
    prices, sizes = zip(*side, strict=True) if side else ((), ())
    return prices, sizes


def _best(row: Quote | LivePrice) -> bytes:
    bid, ask, bid_size, ask_size = row.bid, row.ask, row.bid_size, row.ask_size
    if bid is None or ask is None or bid_size is None or ask_size is None:
        return b"".join(map(_bigint, (bid, ask, mid(bid, ask), bid_size, ask_size)))
    return _BEST(8, bid, 8, ask, 8, (bid + ask) // 2, 8, bid_size, 8, ask_size)


# fmt: off
def trades(rows: Iterable[TradeRow]) -> bytes:
    """Encode ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash."""
    return b"".join([
        _TRADE(
            10, 8, microseconds(row.ts_ms), 4, row.token.market_key, 2, row.token.outcome, 8, row.trade_id, 8, row.seq,
            2, row.side, 8, row.price, 8, row.size, 8, row.value_usd,
        ) + nullable(row.tx_hash)
        for row in rows
    ])


def changes(rows: Sequence[Change]) -> bytes:
    """Encode ts, market_key, outcome, event_id, seq, side, price, size, hash."""
    values = _hash_values([row.hash for row in rows])
    encoded = [
        _CHANGE(
            9, 8, (row.ts_ms - _EPOCH_MS) * 1000, 4, (token := row.token).market_key, 2, token.outcome,
            8, change_digest(token.token_id, row.ts_ms, row.hash, row.side, row.price, row.size, row.nth),
            8, row.seq, 2, row.side, 4, row.price, 8, row.size, _HASH_BYTES, value,
        )
        for row, value in zip(rows, values or repeat(b""), strict=bool(values))
    ]
    if not values:
        without = -4 - _HASH_BYTES
        hashes = [nullable(as_bytes(row.hash)) for row in rows]
        encoded = [row[:without] + hash_ for row, hash_ in zip(encoded, hashes, strict=True)]
    return b"".join(encoded)


def snapshots(rows: Sequence[Snapshot]) -> bytes:
    """Encode `new_state` rows of kind 1."""
    books = _levels((*_split(row.bids), *_split(row.asks)) for row in rows)
    return b"".join([
        _STATE(19, 2, 1, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, row.seq)
        + _BIGINT(8, row.event_id) + NULL * 8 + levels + nullable(as_bytes(row.hash))
        for row, levels in zip(rows, books, strict=True)
    ])


def quotes(rows: Iterable[Quote]) -> bytes:
    """Encode `new_state` rows of kind 2."""
    return b"".join([
        _STATE(19, 2, 2, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, 0)
        + NULL * 2 + _best(row) + NULL * 7
        for row in rows
    ])


def prices(rows: Iterable[LivePrice]) -> bytes:
    """Encode `new_state` rows of kind 3."""
    return b"".join([
        _STATE(19, 2, 3, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, 0)
        + NULL * 2 + _best(row)
        + _bigint(row.last) + _bigint(None if row.last_ms is None else microseconds(row.last_ms)) + NULL * 5
        for row in rows
    ])


def books(rows: Sequence[LiveBook]) -> bytes:
    """Encode `new_state` rows of kind 4."""
    found = _levels((row.bid_prices, row.bid_sizes, row.ask_prices, row.ask_sizes) for row in rows)
    return b"".join([
        _STATE(19, 2, 4, 4, row.token.market_key, 2, row.token.outcome, 8, microseconds(row.ts_ms), 8, row.seq)
        + NULL + _bigint(row.tick_size) + NULL * 6 + _BIGINT(8, microseconds(row.anchored_ms))
        + levels + nullable(as_bytes(row.hash))
        for row, levels in zip(rows, found, strict=True)
    ])
# fmt: on
