"""Parameters of the market channel replay."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from api.schemas.requests import Instant, Parameters, Speed


class ReplayParameters(Parameters, frozen=True, kw_only=True):
    """The time range and speed of a replay."""

    api_key: Annotated[str | None, Meta(description="The API key")] = None
    from_: Annotated[Instant, Meta(description="From this moment on: RFC 3339 or Unix milliseconds")] = msgspec.field(
        name="from"
    )
    to: Annotated[
        Instant | None, Meta(description="Up to this moment: RFC 3339 or Unix milliseconds; default: now")
    ] = None
    speed: Speed = 1.0
