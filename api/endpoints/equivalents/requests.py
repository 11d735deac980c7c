"""Parameters of the endpoint of equivalent markets."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from api.schemas.requests import Parameters

Verdict = Literal["identical", "inverted", "subset", "related", "different", "unreadable"]


class EquivalentParameters(Parameters, frozen=True, kw_only=True):
    """Markets of other exchanges that may ask the same."""

    verdict: Annotated[
        Verdict | None, Meta(description="Only this verdict; without it, all but `different` and `unreadable`")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of markets in the response")] = 20
