"""Pace of a simulation: whether it keeps the rate asked for. It never sends late what it could not send in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LATE_MS = 200  # of the clock behind real time: what should have been sent earlier is skipped
MEASURED_S = 5.0
REPEATED_S = 60.0  # between two reports of the same shortfall


class Paced(Protocol):
    """A simulation, as far as its pace goes."""

    now_ms: float
    made: int
    skipped_ms: float

    @property
    def asked_rate(self) -> float:
        """Return how many events a second there are to be."""

    def skip(self, until_ms: float) -> None:
        """Move the clock to a moment without any events on the way."""


class Pace:
    """Keeps a simulation's clock at real time, and reports how far its rate stays behind."""

    def __init__(self, simulation: Paced, report: Callable[[str], None] | None) -> None:
        self.simulation = simulation
        self._report = report or (lambda _line: None)
        self._began: float | None = None
        self._made, self._skipped_ms = 0, 0.0
        self._reported = float("-inf")
        self.rate = 0.0  # events a second over the last seconds
        self.behind = False  # whether some were skipped in them

    def keep(self, due_ms: float, now: float) -> None:
        """Skip the time that the simulation is behind, and measure the rate now and then."""
        simulation = self.simulation
        if self._began is None:  # what was not played before the start is nobody's shortfall
            if due_ms > simulation.now_ms:
                simulation.skip(due_ms)
            simulation.skipped_ms = 0.0
            self._begin(now)
            return
        if due_ms - simulation.now_ms > MAX_LATE_MS:
            simulation.skip(due_ms)
        elapsed = now - self._began
        if elapsed >= MEASURED_S:
            self.rate = (simulation.made - self._made) / elapsed
            behind = simulation.skipped_ms > self._skipped_ms
            if behind and (not self.behind or now - self._reported >= REPEATED_S):
                self._report(f"cannot keep {simulation.asked_rate:,.0f} events a second: {self.rate:,.0f} are sent")
                self._reported = now
            elif self.behind and not behind:
                self._report(f"keeps {simulation.asked_rate:,.0f} events a second again")
            self.behind = behind
            self._begin(now)

    def _begin(self, now: float) -> None:
        self._began, self._made, self._skipped_ms = now, self.simulation.made, self.simulation.skipped_ms

    def state(self) -> dict[str, Any]:
        """Return the rates as JSON."""
        return {
            "asked_rate": self.simulation.asked_rate,
            "actual_rate": round(self.rate, 1),
            "behind": self.behind,
            "skipped_ms": round(self.simulation.skipped_ms, 1),
        }
