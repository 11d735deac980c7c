"""What a request costs, and whether its key can pay: exact in the second and in the month, over all workers of a host.

Credits are leased from the database, some hundred at a time, into the host's ledger; requests are paid for there.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from api.data.pool import overloaded
from api.errors import Problem
from api.metering.credit_leases import Leases
from api.metering.key import Key
from api.months import Month, unpaid

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Pool
    from api.metering.credit_ledger import Ledger, Standing
    from api.metrics.counts import Counts

LEAST, MOST = 10, 1000  # credits of a lease: a thousandth of the month's, within these
DRY_S = 1.0  # how long a key without credits is refused without asking the database
MOST_DRY = 10_000
MOST_TURNS = 500  # of one request that waits for credits beside others


class Stale(Exception):  # noqa: N818 (says what it is)
    """What is known of the key no longer holds: it is to be looked up again."""


class Grant(msgspec.Struct, gc=False):
    """Leave to answer one request: what it cost, and how the key stands after it."""

    key: Key
    cost: int
    used: int
    burst: int
    lease_id: int
    reset: int

    def headers(self) -> dict[str, str]:
        """Say so to the client, names in lower case."""
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
    """A request that its key cannot pay for, and how the key stands."""

    def __init__(self, grant: Grant, code: str, detail: str, hint: str, wait_s: int) -> None:
        super().__init__(code, detail, hint=hint, headers={"Retry-After": str(max(1, wait_s))})
        self.grant = grant


class Meter:
    """Counts and refuses."""

    def __init__(
        self,
        pool: Pool,
        ledger: Callable[[], Ledger],
        clock: Callable[[], float] = time.time,
        counts: Counts | None = None,
    ) -> None:
        self._ledger, self._clock = ledger, clock
        self.leases = Leases(pool, ledger, counts)
        self._month = Month.of(clock())
        self._dry: dict[int, tuple[float, int | None]] = {}

    def month(self, now: float | None = None) -> Month:
        """Give the present month."""
        now = self._clock() if now is None else now
        if not self._month.first <= now < self._month.end:
            self._month = Month.of(now)
        return self._month

    def admit(self, key: Key, cost: int) -> Grant:
        """Take a request's cost from its key; CannotPay if it has not enough, Stale if it must be looked up again."""
        left: int | None = None
        for _ in range(MOST_TURNS):
            now = self._clock()
            month = self.month(now)
            standing = self._ledger().take(key, cost, int(now), month.number)
            verdict = standing.verdict
            if verdict == "paid":
                return Grant(key, cost, standing.used, standing.burst, standing.lease_id, month.end)
            if verdict == "stale":
                raise Stale
            if verdict == "burst":
                raise _too_fast(_refused(key, standing, month), cost)
            if verdict == "over":
                raise self._exhausted(_refused(key, standing, month), cost)
            if verdict == "lacking":
                left = 0 if left is None and self._is_dry(key) else left
                if left is not None and standing.room + left < cost:
                    self._dry[key.key_id] = time.monotonic() + DRY_S, key.credits_month
                    raise self._exhausted(_refused(key, standing, month), cost)
            left = self._fetch(key, month, cost - standing.room)
        raise overloaded("The credits could not be counted")

    def standing(self, key: Key) -> Grant | None:
        """Tell how a key stands without asking it for anything, if that is known."""
        month = self.month()
        used = self._ledger().used(key.key_id, month.number)
        return None if used is None else Grant(key, 0, used, 0, 0, month.end)

    def refund(self, grant: Grant) -> None:
        """Give the cost back: the request failed, or there was nothing new to tell."""
        if grant.cost:
            used = self._ledger().refund(grant.key.key_id, grant.lease_id, grant.cost)
            grant.used = grant.used - grant.cost if used is None else used
            grant.cost = 0

    def nothing(self) -> dict[str, str]:
        """Give the headers of an answer that no key paid for, names in lower case."""
        return unpaid(self.month())

    def _fetch(self, key: Key, month: Month, lacking: int) -> int | None:
        quota = key.credits_month
        size = MOST if quota is None else min(max(quota // 1000, LEAST), MOST)
        left = self.leases.fetch(key.key_id, month.number, max(size, lacking))
        self.leases.tidy(int(self._clock()))
        if len(self._dry) > MOST_DRY:
            self._dry.clear()
        return left

    def _is_dry(self, key: Key) -> bool:
        """Tell whether the database had nothing for a key a moment ago; another quota may be another answer."""
        until, quota = self._dry.get(key.key_id, (0.0, None))
        return time.monotonic() < until and quota == key.credits_month

    def _exhausted(self, grant: Grant, cost: int) -> CannotPay:
        return CannotPay(
            grant,
            "quota_exhausted",
            f"The key has {grant.key.credits_month} credits a month and used {grant.used}; this request costs {cost}",
            f"The next month begins at {datetime.fromtimestamp(grant.reset, UTC):%Y-%m-%dT%H:%M:%SZ}",
            grant.reset - int(self._clock()),
        )


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


def _refused(key: Key, standing: Standing, month: Month) -> Grant:
    return Grant(key, 0, standing.used, standing.burst, standing.lease_id, month.end)
