"""What the workers of a server have done, counted in memory that they share.

Each worker writes to a row of its own, so none waits for another; whoever is asked adds the rows up. A row outlives its
worker and goes, with its counts, to the one that comes after: `kill -9` loses nothing, and the memory does not grow.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from enum import IntEnum, auto
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from api.shared_memory.memory import Shared, lives

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 64  # workers at once; those beyond count for themselves
PLACES = 200  # endpoints, and one for what is none
CODES = 40  # of problems
STATUSES = (
    *(101, 200, 201, 204, 304, 400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 413, 414, 415, 422, 426, 429, 431),
    *(500, 502, 503, 504),
)
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds
NANO = 1_000_000_000

_STATUS = {status: number for number, status in enumerate(STATUSES)}
_OTHER = len(STATUSES)  # any other status


class Number(IntEnum):
    """What is counted beside requests. Those of `NOW` are what holds this moment, and die with their worker."""

    IN_FLIGHT = auto()
    SUBSCRIBERS = auto()
    STREAM_POSITION = auto()
    READS_BUSY = auto()
    WRITES_BUSY = auto()
    EVENTS_BUSY = auto()
    CREDITS_SPENT = auto()
    REFUSED_SECOND = auto()
    REFUSED_MONTH = auto()
    LEASES_ASKED = auto()
    FRAMES = auto()
    SLOW_CLOSED = auto()
    CONNECTIONS_LACKING = auto()
    CONNECTIONS_MADE = auto()


NOW = (
    *(Number.IN_FLIGHT, Number.SUBSCRIBERS, Number.STREAM_POSITION),
    *(Number.READS_BUSY, Number.WRITES_BUSY, Number.EVENTS_BUSY),
)

# A row, in cells: the process, the numbers, problems by code, then for each endpoint its statuses, buckets and seconds.
_PID = 0
_PROBLEMS = len(Number) + 1
_ENDPOINTS = _PROBLEMS + CODES
_BUCKETS = len(STATUSES) + 1
_SECONDS = _BUCKETS + len(BOUNDS) + 1
_PLACE = _SECONDS + 1
_ROW = _ENDPOINTS + PLACES * _PLACE


class Answered(NamedTuple):
    """What was answered at one place."""

    statuses: dict[str, int]
    buckets: list[tuple[str, int]]  # up to so many seconds, so many
    seconds: float


_pid = os.getpid()


def _forked() -> None:
    global _pid  # noqa: PLW0603 (asked for with every count, and a call of the system's each time)
    _pid = os.getpid()


os.register_at_fork(after_in_child=_forked)


class Counts:
    """The rows of one server."""

    def __init__(self) -> None:
        self._shared = Shared(ROWS * _ROW * 8)
        self._cells = memoryview(self._shared.memory).cast("q")
        self._pid, self._mine = 0, self._cells[:0]

    # --- Counting

    def join(self) -> None:
        """Be among the workers before there is anything to count."""
        self._row()

    def add(self, number: Number, by: int = 1) -> None:
        """Count up, or down."""
        self._row()[number] += by

    def put(self, number: Number, value: int) -> None:
        """Write down what holds this moment."""
        self._row()[number] = value

    def answer(self, place: int, status: int, seconds: float | None, credits_: int) -> None:
        """Count a request that is over, and what it cost; one that had no end of its own has no duration."""
        row, at = self._row(), _ENDPOINTS + place * _PLACE
        row[Number.IN_FLIGHT] -= 1
        row[Number.CREDITS_SPENT] += credits_
        row[at + _STATUS.get(status, _OTHER)] += 1
        if seconds is not None:
            row[at + _BUCKETS + bisect_left(BOUNDS, seconds)] += 1
            row[at + _SECONDS] += int(seconds * NANO)

    def problem(self, code: int) -> None:
        """Count a failure."""
        self._row()[_PROBLEMS + code] += 1

    # --- Telling

    def workers(self) -> int:
        """Tell how many workers live."""
        return sum(1 for _ in self._living())

    def of(self, number: Number) -> int:
        """Add up what all workers have counted; of this moment, what those who live have."""
        rows = self._living() if number in NOW else self._used()
        return sum(row[number] for row in rows)

    def each(self, number: Number) -> list[int]:
        """Give a number of every worker that lives."""
        return [row[number] for row in self._living()]

    def problems(self) -> list[int]:
        """Give the failures by code."""
        return self._summed(_PROBLEMS, _ENDPOINTS)

    def answered(self, place: int) -> Answered | None:
        """Give what was answered at a place; None where nothing was."""
        at = _ENDPOINTS + place * _PLACE
        cells = self._summed(at, at + _PLACE)
        if not any(cells):
            return None
        names = [*map(str, STATUSES), "other"]
        bounds = [*map(str, BOUNDS), "+Inf"]
        return Answered(
            {name: count for name, count in zip(names, cells[:_BUCKETS], strict=True) if count},
            list(zip(bounds, accumulate(cells[_BUCKETS:_SECONDS]), strict=True)),
            cells[_SECONDS] / NANO,
        )

    def _summed(self, start: int, end: int) -> list[int]:
        rows = [row[start:end].tolist() for row in self._used()]
        return [sum(column) for column in zip(*rows, strict=True)] or [0] * (end - start)

    # --- Rows

    def _row(self) -> memoryview[int]:
        if self._pid != _pid:
            self._claim()
        return self._mine

    def _claim(self) -> None:
        """Take the row of a worker that is no more, or one that nobody has had."""
        self._pid = _pid
        with self._shared.locked():
            for row in self._rows():
                if not row[_PID] or row[_PID] == self._pid or not lives(row[_PID]):
                    for number in NOW:
                        row[number] = 0
                    row[_PID] = self._pid
                    self._mine = row
                    return
        self._mine = memoryview(bytearray(_ROW * 8)).cast("q")

    def _rows(self) -> Iterator[memoryview[int]]:
        return (self._cells[at : at + _ROW] for at in range(0, ROWS * _ROW, _ROW))

    def _used(self) -> Iterator[memoryview[int]]:
        for row in self._rows():
            if not row[_PID]:
                return
            yield row

    def _living(self) -> Iterator[memoryview[int]]:
        return (row for row in self._used() if row[_PID] == self._pid or lives(row[_PID]))
