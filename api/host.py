"""What all workers of this host share. gunicorn's master imports it with the worker class, before they are forked."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.shared import Connections, Counter
from api.slots import Slots


@dataclass(frozen=True)
class Host:
    """Counts that one worker alone cannot keep."""

    slots: Slots = field(default_factory=Slots)
    connections: Connections = field(default_factory=Connections)
    keys_ended: Counter = field(
        default_factory=Counter
    )  # raised when a key ends: each worker forgets the keys it knows


shared = Host()
