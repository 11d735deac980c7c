"""What all workers of a server share. gunicorn's master imports it with the worker class, before they are forked."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.metrics.counts import Counts
from api.shared_memory.memory import Shared


class Restarts:
    """Which workers are replaced when they are told to stop, as the others serve on."""

    def __init__(self) -> None:
        self._cells = memoryview(Shared(8).memory).cast("q")

    def up_to(self, age: int) -> None:
        """Note, in the master, that workers up to this age are replaced."""
        self._cells[0] = age

    def include(self, age: int) -> bool:
        """Tell whether a worker is replaced."""
        return age <= self._cells[0]


@dataclass(frozen=True)
class Host:
    """What one worker alone cannot know."""

    counts: Counts = field(default_factory=Counts)
    restarts: Restarts = field(default_factory=Restarts)


shared = Host()
