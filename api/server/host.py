"""State shared by all workers of a server. gunicorn's master imports it with the worker class, before forking."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.metering.unauthenticated import AddressBudgets
from api.metrics.counts import SharedCounters


@dataclass(frozen=True)
class Host:
    """State that all workers share."""

    counts: SharedCounters = field(default_factory=SharedCounters)
    unauthenticated: AddressBudgets = field(default_factory=AddressBudgets)


shared = Host()
