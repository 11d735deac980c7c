"""Space on the disk of a database."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from sql.queries import diagnosis as queries

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

GIB = 1 << 30
LOCAL = ("localhost", "127.0.0.1", "::1")


def free_bytes(
    conn: psycopg.Connection[Any], size: int, disk_gib: float | None, folder: Path | str | None = None
) -> float | None:
    """Return the free space on a database's disk; None if it is elsewhere and the disk's size is not given.

    `folder` is where an embedded server's files are; other servers say it themselves, if our role may know.
    """
    if disk_gib is not None:
        return disk_gib * GIB - size
    if folder is None and (conn.info.host in LOCAL or conn.info.host.startswith("/")):
        folder = queries.data_directory(conn)
    try:
        return None if folder is None else shutil.disk_usage(folder).free
    except OSError:  # a container's path, or not ours to see
        return None
