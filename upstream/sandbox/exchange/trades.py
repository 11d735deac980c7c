"""Trades served by the Data API."""

from __future__ import annotations

import msgspec

from upstream.sandbox.common.book import Side
from upstream.sandbox.exchange.transactions import Form


class SandboxTrade(msgspec.Struct, gc=False):
    """One fill: the taker's amount from one resting level; `form` is how the maker settles on the chain."""

    n: int
    condition_id: str
    token: str
    outcome: int
    side: Side
    price: int
    size: int
    ts_ms: int
    tx: str
    taker: str = ""
    maker: str = ""
    form: Form = ""
