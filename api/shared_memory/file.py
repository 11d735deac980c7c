"""A file mapped by several processes: shared numbers, and locks that the kernel releases when a process dies.

The locks are POSIX record locks: they work between processes but not within one, hence the mutex; and closing any
descriptor of a file releases all locks of the process on it, hence one descriptor per process.
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

PRESENCE = 1 << 40  # offset of a byte that all users lock shared: whoever gets it exclusively is the last
JOIN_TIMEOUT_S = 15.0  # to wait for the last user to remove the file

_mutex = monkey.get_original("_thread", "allocate_lock")  # not gevent's: nothing waits while it is held
_opened: dict[Path, SharedFile] = {}


class SharedFile:
    """A mapped file as 64-bit numbers in `cells`, initially zero."""

    def __init__(self, file: int, size: int, path: Path | None = None) -> None:
        self.file, self.path = file, path
        self.memory = mmap.mmap(file, size)
        self.cells = memoryview(self.memory).cast("q")
        self._mutex = _mutex()
        self._close = weakref.finalize(self, os.close, file)

    @classmethod
    def private(cls, size: int) -> SharedFile:
        """Create an unnamed file that no other process can open."""
        with tempfile.TemporaryFile() as unnamed:
            file = os.dup(unnamed.fileno())
        os.ftruncate(file, size)
        return cls(file, size)

    @classmethod
    def open(cls, path: Path, size: int) -> SharedFile:
        """Open a file shared with other processes; created if missing."""
        if (shared := _opened.get(path)) is None:
            shared = _opened[path] = cls(_join(path, size), size, path)
        return shared

    def lock(self, start: int, length: int) -> None:
        """Lock a range of bytes. The caller must not wait before `unlock`."""
        self._mutex.acquire()
        fcntl.lockf(self.file, fcntl.LOCK_EX, length, start)

    def unlock(self, start: int, length: int) -> None:
        """Unlock a range of bytes."""
        fcntl.lockf(self.file, fcntl.LOCK_UN, length, start)
        self._mutex.release()

    def leave(self, on_last: Callable[[], bool] = lambda: True) -> None:
        """Stop using the file. The last user calls `on_last` and removes the file if that returns True."""
        alone = self.path is None or self._alone()
        try:
            if alone and on_last() and self.path is not None:
                self.path.unlink(missing_ok=True)
        finally:
            if self.path is not None:
                _opened.pop(self.path, None)
            self.cells.release()
            self.memory.close()
            self._close()

    def _alone(self) -> bool:
        """Return whether this is the only user, and lock others out. Of several that leave at once, one succeeds."""
        for _ in range(2):
            try:
                fcntl.lockf(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, PRESENCE)
            except BlockingIOError:
                fcntl.lockf(self.file, fcntl.LOCK_UN, 1, PRESENCE)
            else:
                return True
        return False


def _join(path: Path, size: int) -> int:
    """Open a file and lock its presence byte; retry while another process is removing the file."""
    until = time.monotonic() + JOIN_TIMEOUT_S
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, PRESENCE)
            found = os.fstat(file)
            if found.st_nlink and path.exists() and os.path.samestat(found, path.stat()):
                if found.st_uid != os.geteuid() or found.st_size not in (0, size):
                    raise PermissionError(f"{path} is not ours")  # noqa: TRY301 (closed below)
                os.posix_fallocate(file, 0, size)  # a full disk raises here, not as a signal on a later write
                return file
        except BlockingIOError:
            if time.monotonic() > until:
                os.close(file)
                raise TimeoutError(f"{path} is being removed by another process, and still exists") from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)
        time.sleep(0.05)
