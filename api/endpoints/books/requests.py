"""What order books can be asked for."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from api.schemas.requests import Instant, OfOutcome, Range

MOST_STEPS = 1000
LONGEST_S = 86_400


class OrderbookOf(OfOutcome, frozen=True, kw_only=True):
    """The order book of one outcome."""

    at: Annotated[
        Instant | None,
        Meta(description="The book as it stood at this moment: RFC 3339 or Unix milliseconds; now when left out"),
    ] = None


class BooksOf(Range, frozen=True, kw_only=True):
    """The order book of one outcome, over and over again."""

    to: Annotated[
        Instant | None,
        Meta(description="Up to this moment, which is included: RFC 3339 or Unix milliseconds; now when left out"),
    ] = msgspec.field(default=None)
    step: Annotated[int, Meta(ge=1, le=LONGEST_S, description="Seconds from one book to the next")] = 60
    depth: Annotated[int, Meta(ge=0, le=100, description="Levels of each side in the answer; 0: the figures alone")] = (
        10
    )
