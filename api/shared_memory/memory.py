"""Memory shared by all workers: created when gunicorn's master imports the worker class, inherited by forks.

The lock is the kernel's, on the memory's file, so that a killed worker releases it. Its holder must not wait.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class SharedMemory:
    """Shared bytes, initially zero, and a lock."""

    def __init__(self, size: int) -> None:
        self._file = os.memfd_create("presage")
        weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, size)
        self.memory = mmap.mmap(self._file, size)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock out the other workers."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


def is_alive(pid: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
