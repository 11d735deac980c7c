"""A file that several processes map: numbers that all of them see, and locks that the kernel takes back from the dead.

The locks are POSIX record locks: they hold between processes, not within one, hence the mutex; and closing any
descriptor of a file lets go of all that a process holds on it, hence one descriptor a process.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import tempfile
import time
import weakref
from typing import TYPE_CHECKING

from gevent import monkey

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PRESENCE = 1 << 40  # this byte, far behind what is mapped, is shared by all who use the file: who gets it alone is last
PATIENCE_S = 15.0  # for the last user of before to finish

_mutex = monkey.get_original("_thread", "allocate_lock")  # not gevent's: nothing is ever waited for while it is held
_opened: dict[Path, SharedFile] = {}


class SharedFile:
    """Bytes as 64-bit numbers in `cells`, zero at first."""

    def __init__(self, file: int, size: int, path: Path | None = None) -> None:
        self.file, self.path = file, path
        self.memory = mmap.mmap(file, size)
        self.cells = memoryview(self.memory).cast("q")
        self._mutex = _mutex()
        self._close = weakref.finalize(self, os.close, file)

    @classmethod
    def private(cls, size: int) -> SharedFile:
        """Make one that nobody else can find."""
        with tempfile.TemporaryFile() as unnamed:
            file = os.dup(unnamed.fileno())
        os.ftruncate(file, size)
        return cls(file, size)

    @classmethod
    def open(cls, path: Path, size: int) -> SharedFile:
        """Use a file together with others; made if it is missing."""
        if (shared := _opened.get(path)) is None:
            shared = _opened[path] = cls(_join(path, size), size, path)
        return shared

    def lock(self, start: int, length: int) -> None:
        """Keep others out of a stretch of bytes. Nothing may wait until `unlock`."""
        self._mutex.acquire()
        fcntl.lockf(self.file, fcntl.LOCK_EX, length, start)

    def unlock(self, start: int, length: int) -> None:
        """Let others in again."""
        fcntl.lockf(self.file, fcntl.LOCK_UN, length, start)
        self._mutex.release()

    def leave(self, at_last: Callable[[], bool] = lambda: True) -> None:
        """Stop using the file. The last to leave is asked `at_last`, and removes the file if that says so."""
        alone = self.path is None or self._alone()
        try:
            if alone and at_last() and self.path is not None:
                self.path.unlink(missing_ok=True)
        finally:
            if self.path is not None:
                _opened.pop(self.path, None)
            self.cells.release()
            self.memory.close()
            self._close()

    def _alone(self) -> bool:
        """Tell whether nobody else is here, and keep it so. Of several that leave at once, one finds that it is."""
        for _ in range(2):
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, PRESENCE)
            except BlockingIOError:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, PRESENCE)
            else:
                return True
        return False


def _join(path: Path, size: int) -> int:
    """Open a file and say that we are here, unless someone is about to remove it."""
    until = time.monotonic() + PATIENCE_S
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, PRESENCE)
            found = os.fstat(file)
            if found.st_nlink and path.exists() and os.path.samestat(found, path.stat()):
                if found.st_uid != os.geteuid() or found.st_size not in (0, size):
                    raise PermissionError(f"{path} is not ours")  # noqa: TRY301 (closed below)
                os.posix_fallocate(file, 0, size)  # a full disk is told now, not by a signal when it is written
                return file
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(file)
                raise TimeoutError(f"{path} is being removed, and does not go away") from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        time.sleep(0.05)
