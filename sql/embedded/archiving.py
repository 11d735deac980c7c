"""Archiving of the server's write-ahead log: on while there is a script for it; given up when it delays a stop."""

from __future__ import annotations

import os
import shlex
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from sql.embedded import postmaster

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "backup"  # below the cluster's home: what archives its log, and its configuration
SCRIPT = "pgbackrest-archive"  # pgBackRest looks for its name in the archive command
STOPPING = "stopping"
# PostgreSQL ends its archiver, instead of calling the script again, when that exits with more than 125.
GIVE_UP_STATUS = 130
SWITCH_S = 60  # after which a segment that is not full is archived too
WAIT_S = 5.0  # that a stop waits for the archive


def script(home: Path) -> Path:
    """Return the script that archives one segment, whose path is its argument."""
    return home / FOLDER / SCRIPT


def stopping(home: Path) -> Path:
    """Return the file by whose presence the script gives up."""
    return home / FOLDER / STOPPING


def server_settings(home: Path) -> dict[str, str]:
    """Return the server's settings: archiving is a property of the data, whichever command starts the server."""
    if not script(home).exists():
        return {}
    stopping(home).unlink(missing_ok=True)
    # By the shell: the file system may be mounted noexec. A % would begin a placeholder.
    command = f"/bin/sh {shlex.quote(str(script(home)))}".replace("%", "%%")
    return {"archive_mode": "on", "archive_command": f"{command} %p", "archive_timeout": f"{SWITCH_S}s"}


def give_up(home: Path) -> None:
    """Have the archiver end at once; what it has not archived waits in pg_wal for the next start."""
    if not script(home).exists():
        return
    with suppress(OSError):
        stopping(home).touch()
    for pid in postmaster.with_argument(str(home / FOLDER), "archive-push"):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGTERM)
