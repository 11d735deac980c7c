"""Which stretch of the past a replay plays."""

from __future__ import annotations

from datetime import UTC, datetime

from api.errors import invalid
from api.replay.player import Span


def span_of(since: datetime | None, until: datetime | None, speed: float) -> Span | None:
    """Give the stretch asked for; up to now, when no end is named, and None where no beginning is."""
    now = datetime.now(UTC)
    if since is None:
        if until is not None:
            raise invalid("replay_to", "goes with `replay_from`", "nothing, without it")
        return None
    if since >= now:
        raise invalid("from", "is not past yet", "a moment of the past")
    if until is not None and until <= since:
        raise invalid("to", "lies before the beginning", "a moment after it")
    return Span(since, min(until or now, now), speed)
