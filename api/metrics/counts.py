"""Counters of all workers of a server, in shared memory.

Each worker writes to its own row without locking; readers add the rows up. A row outlives its worker and passes, with
its counts, to a later one: `kill -9` loses nothing, and the memory does not grow.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from enum import IntEnum, auto
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from api.shared_memory.memory import SharedMemory, is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = 64  # concurrent workers; further ones count privately
MAX_SLOTS = 200  # endpoints, and one slot for unknown paths
MAX_CODES = 40  # problem codes
STATUSES = (
    *(101, 200, 201, 204, 304, 400, 401, 402, 403, 404, 405, 406, 409, 410, 411, 413, 414, 415, 422, 426, 429, 431),
    *(500, 502, 503, 504),
)
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)  # seconds
NANO = 1_000_000_000

_STATUS = {status: number for number, status in enumerate(STATUSES)}
_OTHER = len(STATUSES)  # any other status


class Counter(IntEnum):
    """Counters besides those of requests. The ones in `GAUGES` are gauges, which end with their worker."""

    IN_FLIGHT = auto()
    SUBSCRIBERS = auto()
    STREAM_POSITION = auto()
    READS_BUSY = auto()
    WRITES_BUSY = auto()
    EVENTS_BUSY = auto()
    UNAUTHENTICATED_BUSY = auto()
    CREDITS_SPENT = auto()
    REFUSED_SECOND = auto()
    REFUSED_MONTH = auto()
    REFUSED_ADDRESS = auto()
    FAILED_UNKNOWN = auto()
    FAILED_REVOKED = auto()
    FAILED_REPLACED = auto()
    FAILED_UNCHECKED = auto()
    LEASES_ASKED = auto()
    FRAMES = auto()
    SLOW_CLOSED = auto()
    CONNECTIONS_LACKING = auto()
    CONNECTIONS_MADE = auto()


GAUGES = (
    *(Counter.IN_FLIGHT, Counter.SUBSCRIBERS, Counter.STREAM_POSITION),
    *(Counter.READS_BUSY, Counter.WRITES_BUSY, Counter.EVENTS_BUSY, Counter.UNAUTHENTICATED_BUSY),
)

FAILED_KEYS = {  # by result
    "unknown": Counter.FAILED_UNKNOWN,
    "revoked": Counter.FAILED_REVOKED,
    "replaced": Counter.FAILED_REPLACED,
    "unchecked": Counter.FAILED_UNCHECKED,
}

# Cells of a row: process id, counters, problems by code, then statuses, duration buckets and seconds per endpoint.
_PID = 0
_PROBLEMS = len(Counter) + 1
_ENDPOINTS = _PROBLEMS + MAX_CODES
_BUCKETS = len(STATUSES) + 1
_SECONDS = _BUCKETS + len(BOUNDS) + 1
_PLACE = _SECONDS + 1
_ROW = _ENDPOINTS + MAX_SLOTS * _PLACE


class EndpointCounts(NamedTuple):
    """The requests of one endpoint."""

    statuses: dict[str, int]
    buckets: list[tuple[str, int]]  # upper bound in seconds, cumulative count
    seconds: float


_pid = os.getpid()


def _forked() -> None:
    global _pid  # noqa: PLW0603 (read with every count; os.getpid() is a system call)
    _pid = os.getpid()


os.register_at_fork(after_in_child=_forked)


class SharedCounters:
    """The shared counters of one server."""

    def __init__(self) -> None:
        self._shared = SharedMemory(ROWS * _ROW * 8)
        self._cells = memoryview(self._shared.memory).cast("q")
        self._pid, self._mine = 0, self._cells[:0]

    # --- Counting

    def join(self) -> None:
        """Claim a row before anything is counted."""
        self._row()

    def add(self, number: Counter, by: int = 1) -> None:
        """Add to a counter; `by` may be negative."""
        self._row()[number] += by

    def put(self, number: Counter, value: int) -> None:
        """Set a gauge."""
        self._row()[number] = value

    def answer(self, place: int, status: int, seconds: float | None, credits_: int) -> None:
        """Count a finished request and its credits; streams have no duration."""
        row, at = self._row(), _ENDPOINTS + place * _PLACE
        row[Counter.IN_FLIGHT] -= 1
        row[Counter.CREDITS_SPENT] += credits_
        row[at + _STATUS.get(status, _OTHER)] += 1
        if seconds is not None:
            row[at + _BUCKETS + bisect_left(BOUNDS, seconds)] += 1
            row[at + _SECONDS] += int(seconds * NANO)

    def problem(self, code: int) -> None:
        """Count a problem, by the code's number."""
        self._row()[_PROBLEMS + code] += 1

    # --- Reading

    def workers(self) -> int:
        """Return the number of live workers."""
        return sum(1 for _ in self._alive_rows())

    def of(self, number: Counter) -> int:
        """Return a counter's sum over all workers; a gauge's over live workers."""
        rows = self._alive_rows() if number in GAUGES else self._used()
        return sum(row[number] for row in rows)

    def each(self, number: Counter) -> list[int]:
        """Return a counter's value in each live worker."""
        return [row[number] for row in self._alive_rows()]

    def problems(self) -> list[int]:
        """Return the number of problems by code."""
        return self._summed(_PROBLEMS, _ENDPOINTS)

    def answered(self, place: int) -> EndpointCounts | None:
        """Return the counts of an endpoint's slot; None if it has no requests."""
        at = _ENDPOINTS + place * _PLACE
        cells = self._summed(at, at + _PLACE)
        if not any(cells):
            return None
        names = [*map(str, STATUSES), "other"]
        bounds = [*map(str, BOUNDS), "+Inf"]
        return EndpointCounts(
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
        """Claim the row of a dead worker, or an unused row."""
        self._pid = _pid
        with self._shared.locked():
            for row in self._rows():
                if not row[_PID] or row[_PID] == self._pid or not is_alive(row[_PID]):
                    for number in GAUGES:
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

    def _alive_rows(self) -> Iterator[memoryview[int]]:
        return (row for row in self._used() if row[_PID] == self._pid or is_alive(row[_PID]))
