"""Rows in PostgreSQL's binary COPY format, encoded column-wise."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from orchestration.binary_copy import HEADER, NULL, PG_EPOCH_S, TRAILER, nullable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from upstream.chain.decoded import Entry

TYPES = {"int8": ">i8", "int4": ">i4", "int2": ">i2", "bool": "u1", "address": "V20", "hash": "V32"}

_FIXED = struct.Struct(">hiqiqiiih").pack
_INT2, _INT4, _INT8 = struct.Struct(">ih").pack, struct.Struct(">ii").pack, struct.Struct(">iq").pack
_json = msgspec.json.Encoder(order="deterministic").encode


class Column(NamedTuple):
    """A column: its type, its values, and where they are null."""

    type: str
    values: npt.NDArray[Any]
    null: npt.NDArray[np.bool_] | None = None


def times(seconds: npt.NDArray[np.int64]) -> Column:
    """Return timestamps as a column."""
    return Column("int8", (seconds - PG_EPOCH_S) * 1_000_000)


def rows(columns: Sequence[Column]) -> Iterator[bytes]:
    """Encode rows, grouped by which values are null, as such rows have the same byte layout."""
    count = len(columns[0].values)
    nullable = [nth for nth, column in enumerate(columns) if column.null is not None]
    pattern = np.zeros(count, dtype=np.int64)
    for bit, nth in enumerate(nullable):
        null = columns[nth].null
        assert null is not None
        pattern |= null.astype(np.int64) << bit
    yield HEADER
    for value in np.unique(pattern):
        absent = {nth for bit, nth in enumerate(nullable) if value >> bit & 1}
        yield _alike(columns, absent, np.flatnonzero(pattern == value))
    yield TRAILER


def _alike(columns: Sequence[Column], absent: set[int], chosen: npt.NDArray[np.intp]) -> bytes:
    layout: list[tuple[str, str]] = [("fields", ">i2")]
    for nth, column in enumerate(columns):
        layout.append((f"length{nth}", ">i4"))
        if nth not in absent:
            layout.append((f"value{nth}", TYPES[column.type]))
    packed = np.zeros(len(chosen), dtype=np.dtype(layout))
    packed["fields"] = len(columns)
    for nth, column in enumerate(columns):
        if nth in absent:
            packed[f"length{nth}"] = -1
        else:
            packed[f"length{nth}"] = np.dtype(TYPES[column.type]).itemsize
            packed[f"value{nth}"] = column.values[chosen]
    return packed.tobytes()


class LedgerRow(NamedTuple):
    """A row of `ledger_entries`."""

    ts_s: int
    kind: str
    entry: Entry
    token_key: int | None
    contract_key: int


def ledger(entries: Iterable[LedgerRow]) -> Iterator[bytes]:
    """Encode ts, block_number, log_index, entry, kind, wallet, counterparty, condition_id, token_key, amount,"""
    yield HEADER
    packed: list[bytes] = []
    for ts_s, kind, entry, token_key, contract_key in entries:
        packed += (
            _FIXED(
                *(13, 8, (ts_s - PG_EPOCH_S) * 1_000_000, 8, entry.block_number),
                *(4, entry.log_index, 2, entry.entry),
            ),
            nullable(kind.encode()),
            nullable(entry.wallet),
            nullable(entry.counterparty),
            nullable(entry.condition_id),
            NULL if token_key is None else _INT4(4, token_key),
            _INT8(8, entry.amount),
            nullable(entry.tx_hash),
            _INT2(2, contract_key),
            nullable(b"\1" + _json(entry.detail)),
        )
    yield b"".join(packed)
    yield TRAILER
