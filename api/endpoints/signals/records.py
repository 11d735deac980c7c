"""What endpoints of signals answer."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from api.endpoints.signals.requests import SignalType
from api.schemas.records import MarketId, Outcome, UnixMs


class Signal(Struct):
    """Something that stood out: a value beyond its threshold."""

    id: Annotated[str, Meta(description="In decimal; the same however often it is found", examples=["712094"])]
    type: SignalType
    market_id: MarketId
    outcome: Outcome
    value: Annotated[float, Meta(ge=0, description="What was found, in the unit of its type", examples=[0.12])]
    threshold: Annotated[float, Meta(gt=0, description="From where on it counts", examples=[0.05])]
    score: Annotated[float, Meta(ge=0, description="value / threshold", examples=[2.4])]
    direction: Annotated[
        Literal["up", "down"] | None, Meta(description="Where the outcome's price goes; null: nowhere in particular")
    ]
    window_s: Annotated[int, Meta(ge=0, description="Seconds up to `ts` that it was found in", examples=[3900])]
    detail: Annotated[dict[str, Any], Meta(description="The figures behind it")]
    ts: UnixMs


class TopSignals(Struct):
    """Signals of the last 24 hours, the highest score first."""

    data: list[Signal]
    count: Annotated[int, Meta(ge=0, description="How many there are in `data`")]
