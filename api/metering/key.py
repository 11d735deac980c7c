"""An API key as requests know it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """A valid key and what it may do; None is without limit."""

    key_id: int
    tier: str
    credits_month: int | None
    credits_burst: int | None
    max_connections: int | None
    generation: int = 0  # the ledger's, when this was read
    account_id: int = 0  # whose it is
