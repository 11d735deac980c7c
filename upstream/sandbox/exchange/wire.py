"""Lines of the sandbox's truth log."""

from __future__ import annotations

from typing import Any

import msgspec


class Fact(msgspec.Struct, omit_defaults=True):
    """One line of the truth log: an event of the exchange, and how many sockets received it."""

    n: int
    kind: str
    token: str = ""
    condition_id: str = ""
    ts_ms: int = 0
    side: str = ""
    price: str = ""
    size: str = ""
    tx: str = ""
    hash: str = ""
    best_bid: str = ""
    best_ask: str = ""
    sent: int = 0
    detail: dict[str, Any] | None = None
