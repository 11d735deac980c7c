"""Rows of a query as Arrow columns: the database writes CSV, and Arrow reads it, in little memory."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
from psycopg import sql
from pyarrow import csv

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import psycopg

BLOCK = 4 << 20
ROW_GROUP = 131_072  # rows


class Writes(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> Any:
        """Take them."""


def record_batches(
    conn: psycopg.Connection[Any],
    query: str,
    parameters: Mapping[str, Any],
    schema: pa.Schema,
    *,
    beside: Writes | None = None,
) -> Iterator[pa.RecordBatch]:
    """Run a query whose columns are those of a schema; yield its rows. `beside` gets the CSV, with its header."""
    copied = sql.SQL("copy ({}) to stdout (format csv, header)").format(sql.SQL(query.rstrip("; \n")))
    with conn.cursor().copy(copied, dict(parameters)) as copy:
        yield from csv.open_csv(
            pa.PythonFile(_Copied(iter(copy), beside), mode="r"),
            read_options=csv.ReadOptions(use_threads=False, block_size=BLOCK),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=schema,
                include_columns=schema.names,
                true_values=["t"],
                false_values=["f"],
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema, size: int | None = None) -> Iterator[pa.Table]:
    """Yield the same rows in groups of `size` (`ROW_GROUP`), the last one smaller, whatever the batches."""
    size = size or ROW_GROUP
    waiting = pa.Table.from_batches([], schema=schema)
    for batch in batches:
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([batch])])
        while waiting.num_rows >= size:
            yield waiting.slice(0, size).combine_chunks()
            waiting = waiting.slice(size)
    if waiting.num_rows:
        yield waiting.combine_chunks()


class _Copied(io.RawIOBase):
    """A reader of the database's output that copies it elsewhere."""

    def __init__(self, chunks: Iterator[Any], beside: Writes | None) -> None:
        self._chunks, self._beside = chunks, beside
        self._left = b""

    def readable(self) -> bool:
        """Return True: the stream is readable."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """Return the given number of bytes; fewer only at the end."""
        pieces, have = [self._left], len(self._left)
        while size < 0 or have < size:
            chunk = bytes(next(self._chunks, b""))
            if not chunk:
                break
            if self._beside is not None:
                self._beside.write(chunk)
            pieces.append(chunk)
            have += len(chunk)
        whole = b"".join(pieces)
        if size < 0:
            size = have
        self._left = whole[size:]
        return whole[:size]
