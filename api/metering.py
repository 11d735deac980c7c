"""What a request costs, and whether its key can pay: exact in the second and in the month, over all workers of a host.

Credits are leased from the database, some hundred at a time, into memory that the workers share; most requests are paid
for there. A lease under way is noted before it is asked for, so that it is neither lost nor taken twice if the worker
that asks is killed.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from api.errors import Problem
from api.pool import overloaded
from api.slots import Slot
from sql.queries import keys as queries

if TYPE_CHECKING:
    from api.keys import Key
    from api.pool import Pool
    from api.slots import Slots

Verdict = Literal["paid", "dry", "ask", "wait"]
BOUNDLESS = 1 << 60
LEAST, MOST = 10, 1000  # credits of a lease: a thousandth of the month's, within these
LEASE_MS = 2000  # after so long whoever asked is taken for dead
DRY_MS = 1000  # how long a key without credits is refused without asking the database
PATIENCE_S = 5.0


@dataclass(slots=True)
class Grant:
    """Leave to answer one request: what it cost, and how the key stands after it."""

    key: Key
    cost: int
    month: int
    used: int
    burst_left: int | None
    refunded: bool = False

    def headers(self) -> dict[str, str]:
        """Say so to the client."""
        limit = self.key.credits_month
        shown = {
            "X-Credits-Limit": "unlimited" if limit is None else str(limit),
            "X-Credits-Remaining": "unlimited" if limit is None else str(max(0, limit - self.used)),
            "X-Credits-Used": str(self.used),
            "X-Credits-Reset": str(month_end()),
            "X-Request-Cost": "0" if self.refunded else str(self.cost),
        }
        if self.burst_left is not None:
            shown["RateLimit-Policy"] = f'"burst";q={self.key.credits_burst};w=1'
            shown["RateLimit"] = f'"burst";r={self.burst_left};t=1'
        return shown


class CannotPay(Problem):
    """A request that its key cannot pay for, and how the key stands."""

    def __init__(self, code: str, detail: str, hint: str, grant: Grant, wait_s: int) -> None:
        super().__init__(code, detail, hint=hint, headers={"Retry-After": str(wait_s)})
        self.grant = grant
        grant.refunded = True


class Meter:
    """Counts and refuses."""

    def __init__(self, pool: Pool, slots: Slots) -> None:
        self._pool, self._slots = pool, slots

    def admit(self, key: Key, cost: int) -> Grant:
        """Take a request's cost from its key; CannotPay if it has not enough."""
        patience = time.monotonic() + PATIENCE_S
        verdict, slot = self._draw(key, cost, first=True)
        while verdict != "paid":
            if verdict == "dry":
                raise _exhausted(_grant(key, cost, slot))
            if verdict == "ask":
                self._lease(key, slot, cost - slot.left)
            elif time.monotonic() > patience:
                raise overloaded("The credits could not be counted")
            else:
                time.sleep(0.002)
            verdict, slot = self._draw(key, cost, first=False)
        return _grant(key, cost, slot)

    def _draw(self, key: Key, cost: int, *, first: bool) -> tuple[Verdict, Slot]:
        """Pay from the slot, or say what to do about it."""
        now, month = time.time(), month_begin()
        now_ms = int(now * 1000)
        verdict: Verdict = "wait"  # another request of this key is asking
        with self._slots.locked():
            place, slot = self._slots.find(key.key_id)
            if slot.month != month:
                slot = Slot(key.key_id, month, second=slot.second, spent=slot.spent)
            if first and key.credits_burst is not None:
                slot = _in_turn(key, cost, slot, int(now))
            if slot.known and slot.left >= cost:
                verdict, slot = "paid", slot._replace(left=slot.left - cost)
            elif now_ms < slot.dry_until_ms:
                verdict = "dry"
            elif now_ms >= slot.lease_until_ms:
                # By the same name if its asker died: what it was given is then not taken again.
                lease_id = slot.lease_id or random.getrandbits(62) + 1
                verdict, slot = "ask", slot._replace(lease_id=lease_id, lease_until_ms=now_ms + LEASE_MS)
            self._slots.write(place, slot)
        return verdict, slot

    def refund(self, grant: Grant) -> None:
        """Give the cost back: the request failed, or there was nothing new to tell."""
        if grant.refunded:
            return
        grant.refunded = True
        if grant.cost and grant.month == month_begin():
            with self._slots.locked():
                place, slot = self._slots.find(grant.key.key_id)
                if slot.month == grant.month:
                    self._slots.write(place, slot._replace(left=slot.left + grant.cost))
            grant.used -= grant.cost

    def give_back(self, key_id: int | None = None) -> None:
        """Return what is leased and not spent, of one key or of all: before a key ends, or this process does."""
        back: list[Slot] = []
        with self._slots.locked():
            found = list(self._slots.unspent()) if key_id is None else [self._slots.find(key_id)]
            for place, slot in found:
                if slot.left:
                    self._slots.write(place, slot._replace(left=0, used=slot.used - slot.left))
                    back.append(slot)
        if back:
            ids, months, credits_ = zip(*((slot.key_id, slot.month, slot.left) for slot in back), strict=True)
            with self._pool.connection() as conn:
                queries.give_back(conn, key_ids=list(ids), months=list(months), credits=list(credits_))

    def _lease(self, key: Key, slot: Slot, least: int) -> None:
        """Fetch credits from the database into the slot."""
        most = BOUNDLESS if key.credits_month is None else key.credits_month
        wanted = max(least, min(max(most // 1000, LEAST), MOST))
        try:
            given, used = self._pool.read(  # twice if need be: one lease_id is granted once
                lambda conn: queries.lease(
                    conn, key_id=key.key_id, month=slot.month, lease_id=slot.lease_id, wanted=wanted, most=most
                )
            )
        except BaseException:
            self._settle(key, slot, None)
            raise
        self._settle(key, slot, (given, used, given < wanted))

    def _settle(self, key: Key, lease: Slot, given: tuple[int, int, bool] | None) -> None:
        """Enter a lease, unless someone else has: whoever took its asker for dead."""
        with self._slots.locked():
            place, slot = self._slots.find(key.key_id)
            if slot.lease_id != lease.lease_id or slot.month != lease.month:
                return
            if given is None:  # it may have been granted all the same: the next asks by the same name
                slot = slot._replace(lease_until_ms=0)
            else:
                credits_, used, dry = given
                until = int(time.time() * 1000) + DRY_MS if dry else 0
                slot = slot._replace(
                    left=slot.left + credits_, used=used, known=1, lease_id=0, lease_until_ms=0, dry_until_ms=until
                )
            self._slots.write(place, slot)


def _in_turn(key: Key, cost: int, slot: Slot, second: int) -> Slot:
    """Count a request in its second: one that costs nothing as one credit, one beyond all of a second's as those."""
    burst = key.credits_burst or 0
    spent = slot.spent if slot.second == second else 0
    weight = min(max(cost, 1), burst)
    if not burst or spent + weight > burst:
        raise CannotPay(
            "burst_exceeded",
            f"The key has {burst} credits a second",
            "Wait for the next second",
            _grant(key, cost, slot._replace(second=second, spent=spent)),
            wait_s=1,
        )
    return slot._replace(second=second, spent=spent + weight)


def _exhausted(grant: Grant) -> CannotPay:
    end = month_end()
    return CannotPay(
        "quota_exhausted",
        f"The key has {grant.key.credits_month} credits a month; this request costs {grant.cost}",
        f"The next month begins at {datetime.fromtimestamp(end, UTC):%Y-%m-%dT%H:%M:%SZ}",
        grant,
        wait_s=max(1, end - int(time.time())),
    )


def _grant(key: Key, cost: int, slot: Slot) -> Grant:
    burst_left = None if key.credits_burst is None else max(0, key.credits_burst - slot.spent)
    return Grant(key, cost, slot.month, slot.used - slot.left, burst_left)


_month: tuple[int, int] = (0, 0)


def _bounds() -> tuple[int, int]:
    """Give the first second of this month and of the next, UTC."""
    global _month  # noqa: PLW0603 (asked for by every answer)
    now = time.time()
    if not _month[0] <= now < _month[1]:
        today = datetime.fromtimestamp(now, UTC)
        year, month = divmod(today.year * 12 + today.month, 12)
        first, following = datetime(today.year, today.month, 1, tzinfo=UTC), datetime(year, month + 1, 1, tzinfo=UTC)
        _month = (int(first.timestamp()), int(following.timestamp()))
    return _month


def month_begin() -> int:
    """Give the first second of this month."""
    return _bounds()[0]


def month_end() -> int:
    """Give the first second of the next month."""
    return _bounds()[1]


def nothing() -> dict[str, str]:
    """Give the headers of an answer that no key paid for."""
    return {
        "X-Credits-Limit": "0",
        "X-Credits-Remaining": "0",
        "X-Credits-Used": "0",
        "X-Credits-Reset": str(month_end()),
        "X-Request-Cost": "0",
    }
