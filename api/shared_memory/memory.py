"""Memory that all workers of a host share: made when gunicorn's master imports the worker class, inherited by forks.

The lock is the kernel's, on the memory's own file: a killed worker lets go of it. Nothing may wait while it holds one.
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


class Shared:
    """Some bytes, zero at first, and a lock."""

    def __init__(self, size: int) -> None:
        self._file = os.memfd_create("presage")
        weakref.finalize(self, os.close, self._file)
        os.ftruncate(self._file, size)
        self.memory = mmap.mmap(self._file, size)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the other workers out."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


def lives(pid: int) -> bool:
    """Tell whether a process is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
