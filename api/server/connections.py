"""How many streams each key has open, counted together by all workers of a host; those of the dead do not count.

A worker takes a place by a lock that it holds for as long as it lives, and that the kernel takes back when it dies,
however it dies. What an earlier worker left in a place is cleared by the next who takes it, and passed over until then:
process numbers, which the kernel gives out again, play no part.
"""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from typing import TYPE_CHECKING

from api.shared_memory.file import SharedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HOLDS = "streams-1"  # in the file's name, with its version
PLACES = 256  # workers at once
ROWS = 16_384  # keys with open streams, of each worker its own
CELLS = 2  # of a row: key and place, count
PLACE_BITS = 8
TABLE = (0, 8)  # the byte range whose lock is held while counting; its cell has how many rows were ever used
LOCKS = 1 << 41  # the places' locks, far behind what is mapped
SIZE = 8 * (1 + ROWS * CELLS)


class Full(RuntimeError):  # noqa: N818 (says what it is)
    """There are more workers than places."""


def private() -> SharedFile:
    """Make a file for this process alone."""
    return SharedFile.private(SIZE)


class Connections:
    """The counts of one host, as one worker sees them. The file is opened when the first connection is counted."""

    def __init__(self, open_: Callable[[], SharedFile] = private) -> None:
        self._open = open_
        self._shared: SharedFile | None = None
        self._place = -1

    @classmethod
    def at(cls, path: Callable[[], Path]) -> Connections:
        """Count together with the host's other workers."""
        return cls(lambda: SharedFile.open(path(), SIZE))

    def acquire(self, key_id: int, most: int | None) -> bool:
        """Count one more, unless that is too many."""
        with self._counting() as shared:
            cells, mine = shared.cells, key_id << PLACE_BITS | self._place
            open_now, row = 0, -1
            for at in _rows(cells):
                count = cells[at + 1]
                if cells[at] == mine:
                    open_now += count
                    row = at
                elif count and cells[at] >> PLACE_BITS == key_id:
                    if self._lives(shared, cells[at] & (PLACES - 1)):
                        open_now += count
                    else:
                        cells[at + 1] = 0
                elif not count and row < 0:
                    row = at
            if most is not None and open_now >= most:
                return False
            if row < 0:
                row = _another(cells)
            if row < 0:
                return False
            cells[row] = mine
            cells[row + 1] += 1
            return True

    def release(self, key_id: int) -> None:
        """Count one less."""
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
        """Keep the other workers from counting. Nothing may wait meanwhile."""
        begins = self._shared is None
        shared = self._shared = self._shared or self._open()
        shared.lock(*TABLE)
        try:
            if begins:
                self._place = _take_place(shared)
                for at in _rows(shared.cells):
                    if shared.cells[at] & (PLACES - 1) == self._place:
                        shared.cells[at + 1] = 0
            yield shared
        finally:
            shared.unlock(*TABLE)

    def _lives(self, shared: SharedFile, place: int) -> bool:
        """Tell whether another worker holds a place; nobody takes one while the table is locked."""
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


def _another(cells: memoryview) -> int:
    """Take a row that was never used; -1 if there is none."""
    used: int = cells[0]
    if used >= ROWS:
        return -1
    cells[0] = used + 1
    return 1 + used * CELLS


def _take_place(shared: SharedFile) -> int:
    for place in range(PLACES):
        try:
            fcntl.lockf(shared.file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, LOCKS + place)
        except BlockingIOError:
            continue
        return place
    raise Full(f"more than {PLACES} workers")
