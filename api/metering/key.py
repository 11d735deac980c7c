"""The API key of a request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """A valid key and its limits; None means unlimited."""

    key_id: int
    tier: str
    credits_month: int | None
    credits_burst: int | None
    max_connections: int | None
    generation: int = 0  # the ledger's, when the key was read
    account_id: int = 0  # the owner
