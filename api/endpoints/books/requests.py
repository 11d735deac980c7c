"""Parameters of the order book endpoints."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from api.schemas.requests import Instant, OutcomeParameters, RangeParameters

MAX_STEPS = 1000
MAX_SPAN_S = 86_400


class OrderbookParameters(OutcomeParameters, frozen=True, kw_only=True):
    """The order book of one outcome."""

    at: Annotated[
        Instant | None,
        Meta(description="The book at this moment: RFC 3339 or Unix milliseconds; default: now"),
    ] = None


class BookHistoryParameters(RangeParameters, frozen=True, kw_only=True):
    """The order book of one outcome at even steps."""

    to: Annotated[
        Instant | None,
        Meta(description="Up to and including this moment: RFC 3339 or Unix milliseconds; default: now"),
    ] = msgspec.field(default=None)
    step: Annotated[int, Meta(ge=1, le=MAX_SPAN_S, description="Seconds from one book to the next")] = 60
    depth: Annotated[
        int, Meta(ge=0, le=100, description="Levels of each side in the response; 0: only the figures")
    ] = 10
