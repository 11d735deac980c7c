"""Encodes rows of live state as an array of `feed_row`, in PostgreSQL's binary format, as a statement's parameter.

A record has the number of its fields, then each field's type, its length and its value (PostgreSQL's `record_send` and
`array_send`). A temporary table to copy them into would be emptied at each commit, which costs a few milliseconds.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format

from orchestration.binary_copy import LENGTH, microseconds
from orchestration.ingest.storage.ids import as_bytes
from orchestration.ingest.storage.rows import LiveBook, LivePrice, Quote, Snapshot, mid

FIELDS = 18
# Type numbers: they are the same in every database.
_SMALLINT, _INT, _BIGINT, _TIMESTAMPTZ, _BYTEA, _INTS, _BIGINTS = 21, 23, 20, 1184, 17, 1007, 1016

_HEAD = struct.Struct(">ii").pack  # a field's type and its length, -1 for null
_ARRAY = struct.Struct(">iiIii").pack  # dimensions, whether there are nulls, type of elements, their number, the first
_SIDE = struct.Struct(">iiiiiii").pack  # an array's type, its length, and what `_ARRAY` has
_ELEMENT4 = np.dtype([("length", ">i4"), ("value", ">i4")])
_ELEMENT8 = np.dtype([("length", ">i4"), ("value", ">i8")])

# Heads of fields that have a value, and fields that are null.
_MARKET_KEY = struct.pack(">i", FIELDS) + _HEAD(_INT, 4)
_OUTCOME, _TS, _NUMBER = _HEAD(_SMALLINT, 2), _HEAD(_TIMESTAMPTZ, 8), _HEAD(_BIGINT, 8)
_NO_NUMBER, _NO_TS, _NO_HASH = _HEAD(_BIGINT, -1), _HEAD(_TIMESTAMPTZ, -1), _HEAD(_BYTEA, -1)
_NO_LEVELS = (_HEAD(_INTS, -1) + _HEAD(_BIGINTS, -1)) * 2
_NO_LAST = _NO_NUMBER + _NO_TS
_NO_TICK_AND_PRICES = _NO_NUMBER * 6 + _NO_LAST

_KEY = struct.Struct(">12si8sh8sq8sq").pack
_VALUE = struct.Struct(">8sq").pack
_UNNUMBERED = _NUMBER + bytes(8) + _NO_NUMBER * 2  # sequence number 0, no event's id, no tick
_QUOTED = struct.Struct(f">12si8sh8sq{len(_UNNUMBERED) + 8}sq8sq8sq8sq8sq").pack
_UNNUMBERED_BID = _UNNUMBERED + _NUMBER


class Records:
    """An array of `feed_row`, encoded; `type_` is the number of that type in this database."""

    def __init__(self, type_: int, rows: Sequence[bytes]) -> None:
        self.data = _ARRAY(1, 0, type_, len(rows), 1) + b"".join([LENGTH(len(row)) + row for row in rows])


class RecordsDumper(Dumper):
    """Passes `Records` on to the server, which knows from the statement what they are."""

    format = Format.BINARY

    def dump(self, obj: Records) -> bytes:
        """Return the bytes."""
        return obj.data


def _arrays(columns: Sequence[Sequence[int]], element: "np.dtype[np.void]", types: tuple[int, int]) -> Iterator[bytes]:
    """Encode arrays, all in one: a call of numpy costs as much as a hundred values. `types`: the array's, a value's."""
    of_array, of_value = types
    elements = np.empty(sum(map(len, columns)), dtype=element)
    elements["length"] = element["value"].itemsize
    elements["value"] = [*chain.from_iterable(columns)]
    data, end = elements.tobytes(), 0
    for values in columns:
        begin, end = end, end + len(values) * element.itemsize
        if values:
            yield _SIDE(of_array, 20 + end - begin, 1, 0, of_value, len(values), 1) + data[begin:end]
        else:
            yield struct.pack(">iiiii", of_array, 12, 0, 0, of_value)


def _levels(books: Iterable[tuple[Sequence[int], ...]]) -> list[bytes]:
    """Encode bid prices, bid sizes, ask prices and ask sizes of each book."""
    columns = [*chain.from_iterable(books)]
    prices = [*_arrays(columns[::2], _ELEMENT4, (_INTS, _INT))]
    sizes = [*_arrays(columns[1::2], _ELEMENT8, (_BIGINTS, _BIGINT))]
    sides = zip(prices[::2], sizes[::2], prices[1::2], sizes[1::2], strict=True)
    return [b"".join(side) for side in sides]


def _split(side: Sequence[tuple[int, int]]) -> tuple[Sequence[int], Sequence[int]]:
    prices, sizes = zip(*side, strict=True) if side else ((), ())
    return prices, sizes


def _number(value: int | None) -> bytes:
    return _NO_NUMBER if value is None else _VALUE(_NUMBER, value)


def _instant(ts_ms: int | None) -> bytes:
    return _NO_TS if ts_ms is None else _VALUE(_TS, microseconds(ts_ms))


def _hash(text: str) -> bytes:
    value = as_bytes(text)
    return _NO_HASH if value is None else _HEAD(_BYTEA, len(value)) + value


def _quoted(row: Quote | LivePrice) -> bytes:
    """Encode what quotes and prices have in common."""
    token, bid, ask, bid_size, ask_size = row.token, row.bid, row.ask, row.bid_size, row.ask_size
    key = _MARKET_KEY, token.market_key, _OUTCOME, token.outcome, _TS, microseconds(row.ts_ms)
    if bid is None or ask is None or bid_size is None or ask_size is None:
        best = b"".join(map(_number, (bid, ask, mid(bid, ask), bid_size, ask_size)))
        return _KEY(*key, _NUMBER, 0) + _NO_NUMBER * 2 + best
    return _QUOTED(
        *(*key, _UNNUMBERED_BID, bid, _NUMBER, ask, _NUMBER, (bid + ask) // 2, _NUMBER, bid_size, _NUMBER, ask_size)
    )


def snapshots(rows: Sequence[Snapshot]) -> list[bytes]:
    """Encode snapshots."""
    books = _levels((*_split(row.bids), *_split(row.asks)) for row in rows)
    return [
        _KEY(
            *(_MARKET_KEY, row.token.market_key, _OUTCOME, row.token.outcome),
            *(_TS, microseconds(row.ts_ms), _NUMBER, row.seq),
        )
        + _VALUE(_NUMBER, row.event_id)
        + _NO_TICK_AND_PRICES
        + levels
        + _hash(row.hash)
        for row, levels in zip(rows, books, strict=True)
    ]


def quotes(rows: Iterable[Quote]) -> list[bytes]:
    """Encode quotes."""
    rest = _NO_LAST + _NO_LEVELS + _NO_HASH
    return [_quoted(row) + rest for row in rows]


def prices(rows: Iterable[LivePrice]) -> list[bytes]:
    """Encode live prices."""
    rest = _NO_LEVELS + _NO_HASH
    return [_quoted(row) + _number(row.last) + _instant(row.last_ms) + rest for row in rows]


def books(rows: Sequence[LiveBook]) -> list[bytes]:
    """Encode live books; `last_ts` has the instant of the snapshot that one was last built from."""
    found = _levels((row.bid_prices, row.bid_sizes, row.ask_prices, row.ask_sizes) for row in rows)
    return [
        _KEY(
            *(_MARKET_KEY, row.token.market_key, _OUTCOME, row.token.outcome),
            *(_TS, microseconds(row.ts_ms), _NUMBER, row.seq),
        )
        + _NO_NUMBER
        + _number(row.tick_size)
        + _NO_NUMBER * 6
        + _instant(row.anchored_ms)
        + levels
        + _hash(row.hash)
        for row, levels in zip(rows, found, strict=True)
    ]
