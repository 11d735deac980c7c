"""What signals can be asked for."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from api.parameters import Parameters

SignalType = Literal["momentum", "volume_spike", "whale_alert", "spread_widening", "book_imbalance", "price_reversal"]
OfType = Annotated[SignalType | None, Meta(description="Only signals of this type")]


class SignalsOf(Parameters, frozen=True, kw_only=True):
    """Signals of a market."""

    type: OfType = None


class StrongestSignals(Parameters, frozen=True, kw_only=True):
    """The head of a ranking of signals."""

    type: OfType = None
    limit: Annotated[int, Meta(ge=1, le=200, description="Signals in one answer")] = 20
