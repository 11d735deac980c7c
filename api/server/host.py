"""State shared by all workers of a server. gunicorn's master imports it with the worker class, before forking."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.metering.unauthenticated import AddressBudgets
from api.metrics.counts import SharedCounters
from api.shared_memory.memory import SharedMemory


class Restarts:
    """Tracks which workers are replaced when they stop, while others keep serving."""

    def __init__(self) -> None:
        self._cells = memoryview(SharedMemory(8).memory).cast("q")

    def up_to(self, age: int) -> None:
        """Record, in the master, that workers up to this age are replaced."""
        self._cells[0] = age

    def include(self, age: int) -> bool:
        """Return whether a worker is replaced."""
        return age <= self._cells[0]


@dataclass(frozen=True)
class Host:
    """State that all workers share."""

    counts: SharedCounters = field(default_factory=SharedCounters)
    restarts: Restarts = field(default_factory=Restarts)
    unauthenticated: AddressBudgets = field(default_factory=AddressBudgets)


shared = Host()
