"""What signals can be asked for."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from api.schemas.requests import Instant, Parameters

SignalType = Literal["momentum", "volume_spike", "whale_alert", "spread_widening", "book_imbalance", "price_reversal"]
OfType = Annotated[SignalType | None, Meta(description="Only signals of this type")]


class SignalsOf(Parameters, frozen=True, kw_only=True):
    """Signals of a market."""

    type: OfType = None
    from_: Annotated[
        Instant | None,
        Meta(description="Only from this moment on: RFC 3339 or Unix milliseconds; 30 days ago when left out"),
    ] = msgspec.field(default=None, name="from")
    to: Annotated[Instant | None, Meta(description="Only before this moment: RFC 3339 or Unix milliseconds")] = None
    limit: Annotated[
        int,
        Meta(ge=1, le=500, description="Signals in one answer; others of the last one's instant come along"),
    ] = 100


class HeldSignalsOf(Parameters, frozen=True, kw_only=True):
    """Signals of a market, as they are held."""

    type: OfType = None


class StrongestSignals(Parameters, frozen=True, kw_only=True):
    """The head of a ranking of signals."""

    type: OfType = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Signals in one answer")] = 20
