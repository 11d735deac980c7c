"""The location of this host's credit ledger: a file in memory, one per database."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from api.metering.credit_ledger import VERSION, CreditLedger
from sql.queries import metering as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection, Pool
    from config.settings import Settings

MEMORY = Path("/dev/shm")  # noqa: S108 (the name of the file cannot be guessed, and its owner is checked)


class LazyLedger:
    """The ledger, opened on first use, since its database may not be up earlier."""

    def __init__(self, open_: Callable[[], CreditLedger] = CreditLedger.private) -> None:
        self._open = open_
        self._opening = threading.Lock()
        self._ledger: CreditLedger | None = None

    @property
    def opened(self) -> bool:
        """Whether the ledger has been opened."""
        return self._ledger is not None

    def ended(self) -> int:
        """Return the number of revoked or changed keys so far."""
        return self().ended

    def __call__(self) -> CreditLedger:
        """Return the ledger, opened on the first call."""
        if self._ledger is None:
            with self._opening:
                if self._ledger is None:
                    self._ledger = self._open()
        return self._ledger


def open_host_ledger(pool: Pool, folder: Path) -> CreditLedger:
    """Open the ledger that all processes of this host share for a database."""
    folder.mkdir(parents=True, exist_ok=True)
    return CreditLedger.open(pool.read(lambda conn: path(conn, folder)))


def folder(given: Settings) -> Path:
    """Return the folder of the ledgers."""
    if given.metering_dir is not None:
        return given.metering_dir.expanduser()
    return MEMORY if os.access(MEMORY, os.W_OK | os.X_OK) else given.data_folder


def path(conn: Connection, folder: Path, kind: str = f"credits-{VERSION}") -> Path:
    """Return the path of a database's ledger, or of another file that its processes on a host share."""
    owner = f"{queries.identity(conn)}:{os.geteuid()}"
    return folder / f"presage-{kind}-{hashlib.blake2b(owner.encode(), digest_size=12).hexdigest()}"


def end(conn: Connection, folder: Path, key_id: int) -> bool:
    """Invalidate a revoked or changed key in this host's workers; return False if there are none."""
    found = path(conn, folder)
    if not found.exists():
        return False
    ledger = CreditLedger.open(found)
    ledger.end(key_id)
    ledger.leave(lambda: False)
    return True
