"""Writes days into the lake: a day is replaced in one commit, and the same rows give the same files."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from psycopg import IsolationLevel
from pyarrow import parquet
from pyiceberg.io.pyarrow import parquet_file_to_data_file

from orchestration import arrow_copy
from orchestration.lake import catalogue
from orchestration.lake.tables import ARROW, MICRO
from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg
    from pyiceberg.table import Table

    from orchestration.lake.catalogue import Lake
    from orchestration.lake.tables import LakeTable

DAY = timedelta(days=1)
EPOCH = date(1970, 1, 1)
SETTLE_TIME = timedelta(hours=1)  # after a day's end, most of what arrives late is there
RECHECKED = timedelta(days=14)  # days that a later writing looks at again: rows may have been filled in
LEVEL = 9  # of zstd
BLOCK = 4 << 20


@dataclass(frozen=True)
class DayWritten:
    """What was written of a day."""

    rows: int
    files: int
    bytes: int
    changed: bool
    """Whether the lake did not have exactly this already."""


def due(conn: psycopg.Connection[Any], table: LakeTable, now: datetime) -> Iterator[date]:
    """Return the days to write, oldest first: those that are missing, and recent ones whose rows have changed."""
    last = (now - SETTLE_TIME).date() - DAY
    held = {day: fingerprint for day, *_, fingerprint, _ in queries.days(conn, name=table.name)}
    if not table.daily:
        if last not in held:
            yield last
        return
    first = queries.first_day(conn, hypertable=table.hypertable or "trades")
    day = last if first is None else first
    while day <= last:
        recent = day >= last - RECHECKED
        if day not in held or (recent and held[day] != fingerprint(conn, table, day)):
            yield day
        day += DAY


def fingerprint(conn: psycopg.Connection[Any], table: LakeTable, day: date) -> str:
    """Return a text that changes with the rows of a day in the database."""
    return str(table.fingerprint(conn, **_span(table, day)))


def write(conn: psycopg.Connection[Any], lake: Lake, table: LakeTable, day: date) -> DayWritten:
    """Write a day, or replace it; needs an autocommit connection of its own.

    The file is complete in the lake before the commit that adds it and removes those it replaces. After a crash before
    the commit it belongs to no snapshot; after one before the row in `lake_days`, the day is written again, which then
    changes nothing.
    """
    conn.isolation_level = IsolationLevel.REPEATABLE_READ
    queries.alone(conn, name=table.name)
    with tempfile.TemporaryDirectory(prefix="presage-lake-") as folder:
        path = Path(folder) / "rows.parquet"
        with conn.transaction():
            found = fingerprint(conn, table, day)
            rows = _columns(conn, table, day, path)
        stored = lake.made(table)
        name = f"{stored.location()}/data/{day}.{_digest(path)}.parquet" if rows else None
        if name is not None and not catalogue.exists(stored.io, name):
            with path.open("rb") as source, stored.io.new_output(name).create(overwrite=True) as target:
                while block := source.read(BLOCK):
                    target.write(block)
        size = path.stat().st_size if rows else 0
    changed = _commit(stored, table, day, name)
    if not table.daily:
        queries.forget_before(conn, name=table.name, day=day)
    files = int(name is not None)
    queries.put(conn, name=table.name, day=day, rows=rows, files=files, bytes=size, fingerprint=found)
    return DayWritten(rows, files, size, changed)


def write_due(
    conn: psycopg.Connection[Any], lake: Lake, table: LakeTable, now: datetime, progress: Callable[[str], None]
) -> list[DayWritten]:
    """Write all days of a table that are due; tell of each."""
    written = []
    for day in list(due(conn, table, now)):
        done = write(conn, lake, table, day)
        progress(f"{table.name} {day}: {done.rows:,} rows, {done.bytes / 1e6:,.1f} MB")
        written.append(done)
    return written


def _commit(stored: Table, table: LakeTable, day: date, name: str | None) -> bool:
    """Make a file the only one of its day, in one snapshot; return whether anything had to change."""
    stored = stored.refresh()
    number = (day - EPOCH).days
    there = [
        file for file in catalogue.data_files(stored) if not table.daily or _day_number(file.partition[0]) == number
    ]
    if [file.file_path for file in there] == ([] if name is None else [name]):
        return False
    with (
        stored.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties={"presage.day": str(day)}).overwrite() as update,
    ):
        for file in there:
            if file.file_path != name:
                update.delete_data_file(file)
        if name is not None and name not in {file.file_path for file in there}:
            update.append_data_file(parquet_file_to_data_file(stored.io, stored.metadata, name))
    return True


def _day_number(value: Any) -> int:
    return (value - EPOCH).days if isinstance(value, date) else int(value)


def _span(table: LakeTable, day: date) -> dict[str, datetime]:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = {"to_ts": midnight + DAY}
    return {"from_ts": midnight, **end} if table.daily else end


def _columns(conn: psycopg.Connection[Any], table: LakeTable, day: date, path: Path) -> int:
    """Write a day's rows as Parquet, in little memory; return how many there were."""
    schema, rows = table.arrow_schema, 0
    batches = arrow_copy.record_batches(conn, table.text, _span(table, day), table.read_schema)
    with parquet.ParquetWriter(path, schema, compression="zstd", compression_level=LEVEL) as writer:
        for group in arrow_copy.row_groups((_as_stored(batch, schema) for batch in batches), schema):
            writer.write_table(group)
            rows += group.num_rows
    return rows


def _as_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(batch.columns, schema, strict=True)
    return pa.RecordBatch.from_arrays(
        [_amounts(column) if field.type == ARROW[MICRO] else column for column, field in columns], schema=schema
    )


def _amounts(micro: pa.Array) -> pa.Array:
    """Return micro-units as decimals: the same digits."""
    wide = micro.cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(ARROW[MICRO], len(wide), wide.buffers(), offset=wide.offset)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
