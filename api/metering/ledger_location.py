"""Where the ledger of this host lies: a file in memory, one for each database."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from api.metering.credit_ledger import VERSION, Ledger
from sql.queries import metering as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection, Pool
    from config.settings import Settings

MEMORY = Path("/dev/shm")  # noqa: S108 (the name of the file cannot be guessed, and its owner is checked)


class Opener:
    """The ledger, opened when it is first asked for: the database that it belongs to may not be up any sooner."""

    def __init__(self, open_: Callable[[], Ledger] = Ledger.private) -> None:
        self._open = open_
        self._opening = threading.Lock()
        self._ledger: Ledger | None = None

    @property
    def opened(self) -> bool:
        """Whether it has been asked for."""
        return self._ledger is not None

    def ended(self) -> int:
        """Tell how many keys have ended, or changed, so far."""
        return self().ended

    def __call__(self) -> Ledger:
        """Give the ledger."""
        if self._ledger is None:
            with self._opening:
                if self._ledger is None:
                    self._ledger = self._open()
        return self._ledger


def of_host(pool: Pool, folder: Path) -> Ledger:
    """Open the ledger that all processes of this host have for a database."""
    folder.mkdir(parents=True, exist_ok=True)
    return Ledger.open(pool.read(lambda conn: path(conn, folder)))


def folder(given: Settings) -> Path:
    """Tell where ledgers are kept."""
    if given.metering_dir is not None:
        return given.metering_dir.expanduser()
    return MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else given.data_dir.expanduser()


def path(conn: Connection, folder: Path, holds: str = f"credits-{VERSION}") -> Path:
    """Name the ledger of a database, or another file that its processes on a host share."""
    owner = f"{queries.identity(conn)}:{os.geteuid()}"
    return folder / f"presage-{holds}-{hashlib.blake2b(owner.encode(), digest_size=12).hexdigest()}"


def end(conn: Connection, folder: Path, key_id: int) -> bool:
    """Have the workers of this host, if there are any, ask the database again for a key that has ended or changed."""
    found = path(conn, folder)
    if not found.exists():
        return False
    ledger = Ledger.open(found)
    ledger.end(key_id)
    ledger.leave(lambda: False)
    return True
