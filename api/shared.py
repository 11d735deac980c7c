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


class Connections:
    """How many streams each key has open, over all workers of the host; those of a dead worker do not count."""

    ROWS = 8192
    WIDTH = 4  # key, process, count, unused: 32-bit numbers

    def __init__(self) -> None:
        self._shared = Shared(self.ROWS * self.WIDTH * 4)
        self._cells = memoryview(self._shared.memory).cast("i")

    def acquire(self, key_id: int, most: int | None) -> bool:
        """Count one more, unless that is too many."""
        cells, pid = self._cells, os.getpid()
        open_now, mine, free = 0, -1, -1
        with self._shared.locked():
            for at in range(0, self.ROWS * self.WIDTH, self.WIDTH):
                count = cells[at + 2]
                if not count:
                    free = at if free < 0 else free
                    if not cells[at]:
                        break  # never used, so are all that follow
                elif cells[at] == key_id:
                    if cells[at + 1] == pid:
                        mine = at
                    elif not _lives(cells[at + 1]):
                        cells[at + 2] = 0
                        continue
                    open_now += count
            if most is not None and open_now >= most:
                return False
            row = mine if mine >= 0 else free
            if row < 0:
                return False
            if mine < 0:
                cells[row], cells[row + 1] = key_id, pid
            cells[row + 2] += 1
            return True

    def release(self, key_id: int) -> None:
        """Count one less."""
        cells, pid = self._cells, os.getpid()
        with self._shared.locked():
            for at in range(0, self.ROWS * self.WIDTH, self.WIDTH):
                if cells[at] == key_id and cells[at + 1] == pid and cells[at + 2]:
                    cells[at + 2] -= 1
                    return
                if not cells[at]:
                    return


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
