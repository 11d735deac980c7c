"""Charges requests to their keys, with exact limits per second and month over all workers of a host.

Credits are leased from the database into the host's ledger, some hundred at a time, and requests are charged there.
The ledger is topped up when half of them are spent, so that requests are charged while the database is away.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
from cachetools import TTLCache

from api.data.pool import overloaded
from api.errors import Problem
from api.metering.credit_leases import CreditLeases
from api.metering.key import Key
from api.months import Month, unpaid

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Pool
    from api.metering.credit_ledger import ChargeResult, CreditLedger
    from api.metrics.counts import SharedCounters

MIN_LEASE, MAX_LEASE = 10, 1000  # bounds of a lease's credits, which are a thousandth of the month's
EXHAUSTED_TTL_S = 1.0  # how long an exhausted key is refused without a database query
MAX_EXHAUSTED_KEYS = 10_000
MAX_ATTEMPTS = 500  # attempts of one request that competes with others for credits


class StaleKey(Exception):  # noqa: N818 (says what it is)
    """The cached key is outdated and must be looked up again."""


class Grant(msgspec.Struct, gc=False):
    """An admitted request: its cost and the key's usage after it."""

    key: Key
    cost: int
    used: int
    burst: int
    lease_id: int
    reset: int

    def headers(self) -> dict[str, str]:
        """Return the credit headers, with lower-case names."""
        limit = self.key.credits_month
        shown = {
            "x-credits-limit": "unlimited" if limit is None else str(limit),
            "x-credits-remaining": "unlimited" if limit is None else str(max(0, limit - self.used)),
            "x-credits-used": str(self.used),
            "x-credits-reset": str(self.reset),
            "x-request-cost": str(self.cost),
        }
        if (burst := self.key.credits_burst) is not None:
            shown["ratelimit-policy"] = f'"burst";q={burst};w=1'
            shown["ratelimit"] = f'"burst";r={max(0, burst - self.burst)};t=1'
        return shown


class CannotPay(Problem):
    """The key has too few credits for the request; `grant` holds its usage."""

    def __init__(self, grant: Grant, code: str, detail: str, hint: str, wait_s: int) -> None:
        super().__init__(code, detail, hint=hint, headers={"Retry-After": str(max(1, wait_s))})
        self.grant = grant


class Meter:
    """Charges requests, and refuses those beyond a key's limits."""

    def __init__(
        self,
        pool: Pool,
        ledger: Callable[[], CreditLedger],
        clock: Callable[[], float] = time.time,
        counts: SharedCounters | None = None,
    ) -> None:
        self._ledger, self._clock = ledger, clock
        self.leases = CreditLeases(pool, ledger, counts)
        self._month = Month.of(clock())
        # By id of the key, with its quota, since a changed quota invalidates the entry.
        self._exhausted_keys: TTLCache[int, int | None] = TTLCache(MAX_EXHAUSTED_KEYS, EXHAUSTED_TTL_S)

    def month(self, now: float | None = None) -> Month:
        """Return the current month."""
        now = self._clock() if now is None else now
        if not self._month.first <= now < self._month.end:
            self._month = Month.of(now)
        return self._month

    def admit(self, key: Key, cost: int) -> Grant:
        """Charge a request to its key; raise CannotPay if credits are short, StaleKey if the cached key is outdated."""
        left: int | None = None
        for _ in range(MAX_ATTEMPTS):
            now = self._clock()
            month = self.month(now)
            result = self._ledger().charge(key, cost, int(now), month.number)
            verdict = result.verdict
            if verdict == "paid":
                half = (size := _lease_size(key)) // 2
                if result.room < half and 0 < cost <= half:  # of dear requests a lease holds none in advance
                    self.leases.top_up(key.key_id, month.number, size - result.room)
                    self.leases.tidy(int(now))
                return Grant(key, cost, result.used, result.burst, result.lease_id, month.end)
            if verdict == "stale":
                raise StaleKey
            if verdict == "burst":
                raise _too_fast(_refused(key, result, month), cost)
            if verdict == "over":
                raise self._exhausted(_refused(key, result, month), cost)
            if verdict == "lacking":
                left = 0 if left is None and self._is_exhausted(key) else left
                if left is not None and result.room + left < cost:
                    self._exhausted_keys[key.key_id] = key.credits_month
                    raise self._exhausted(_refused(key, result, month), cost)
            left = self._fetch(key, month, cost - result.room)
        raise overloaded("The credits could not be counted")

    def usage(self, key: Key) -> Grant | None:
        """Return a key's usage without charging it; None if unknown."""
        month = self.month()
        used = self._ledger().used(key.key_id, month.number)
        return None if used is None else Grant(key, 0, used, 0, 0, month.end)

    def refund(self, grant: Grant) -> None:
        """Refund the cost, after a failed request or a 304."""
        if grant.cost:
            used = self._ledger().refund(grant.key.key_id, grant.lease_id, grant.cost)
            grant.used = grant.used - grant.cost if used is None else used
            grant.cost = 0

    def unpaid_headers(self) -> dict[str, str]:
        """Return the credit headers of a response without a key, with lower-case names."""
        return unpaid(self.month())

    def _fetch(self, key: Key, month: Month, lacking: int) -> int | None:
        left = self.leases.fetch(key.key_id, month.number, max(_lease_size(key), lacking))
        self.leases.tidy(int(self._clock()))
        return left

    def _is_exhausted(self, key: Key) -> bool:
        """Return whether a key was exhausted a moment ago; a changed quota invalidates this."""
        return self._exhausted_keys.get(key.key_id, -1) == key.credits_month

    def _exhausted(self, grant: Grant, cost: int) -> CannotPay:
        return CannotPay(
            grant,
            "quota_exhausted",
            f"The key has {grant.key.credits_month} credits a month and used {grant.used}; this request costs {cost}",
            f"The next month begins at {datetime.fromtimestamp(grant.reset, UTC):%Y-%m-%dT%H:%M:%SZ}",
            grant.reset - int(self._clock()),
        )


def _lease_size(key: Key) -> int:
    quota = key.credits_month
    return MAX_LEASE if quota is None else min(max(quota // 1000, MIN_LEASE), MAX_LEASE)


def _too_fast(grant: Grant, cost: int) -> CannotPay:
    burst = grant.key.credits_burst or 0
    beyond = grant.burst if cost > burst else grant.burst + max(cost, 1) - burst
    return CannotPay(
        grant,
        "burst_exceeded",
        f"The key has {burst} credits a second; this request costs {cost}",
        "Wait for the next second",
        -(-beyond // burst) if burst else 1,
    )


def _refused(key: Key, result: ChargeResult, month: Month) -> Grant:
    return Grant(key, 0, result.used, result.burst, result.lease_id, month.end)
