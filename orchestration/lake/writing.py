"""Writes days into the lake: a day is replaced in one commit, and the same rows give the same files."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pyarrow as pa
from psycopg import IsolationLevel
from pyarrow import parquet
from pyiceberg.io.pyarrow import parquet_file_to_data_file

from orchestration import arrow_copy
from orchestration.exports.days import unpack_events
from orchestration.lake import catalogue
from orchestration.lake.tables import ARROW, MICRO
from sql.packs import unpack
from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyiceberg.table import Table

    from orchestration.lake.catalogue import Lake
    from orchestration.lake.tables import LakeTable

DAY = timedelta(days=1)
EPOCH = date(1970, 1, 1)
MIDNIGHT, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
RECHECKED = timedelta(days=14)  # days that a later writing looks at again: rows may have been filled in
LEVEL = 9  # of zstd
WITHOUT_STATISTICS = {"data", "bids", "asks", "hash", "tx_hash"}  # which nobody searches, and whose values are long
BLOCK = 4 << 20

logging.getLogger("pyiceberg.io.pyarrow").setLevel(logging.ERROR)  # it warns of each column without statistics


class ExpiredError(ValueError):
    """A day that the lake has, and the database has no more: writing it again would empty it."""


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
    last = (now - table.settle_time).date() - DAY
    held = {day: fingerprint for day, *_, fingerprint, _ in queries.days(conn, name=table.name)}
    if not table.daily:
        if last not in held:
            yield last
        return
    first = queries.first_day(conn, hypertable=table.hypertable)
    day = last if first is None else first
    while day <= last:
        recent = day >= last - RECHECKED
        if day not in held or (recent and held[day] != fingerprint(conn, table, day)):
            yield day
        day += DAY


def forget_changed(conn: psycopg.Connection[Any], table: LakeTable, before: datetime) -> None:
    """Forget the stored days before an instant that have other rows now than were written: they are due again."""
    first = queries.first_day(conn, hypertable=table.hypertable)
    for day, *_, held, _ in list(queries.days(conn, name=table.name)):
        if first is not None and first <= day < before.date() and held != fingerprint(conn, table, day):
            queries.forget(conn, name=table.name, day=day)


def fingerprint(conn: psycopg.Connection[Any], table: LakeTable, day: date) -> str:
    """Return a text that changes with the rows of a day in the database; of packed ones, it is their number."""
    span = _span(table, day)
    if not table.packed:
        return str(table.fingerprint(conn, **span))
    with conn.transaction():
        conn.execute("set transaction isolation level repeatable read")  # rows may be packed meanwhile
        count = int(table.fingerprint(conn, **span))
        begin, end = (int((instant - MIDNIGHT) / MICROSECOND) for instant in (span["from_ts"], span["to_ts"]))
        with conn.cursor("packs across") as cursor:
            cursor.execute(queries.packs_across.sql, span)
            for (data,) in cursor:
                instants = unpack(data).ts
                count += int(((instants >= begin) & (instants < end)).sum())
    return str(count)


def write(conn: psycopg.Connection[Any], lake: Lake, table: LakeTable, day: date) -> DayWritten:
    """Write a day, or replace it; needs an autocommit connection of its own.

    Files are complete in the lake before the commit that adds them and removes those they replace. After a crash before
    the commit they belong to no snapshot; after one before the row in `lake_days`, the day is written again, which then
    changes nothing. ExpiredError: the database does not have the day any more, and the lake keeps what it has.
    """
    conn.isolation_level = IsolationLevel.REPEATABLE_READ  # so that rows packed meanwhile are seen exactly once
    with alone(conn, table):
        return _write(conn, lake.made(table), table, day)


@contextmanager
def alone(conn: psycopg.Connection[Any], table: LakeTable) -> Iterator[None]:
    """Keep other sessions from changing a table."""
    queries.hold(conn, name=table.name)
    try:
        yield
    finally:
        with suppress(psycopg.Error):  # without a connection there is no lock
            queries.release(conn, name=table.name)


def write_due(
    conn: psycopg.Connection[Any], lake: Lake, table: LakeTable, now: datetime, progress: Callable[[str], None]
) -> list[DayWritten]:
    """Write all days of a table that are due; tell of each."""
    record_paths(conn, lake, table)
    written = []
    for day in list(due(conn, table, now)):
        done = write(conn, lake, table, day)
        progress(f"{table.name} {day}: {done.rows:,} rows, {done.bytes / 1e6:,.1f} MB")
        written.append(done)
    return written


def record_paths(conn: psycopg.Connection[Any], lake: Lake, table: LakeTable) -> None:
    """Record the files of days that were written before they were recorded: the API reads expired days by them."""
    days = {_number(day): day for (day,) in queries.pathless(conn, name=table.name)} if table.daily else {}
    if not days or (stored := lake.table(table)) is None:
        return
    paths: dict[int, list[str]] = {number: [] for number in days}
    for file in catalogue.data_files(stored):
        if (number := _day_number(file.partition[0])) in paths:
            paths[number].append(file.file_path)
    for number, day in days.items():
        queries.record_paths(conn, name=table.name, day=day, paths=sorted(paths[number]))


def _assert_stored(conn: psycopg.Connection[Any], table: LakeTable, day: date) -> None:
    first = queries.first_day(conn, hypertable=table.hypertable)
    if (first is None or day < first) and queries.rows_of(conn, name=table.name, day=day):
        since = "nothing" if first is None else f"the days from {first} on"
        raise ExpiredError(f"{table.name} {day} has expired: the database has {since}, and the lake keeps what it has")


def _write(conn: psycopg.Connection[Any], stored: Table, table: LakeTable, day: date) -> DayWritten:
    found = fingerprint(conn, table, day)  # first: what comes later is noticed next time
    files = [file for span in _parts(table, day) if (file := _write_part(conn, stored, table, day, span)) is not None]
    if table.daily:
        _assert_stored(conn, table, day)  # only now: it may have been dropped meanwhile
    changed = _commit(stored, table, day, [file.path for file in files])
    if not table.daily:
        queries.forget_before(conn, name=table.name, day=day)
    rows, size = sum(file.rows for file in files), sum(file.bytes for file in files)
    paths = [file.path for file in files]
    queries.put(conn, name=table.name, day=day, rows=rows, paths=paths, bytes=size, fingerprint=found)
    return DayWritten(rows, len(files), size, changed)


class _Written(NamedTuple):
    path: str
    rows: int
    bytes: int


def _parts(table: LakeTable, day: date) -> Iterator[dict[str, datetime]]:
    """Return the parameters of the query, for each part of a day."""
    span = _span(table, day)
    if table.parts == 1:
        yield span
        return
    length = DAY / table.parts
    for number in range(table.parts):
        since = span["from_ts"] + number * length
        yield {"from_ts": since, "to_ts": since + length}


def _write_part(
    conn: psycopg.Connection[Any], stored: Table, table: LakeTable, day: date, span: dict[str, datetime]
) -> _Written | None:
    """Write a part's rows to a file that is in the lake when it is complete; None: there are none."""
    with tempfile.TemporaryDirectory(prefix="presage-lake-") as folder:
        path = Path(folder) / "rows.parquet"
        with conn.transaction():
            if table.packed:
                unpack_events(conn, span)
            rows = _columns(conn, table, span, path)
        if not rows:
            return None
        part = f"-{span['from_ts']:%H}" if table.parts > 1 else ""
        name = f"{stored.location()}/data/{day}{part}.{_digest(path)}.parquet"
        if not catalogue.exists(stored.io, name):
            with path.open("rb") as source, stored.io.new_output(name).create(overwrite=True) as target:
                while block := source.read(BLOCK):
                    target.write(block)
        return _Written(name, rows, path.stat().st_size)


def _commit(stored: Table, table: LakeTable, day: date, names: list[str]) -> bool:
    """Make files the only ones of their day, in one snapshot; return whether anything had to change."""
    stored = stored.refresh()
    number = _number(day)
    there = {
        file.file_path: file
        for file in catalogue.data_files(stored)
        if not table.daily or _day_number(file.partition[0]) == number
    }
    if there.keys() == set(names):
        return False
    with (
        stored.transaction() as transaction,
        transaction.update_snapshot(snapshot_properties={"presage.day": str(day)}).overwrite() as update,
    ):
        for name in there.keys() - set(names):
            update.delete_data_file(there[name])
        for name in names:
            if name not in there:
                update.append_data_file(parquet_file_to_data_file(stored.io, stored.metadata, name))
    return True


def _number(day: date) -> int:
    return (day - EPOCH).days


def _day_number(value: Any) -> int:
    return _number(value) if isinstance(value, date) else int(value)


def _span(table: LakeTable, day: date) -> dict[str, datetime]:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    end = {"to_ts": midnight + DAY}
    return {"from_ts": midnight, **end} if table.daily else end


def _columns(conn: psycopg.Connection[Any], table: LakeTable, span: dict[str, datetime], path: Path) -> int:
    """Write rows as Parquet, in little memory; return how many there were."""
    schema, rows = table.arrow_schema, 0
    batches = arrow_copy.record_batches(conn, table.text, span, table.read_schema)
    statistics = [name for name in schema.names if name not in WITHOUT_STATISTICS]
    with parquet.ParquetWriter(
        path, schema, compression="zstd", compression_level=LEVEL, write_statistics=statistics
    ) as writer:
        stored = (_as_stored(batch, schema) for batch in batches)
        for group in arrow_copy.row_groups(stored, schema, table.row_group):
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
