"""Parameters of the signal endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import Exchange, Instant, Parameters

SignalType = Literal["momentum", "volume_spike", "whale_alert", "spread_widening", "book_imbalance", "price_reversal"]
OfType = Annotated[SignalType | None, Meta(description="Only signals of this type")]


class SignalParameters(Parameters, frozen=True, kw_only=True):
    """Signals of a market."""

    type: OfType = None
    from_: Annotated[
        Instant | None,
        Meta(description="Only from this moment on: RFC 3339 or Unix milliseconds; default: 30 days ago"),
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Instant | None, Meta(description="Only before this moment: RFC 3339 or Unix milliseconds")] = None
    limit: Annotated[
        int,
        Meta(
            ge=1,
            le=500,
            description="Maximum number of signals in the response; others with the last one's `ts` are included",
        ),
    ] = 100


class RawSignalParameters(Parameters, frozen=True, kw_only=True):
    """Signals of a market, in raw form."""

    type: OfType = None


class TopSignalParameters(Parameters, frozen=True, kw_only=True):
    """The strongest signals."""

    exchange: Exchange = "polymarket"
    type: OfType = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Maximum number of signals in the response")] = 20
