"""Validates the time range of a replay."""

from __future__ import annotations

from datetime import UTC, datetime

from api.errors import invalid
from api.replay.player import ReplaySpan


def replay_span(since: datetime | None, until: datetime | None, speed: float) -> ReplaySpan | None:
    """Return the requested range, ending now by default; None without a start."""
    now = datetime.now(UTC)
    if since is None:
        if until is not None:
            raise invalid("replay_to", "needs `replay_from`", "only together with `replay_from`")
        return None
    if since >= now:
        raise invalid("from", "is in the future", "a moment in the past")
    if until is not None and until <= since:
        raise invalid("to", "is not after the start", "a moment after the start")
    return ReplaySpan(since, min(until or now, now), speed)
