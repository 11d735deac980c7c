"""Counts each key's open streams over all workers of a host, without those of dead workers.

A worker claims a place by a lock that it holds while it lives and that the kernel releases when it dies, however it
dies. Counts that a dead worker left in a place are ignored, and cleared by the next worker that claims it. Process
ids, which the kernel reuses, play no part.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from api.shared_memory.file import SharedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FILE_KIND = "streams-1"  # in the file's name: kind and format version
MAX_WORKERS = 256  # concurrent workers
ROWS = 16_384  # keys with open streams, counted per worker
CELLS = 2  # per row: key and place, count
PLACE_BITS = 8
TABLE = (0, 8)  # the byte range locked while counting; its cell holds the number of rows ever used
LOCKS = 1 << 41  # offset of the places' locks, far beyond the mapped bytes
SIZE = 8 * (1 + ROWS * CELLS)


class TooManyWorkers(RuntimeError):  # noqa: N818 (says what it is)
    """There are more workers than places."""


def private() -> SharedFile:
    """Create a file for this process only."""
    return SharedFile.private(SIZE)


class Connections:
    """The open connections of one host, as counted by one worker. The file is opened on first use."""

    def __init__(self, open_: Callable[[], SharedFile] = private) -> None:
        self._open = open_
        self._shared: SharedFile | None = None
        self._place = -1

    @classmethod
    def at(cls, path: Callable[[], Path]) -> Connections:
        """Return counts that are shared with the host's other workers."""
        return cls(lambda: SharedFile.open(path(), SIZE))

    def acquire(self, key_id: int, most: int | None) -> bool:
        """Count a new connection; return False if the key has `most` open already."""
        with self._counting() as shared:
            cells, mine = shared.cells, key_id << PLACE_BITS | self._place
            open_now, row = 0, -1
            for at in _rows(cells):
                count = cells[at + 1]
                if cells[at] == mine:
                    open_now += count
                    row = at
                elif count and cells[at] >> PLACE_BITS == key_id:
                    if self._is_held(shared, cells[at] & (MAX_WORKERS - 1)):
                        open_now += count
                    else:
                        cells[at + 1] = 0
                elif not count and row < 0:
                    row = at
            if most is not None and open_now >= most:
                return False
            if row < 0:
                row = _new_row(cells)
            if row < 0:
                return False
            cells[row] = mine
            cells[row + 1] += 1
            return True

    def release(self, key_id: int) -> None:
        """Count a closed connection."""
        with self._counting() as shared:
            cells, mine = shared.cells, key_id << PLACE_BITS | self._place
            for at in _rows(cells):
                if cells[at] == mine and cells[at + 1]:
                    cells[at + 1] -= 1
                    return

    def leave(self) -> None:
        """Stop counting; the last to leave removes the file."""
        if self._shared is not None:
            self._shared.leave()
            self._shared = None

    @contextmanager
    def _counting(self) -> Iterator[SharedFile]:
        """Lock the table against other workers. The block must not wait."""
        begins = self._shared is None
        shared = self._shared = self._shared or self._open()
        shared.lock(*TABLE)
        try:
            if begins:
                self._place = _take_place(shared)
                for at in _rows(shared.cells):
                    if shared.cells[at] & (MAX_WORKERS - 1) == self._place:
                        shared.cells[at + 1] = 0
            yield shared
        finally:
            shared.unlock(*TABLE)

    def _is_held(self, shared: SharedFile, place: int) -> bool:
        """Return whether a live worker holds a place; nobody can claim one while the table is locked."""
        if place == self._place:
            return True
        try:
            fcntl.lockf(shared.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCKS + place)
        except BlockingIOError:
            return True
        fcntl.lockf(shared.file, fcntl.LOCK_UN, 1, LOCKS + place)
        return False


def _rows(cells: memoryview) -> range:
    return range(1, 1 + cells[0] * CELLS, CELLS)


def _new_row(cells: memoryview) -> int:
    """Return a row that was never used; -1 if there is none."""
    used: int = cells[0]
    if used >= ROWS:
        return -1
    cells[0] = used + 1
    return 1 + used * CELLS


def _take_place(shared: SharedFile) -> int:
    for place in range(MAX_WORKERS):
        try:
            fcntl.lockf(shared.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCKS + place)
        except BlockingIOError:
            continue
        return place
    raise TooManyWorkers(f"more than {MAX_WORKERS} workers")
