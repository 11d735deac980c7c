"""Parameters of the price and candle endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import (
    MAX_BUCKETS,
    MAX_LIST_LENGTH,
    OutcomeParameters,
    Parameters,
    RangeParameters,
    Seconds,
)


class PriceParameters(Parameters, frozen=True, kw_only=True):
    """Several markets at once."""

    ids: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=MAX_LIST_LENGTH,
            description="Up to 100 markets, separated by commas: ids or slugs",
            examples=["will-it-rain-tomorrow"],
        ),
    ]


class PriceHistoryParameters(RangeParameters, frozen=True, kw_only=True):
    """Candles of one outcome."""

    resolution: Annotated[Literal["1s", "1m", "5m", "1h"], Meta(description="The width of a candle")] = "1m"
    limit: Annotated[
        int, Meta(ge=1, le=MAX_BUCKETS, description="Maximum number of candles: the newest of the range")
    ] = 500
    fill: Annotated[
        Literal["none", "previous"],
        Meta(description="`previous`: a bucket without trades repeats the last close; `none`: it is omitted"),
    ] = "none"


class CandleParameters(OutcomeParameters, frozen=True, kw_only=True):
    """Candles as requested by a charting library."""

    resolution: Annotated[Literal["1", "60"], Meta(description="Bar width in minutes")] = "1"
    from_: Annotated[Seconds | None, Meta(description="From this moment on: Unix seconds")] = msgspec.field(
        default=None, name="from"
    )
    to: Annotated[Seconds | None, Meta(description="Only before this moment: Unix seconds; default: now")] = None
