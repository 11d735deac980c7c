"""Verifies the lake against its own digests and counts and against the database, and removes what nothing refers to."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pyarrow import parquet

from orchestration.lake import catalogue, writing
from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    import psycopg
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table

    from orchestration.lake.catalogue import Lake
    from orchestration.lake.tables import LakeTable

SNAPSHOTS_KEPT = timedelta(days=7)  # for queries that are running, and to look back
UNCOMMITTED_KEPT = timedelta(days=1)  # longer than any writing takes
BLOCK = 4 << 20
DATE = len("2026-11-20")  # of a file's name


@dataclass
class Verified:
    """What was found in a table."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    days: int = 0
    compared: int = 0
    """Days that were also compared with the database's rows."""
    faults: list[str] = field(default_factory=list)


def verify(
    conn: psycopg.Connection[Any], lake: Lake, table: LakeTable, progress: Callable[[str], None] = lambda _: None
) -> Verified:
    """Read every file of a table: its digest, its rows, the days' counts; and compare days that are still stored."""
    found, stored = Verified(), lake.table(table)
    rows_of = {} if stored is None else _verify_files(stored, table.name, found, progress)
    committed = {day: (rows, fingerprint) for day, rows, _, _, fingerprint, _ in queries.days(conn, name=table.name)}
    found.days = len(committed)
    for day in sorted(rows_of.keys() | committed.keys()):
        rows, told = rows_of.get(day, 0), committed.get(day)
        if told is None:
            found.faults.append(f"{table.name} {day}: {rows:,} rows of a day that is not recorded: write it again")
        elif rows != told[0]:
            found.faults.append(f"{table.name} {day}: {rows:,} rows, but {told[0]:,} were written")
    if table.daily:
        first = queries.first_day(conn, hypertable=table.hypertable)
        for day, (_, fingerprint) in committed.items():
            if first is not None and day >= first:
                found.compared += 1
                if writing.fingerprint(conn, table, day) != fingerprint:
                    found.faults.append(f"{table.name} {day}: the database has other rows now: write it again")
    return found


def sweep(conn: psycopg.Connection[Any], lake: Lake, table: LakeTable, now: datetime) -> int:
    """Expire old snapshots; delete files that no other has and no writer may still commit; return how many."""
    with writing.alone(conn, table):
        return _sweep(lake, table, now)


def _sweep(lake: Lake, table: LakeTable, now: datetime) -> int:
    stored = lake.table(table)
    if stored is None:
        return 0
    old = now - SNAPSHOTS_KEPT
    if any(each.timestamp_ms < old.timestamp() * 1000 for each in stored.snapshots()[:-1]):
        stored.maintenance.expire_snapshots().older_than(old).commit()
        stored = stored.refresh()
    named = {stored.metadata_location} | {each.metadata_file for each in stored.metadata.metadata_log}
    for snapshot in stored.snapshots():
        named.add(snapshot.manifest_list)
        for manifest in snapshot.manifests(stored.io):
            named.add(manifest.manifest_path)
            named |= {entry.data_file.file_path for entry in manifest.fetch_manifest_entry(stored.io)}
    gone = 0
    for location, written_at in catalogue.listed(stored.io, stored.location()):
        if location not in named and written_at < now - UNCOMMITTED_KEPT:
            stored.io.delete(location)
            gone += 1
    return gone


def _verify_files(stored: Table, name: str, found: Verified, progress: Callable[[str], None]) -> dict[date, int]:
    """Verify each file by itself; return the rows of each day."""
    rows_of: dict[date, int] = defaultdict(int)
    files = sorted(catalogue.data_files(stored), key=attrgetter("file_path"))
    for file in files:
        progress(f"{name}: file {found.files + 1} of {len(files)}")
        fault = _fault(stored.io, file)
        if fault is not None:
            found.faults.append(f"{name}: {fault}: {file.file_path}")
        found.files += 1
        found.rows += file.record_count
        found.bytes += file.file_size_in_bytes
        rows_of[_day(file.file_path)] += file.record_count
    return rows_of


def _fault(io: FileIO, file: DataFile) -> str | None:
    """Return what is wrong with a file, if anything is."""
    source = io.new_input(file.file_path)
    if not source.exists():
        return "is not there"
    digest = hashlib.sha256()
    with source.open() as stream:
        while block := stream.read(BLOCK):
            digest.update(block)
    if digest.hexdigest() != PurePosixPath(file.file_path).name.split(".")[1]:
        return "has other bytes than were written"
    with source.open() as stream:
        rows = parquet.read_metadata(stream).num_rows
    return None if rows == file.record_count else f"has {rows:,} rows, not {file.record_count:,}"


def _day(path: str) -> date:
    return date.fromisoformat(PurePosixPath(path).name[:DATE])
