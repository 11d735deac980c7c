"""Parameters of the stream."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from api.schemas.requests import (
    Instant,
    Parameters,
    Sequence,
    Speed,
)


class StreamParameters(Parameters, frozen=True, kw_only=True):
    """How to open the stream."""

    api_key: Annotated[str | None, Meta(description="The API key, since a browser cannot send it as a header")] = None
    resume_from: Annotated[
        Sequence | None, Meta(description="Start after this `seq`, with the events missed since")
    ] = None
    replay_from: Annotated[
        Instant | None, Meta(description="Replay past events from this moment on: RFC 3339 or Unix milliseconds")
    ] = None
    replay_to: Annotated[Instant | None, Meta(description="Up to this moment; default: the time of the request")] = None
    speed: Speed = 1.0
