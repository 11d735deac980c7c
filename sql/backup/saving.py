"""Backup while everything runs: contains exactly what was committed when it began."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from sql import database
from sql.backup import origin, programs
from sql.backup.errors import BackupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import psycopg

    from sql.backup.origin import Origin

COMPRESSION = 3  # of gzip: half the time of the default, for a twentieth more space; before 16 a method has no name


def save(
    url: str, file: Path, *, cache_dir: Path | None = None, tell: Callable[[str], None] = lambda _: None
) -> Origin:
    """Dump a database into a file, which appears only when complete."""
    file = file.expanduser().resolve()
    if file.exists():
        raise BackupError(f"{file} exists", "give another name, or remove it")
    if not file.parent.is_dir():
        raise BackupError(f"{file.parent} is not a folder", "create it, or give another name")
    with database.connect(url, autocommit=True, name="presage backup") as conn:
        backup = origin.note(conn)
        _check_locks(conn)
        size: int = _one(conn, "select pg_database_size(current_database())")
    free = shutil.disk_usage(file.parent).free
    tell(
        f"{size / 1e6:,.0f} MB on disk, TimescaleDB {backup.timescaledb} ({backup.license}); {free / 1e6:,.0f} MB free"
    )
    pg_dump = programs.program("pg_dump", backup.postgresql, cache_dir, newer=True)
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    part.touch(0o600)  # it contains key digests and email addresses
    try:
        programs.run([pg_dump, "--format=custom", f"--compress={COMPRESSION}", "--no-owner", "--file", part], url)
        origin.of(part, programs.program("pg_restore", backup.postgresql, cache_dir, newer=True))
        with part.open("rb") as written:
            os.fsync(written.fileno())
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    tell(f"{file}: {file.stat().st_size / 1e6:,.1f} MB")
    return backup


def _check_locks(conn: psycopg.Connection[Any]) -> None:
    """Refuse if pg_dump would run out of locks midway: it holds one for each table, chunks included."""
    tables: int = _one(conn, "select count(*) from pg_class where relkind in ('r', 'p', 'v', 'm', 'S')")
    room: int = _one(
        conn,
        "select current_setting('max_locks_per_transaction')::int * (current_setting('max_connections')::int"
        " + current_setting('max_prepared_transactions')::int)",
    )
    if tables > room:
        raise BackupError(
            f"a backup holds {tables:,} locks, and the server has room for {room:,}",
            "raise max_locks_per_transaction (and restart the server)",
        )


def _one(conn: psycopg.Connection[Any], query: str) -> Any:
    row = conn.execute(query).fetchone()
    assert row is not None
    return row[0]
