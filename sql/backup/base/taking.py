"""Base backups of the running embedded server, and the check that the newest can be restored."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from sql import database
from sql.backup.base import contents, recovery, repository, state
from sql.backup.base.state import Checked, Failure, Newest
from sql.backup.errors import BackupError
from sql.embedded import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sql.backup.base.catalogue import BaseBackup
    from sql.backup.base.options import Options
    from sql.backup.base.state import Kind, State

CHECK_FOLDER = "restore-check"  # below the data folder
# Beside the server that is in use: it has to answer a few queries.
CHECK_SETTINGS = {"shared_buffers": "64MB", "maintenance_work_mem": "64MB", "max_connections": "20"}


def take(url: str, data_dir: Path, kind: Kind, tell: Callable[[str], None] = lambda _: None) -> BaseBackup:
    """Take a base backup of the cluster of a data folder, and store its result in the database of `url`."""
    archiving = repository.opened(data_dir)
    if archiving is None:
        raise BackupError(
            f"the write-ahead log of the database in {data_dir} is not archived",
            "set PRESAGE_BACKUP_REPOSITORY and restart presage up",
        )
    now = datetime.now(UTC)
    try:
        noted = contents.read(Cluster(data_dir / "database").url, now)
        tell(f"{kind} base backup of {archiving.stanza}")
        backup = archiving.take(kind, {contents.NOTE: noted.encoded()})
        info = archiving.stanza_info()
    except BackupError as error:
        failed = Failure(now, str(error))
        _change(url, lambda was: msgspec.structs.replace(was, failed=failed))
        raise
    newest = Newest(
        label=backup.label,
        kind=backup.kind,
        ended=backup.ended,
        stanza=archiving.stanza,
        full_ended=[one.ended for one in info.backups if one.kind == "full"][-1],
        bytes=backup.bytes,
        stored_bytes=backup.stored_bytes,
    )
    _change(url, lambda was: msgspec.structs.replace(was, newest=newest, failed=None))
    if backup.damaged:
        raise BackupError(f"base backup {backup.label} has damaged pages", "see the server's log; check the disk")
    return backup


def check(
    url: str,
    data_dir: Path,
    options: Options,
    cache_dir: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Restore the newest base backup beside the data, compare it with what was noted when it was made, remove it."""
    began, now = time.monotonic(), datetime.now(UTC)
    into = data_dir / CHECK_FOLDER
    copy = Cluster(into / "database", cache_dir=cache_dir)
    label = ""
    _remove(copy, into)  # what a check that was killed left
    try:
        done = recovery.recover(
            data_dir, into, options, "backup", cache_dir=cache_dir, settings=CHECK_SETTINGS, tell=tell
        )
        label = done.backup.label
        noted = contents.decode(done.backup.notes.get(contents.NOTE))
        if noted is None:
            ok, said = False, f"{label} has no note of what it contains"
        else:
            with Cluster(into / "database", cache_dir=cache_dir, settings=CHECK_SETTINGS) as running:
                lacks = contents.missing(noted, contents.read(running.url, noted.at))
            rows = sum(table.rows for tables in noted.databases.values() for table in tables.values())
            ok = not lacks
            said = "; ".join(lacks) or f"{label}: all {rows:,} rows that were noted at {noted.at:%Y-%m-%d %H:%M:%S} UTC"
    except BackupError as error:
        ok, said = False, str(error)
    finally:
        _remove(copy, into)
    checked = Checked(now, ok, label, said, round(time.monotonic() - began, 1))
    _change(url, lambda was: msgspec.structs.replace(was, checked=checked))
    return checked


def _remove(copy: Cluster, into: Path) -> None:
    copy.erase()
    shutil.rmtree(into, ignore_errors=True)


def _change(url: str, change: Callable[[State], State]) -> None:
    with database.connect(url, name="presage backup") as conn:
        conn.execute("select pg_advisory_xact_lock(hashtextextended('presage base backups', 0))")
        state.save(conn, change(state.read(conn)))
