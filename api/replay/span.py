"""Which stretch of the past a replay plays."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from api.errors import Problem
from api.replay.player import Span

if TYPE_CHECKING:
    from typing import NoReturn


def span_of(since: datetime | None, until: datetime | None, speed: float) -> Span | None:
    """Give the stretch asked for; up to now, when no end is named, and None where no beginning is."""
    now = datetime.now(UTC)
    if since is None:
        if until is not None:
            _refuse("replay_to", "goes with `replay_from`", "nothing, without it")
        return None
    if since >= now:
        _refuse("from", "is not past yet", "a moment of the past")
    if until is not None and until <= since:
        _refuse("to", "lies before the beginning", "a moment after it")
    return Span(since, min(until or now, now), speed)


def _refuse(name: str, what: str, allowed: str) -> NoReturn:
    raise Problem(
        "invalid_parameter",
        f"`{name}` {what}",
        hint=f"Allowed: {allowed}",
        errors=[{"name": name, "detail": what, "allowed": allowed}],
    )
