"""What the stream tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Type = Literal["trade", "orderbook", "price", "market", "signal", "wallet_activity", "onchain_trade"]


@dataclass(frozen=True, slots=True)
class Event:
    """One event; `data` is the record that REST gives. `seq` ascends, over filters with leaps."""

    type: Type
    seq: int
    ts: int  # Unix milliseconds
    market_id: str | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gap:
    """Events that may be missing: those after one and up to another."""

    after: int
    upto: int
