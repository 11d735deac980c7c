"""What all workers of a server share. gunicorn's master imports it with the worker class, before they are forked."""

from __future__ import annotations

from dataclasses import dataclass, field

from api.shared import Connections


@dataclass(frozen=True)
class Host:
    """Counts that one worker alone cannot keep."""

    connections: Connections = field(default_factory=Connections)


shared = Host()
