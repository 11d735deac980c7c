"""Retry schedule and results of attempts, as in Standard Webhooks 1.0.0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# Before each attempt: seconds since the end of the one before, the first at once. 75 h 35 min in all.
DELAYS_S = (0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
MAX_RETRY_AFTER_S = 86_400  # max delay that an answer may request
GONE = 410
THROTTLED = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an attempt: a status, or why there is none."""

    began: float
    ended: float
    status: int | None = None
    error: str | None = None
    answer: str = ""
    retry_after_s: float | None = None

    @property
    def arrived(self) -> bool:
        """Return whether the receiver has accepted it."""
        return self.status is not None and 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class Verdict:
    """What happens to the delivery next."""

    state: Literal["waiting", "delivered", "failed"]
    next_at: float | None = None
    disabled: str | None = None
    """Why the webhook is disabled, if it is."""


def verdict(attempts: int, outcome: Outcome, *, test: bool = False) -> Verdict:
    """Return the verdict after the latest of a number of attempts. A test is tried once."""
    if outcome.arrived:
        return Verdict("delivered")
    if outcome.status == GONE:
        return Verdict("failed", disabled="the receiver answered 410 Gone")
    if test or attempts >= len(DELAYS_S):
        return Verdict("failed")
    wait_s = float(DELAYS_S[attempts])
    if outcome.status in THROTTLED and outcome.retry_after_s is not None:
        wait_s = max(wait_s, min(outcome.retry_after_s, MAX_RETRY_AFTER_S))
    return Verdict("waiting", outcome.ended + wait_s)
