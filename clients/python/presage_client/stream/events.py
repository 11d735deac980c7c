"""Events of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Type = Literal["trade", "orderbook", "price", "market", "signal", "wallet_activity", "onchain_trade"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `data` is the record as in the REST API. `seq` ascends, with jumps where a filter skips events."""

    type: Type
    seq: int
    ts: int  # Unix milliseconds
    market_id: str | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StreamGap:
    """A range of events that may be missing: `seq` above `after`, up to and including `upto`."""

    after: int
    upto: int
