"""Responses of the signal endpoints. The JSON is built by `signal_record` in `sql/timescale/functions.sql`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from api.endpoints.signals.requests import SignalType
from api.schemas.records import MarketId, Outcome, UnixMs


class Signal(Struct):
    """A signal: a value beyond its threshold."""

    id: Annotated[
        str, Meta(description="Decimal number; stable when the same signal is detected again", examples=["712094"])
    ]
    type: SignalType
    market_id: MarketId
    outcome: Outcome
    value: Annotated[
        float, Meta(ge=0, description="The measured value, in the unit of the signal's type", examples=[0.12])
    ]
    threshold: Annotated[float, Meta(gt=0, description="The value from which it counts as a signal", examples=[0.05])]
    score: Annotated[float, Meta(ge=0, description="value / threshold", examples=[2.4])]
    direction: Annotated[
        Literal["up", "down"] | None, Meta(description="Direction of the outcome's price; null: no direction")
    ]
    window_s: Annotated[
        int, Meta(ge=0, description="Length of the measured window before `ts`, in seconds", examples=[3900])
    ]
    detail: Annotated[dict[str, Any], Meta(description="The figures that it was computed from")]
    ts: UnixMs


class TopSignals(Struct):
    """Signals of the last 24 hours, highest score first."""

    data: list[Signal]
    count: Annotated[int, Meta(ge=0, description="Number of records in `data`")]
