"""The credit ledger of a host, in shared memory: each key's leased credits, use in this second, and validity.

A key has a slot of 64 bytes, one of sixteen in its bucket; the least recently used slot is evicted for a new key.
A worker may be killed between any two writes. They are ordered so that no credit is ever spent twice, and only those of
requests in progress can be lost (and a key's whole lease, if sixteen other keys evict it at that moment).
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from api.shared_memory.file import SharedFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from api.metering.key import Key

VERSION = 1  # of the file format; part of the file's name
WAYS = 16
BUCKETS = 1024  # 16,384 concurrent keys in one megabyte
WIDTH = 64
CELLS = WIDTH // 8

# The header, in cells.
ENDED, SWEPT = 1, 2
# A slot.
KEY, GENERATION, LEASE, GRANTED, SPENT, STATE, BASE, WINDOW = range(CELLS)
STEPS = 40  # low bits of STATE: the lease's step; above them the month
UNITS = 29  # low bits of WINDOW: the credits used; above them the second
USED = (1 << UNITS) - 1
MAX_BURST = 1 << (UNITS - 1)
MAX_CLOCK_LAG_S = 1  # how far a worker delayed between clock and lock may lag behind another
UNKNOWN = -1  # BASE of a lease that the database has not confirmed yet

Verdict = Literal["paid", "burst", "lacking", "over", "unknown", "stale"]


class ChargeResult(msgspec.Struct, gc=False):
    """The result of charging a key."""

    verdict: Verdict
    used: int = 0  # this month
    room: int = 0  # leased and unspent
    burst: int = 0  # credits used of this second; above the limit: of the next seconds too
    lease_id: int = 0


class CreditLease(NamedTuple):
    """Credits of a month leased to this host."""

    key_id: int
    month: int
    lease_id: int
    granted: int
    step: int
    spent: int


class CreditLedger:
    """The credit ledger of one host: its slots in shared memory."""

    def __init__(self, shared: SharedFile, buckets: int) -> None:
        self._shared, self._buckets = shared, buckets
        self._cells = shared.cells
        self._places: dict[int, int] = {}
        self.evicted: list[CreditLease] = []  # leases that lost their slot, to be returned

    @classmethod
    def private(cls, buckets: int = 4) -> CreditLedger:
        """Create a ledger for this process only."""
        return cls(SharedFile.private(_size(buckets)), buckets)

    @classmethod
    def open(cls, path: Path) -> CreditLedger:
        """Open the host's ledger."""
        return cls(SharedFile.open(path, _size(BUCKETS)), BUCKETS)

    # --- Charging

    def charge(self, key: Key, cost: int, second: int, month: int) -> ChargeResult:
        """Charge a request if the limits of the second and the month allow it."""
        cells, shared = self._cells, self._shared
        while True:
            at = self._place(key.key_id)
            shared.lock(at * 8, WIDTH)
            try:
                holder, generation, lease_id, granted, spent, state, base, window = cells[at : at + CELLS].tolist()
                if holder != key.key_id:
                    continue  # evicted meanwhile
                if generation != key.generation:
                    return ChargeResult("stale")
                if not lease_id or state >> STEPS != month or base == UNKNOWN:
                    return ChargeResult("unknown")
                used, room = base + spent, granted - spent
                if window >> UNITS > second + MAX_CLOCK_LAG_S:
                    # The clock was set back: count from the current second.
                    cells[at + WINDOW] = window = second << UNITS | window & USED
                burst, fits = _fits_burst(window, key.credits_burst, cost, second)
                if not fits:
                    return ChargeResult("burst", used, room, burst, lease_id)
                if key.credits_month is not None and used + cost > key.credits_month and room >= cost:
                    return ChargeResult("over", used, room, burst, lease_id)
                if room < cost:
                    return ChargeResult("lacking", used, room, burst, lease_id)
                burst += max(cost, 1)  # a free request counts as one
                cells[at + WINDOW] = max(second, window >> UNITS) << UNITS | min(burst, USED)
                cells[at + SPENT] = spent + cost
                return ChargeResult("paid", used + cost, room - cost, burst, lease_id)
            finally:
                shared.unlock(at * 8, WIDTH)

    def refund(self, key_id: int, lease_id: int, cost: int) -> int | None:
        """Refund credits of the current lease; return the month's use, None if unknown."""
        with self._slot(key_id) as at:
            if at is None or self._cells[at + LEASE] != lease_id:
                return None
            self._cells[at + SPENT] -= cost
            return self._cells[at + BASE] + self._cells[at + SPENT]

    def used(self, key_id: int, month: int) -> int | None:
        """Return the credits that a key has used in a month, None if unknown."""
        with self._slot(key_id) as at:
            if at is None or not self._cells[at + LEASE] or self._cells[at + BASE] == UNKNOWN:
                return None
            if self._cells[at + STATE] >> STEPS != month:
                return None
            return self._cells[at + BASE] + self._cells[at + SPENT]

    # --- Leasing

    def lease(self, key_id: int, month: int) -> CreditLease:
        """Return the key's lease of a month, created if missing; a lease of another month is evicted."""
        cells = self._cells
        with self._slot(key_id, make=True) as at:
            assert at is not None
            if not cells[at + LEASE] or cells[at + STATE] >> STEPS != month:
                self._evict(at)
                cells[at + LEASE] = 0  # until all cells are set
                cells[at + GRANTED] = cells[at + SPENT] = 0
                cells[at + BASE] = UNKNOWN
                cells[at + STATE] = month << STEPS
                cells[at + LEASE] = secrets.randbits(62) + 1
            return self._lease(at)

    def record(self, lease: CreditLease, granted: int, step: int, used: int) -> bool:
        """Record the database's state of a lease; return False if its slot was reassigned."""
        cells = self._cells
        with self._slot(lease.key_id) as at:
            if at is None or cells[at + LEASE] != lease.lease_id:
                return False
            known = cells[at + STATE] & ((1 << STEPS) - 1)
            if step < 0:  # it was returned meanwhile: a new lease is needed
                cells[at + LEASE] = 0
            elif step > known:
                cells[at + BASE] = used - granted
                cells[at + STATE] = lease.month << STEPS | step
                cells[at + GRANTED] = granted  # written last: after a crash before it, the database returns it again
            elif step == known and granted == cells[at + GRANTED]:
                cells[at + BASE] = used - granted
            return True

    def withdraw(self, idle_since: int | None = None) -> Iterator[CreditLease]:
        """Stop spending from all leases, or from those idle since a second; yield them. Once returned, `clear` each."""
        cells = self._cells
        for at in self._all():
            if cells[at] and (idle_since is None or cells[at + WINDOW] >> UNITS < idle_since):
                with self._locked(at):
                    if not cells[at] or (idle_since is not None and cells[at + WINDOW] >> UNITS >= idle_since):
                        continue
                    lease = self._lease(at)
                    cells[at + GRANTED] = lease.spent
                yield lease

    def clear(self, lease: CreditLease) -> None:
        """Free the slot of a returned lease, unless it was used since."""
        cells = self._cells
        with self._slot(lease.key_id) as at:
            if at is not None and self._lease(at) == lease._replace(granted=lease.spent):
                cells[at] = 0
                cells[at + LEASE] = 0

    def due(self, second: int, every: int) -> bool:
        """Return True in one worker every `every` seconds, for a task that one worker does for all."""
        with self._locked(0):
            due = not 0 <= second - self._cells[SWEPT] < every
            if due:
                self._cells[SWEPT] = second
            return due

    def totals(self) -> tuple[int, int]:
        """Return the number of leases and their unspent credits."""
        leases, granted, spent = (self._cells[CELLS + part :: CELLS].tolist() for part in (LEASE, GRANTED, SPENT))
        return sum(map(bool, leases)), sum(granted) - sum(spent)

    # --- Key invalidation

    @property
    def ended(self) -> int:
        """The number of revoked or changed keys so far. A reader of keys compares it before and after the query."""
        return self._cells[ENDED]

    def generation(self, key_id: int) -> int:
        """Return the key's generation, which changes when cached data of the key becomes invalid."""
        return self._cells[self._place(key_id) + GENERATION]

    def end(self, key_id: int) -> None:
        """Invalidate a revoked or changed key in every worker."""
        with self._locked(0):
            self._cells[ENDED] += 1  # before the generation: see `ended`
        with self._slot(key_id) as at:
            if at is not None:
                self._cells[at + GENERATION] += 1

    # --- Slots

    def leave(self, on_last: Callable[[], bool] = lambda: True) -> None:
        """Stop using the ledger; the last to leave calls `on_last` and removes the file if that returns True."""
        self._shared.leave(on_last)

    def _place(self, key_id: int) -> int:
        """Return the first cell of a key's slot, allocated if there is none."""
        at = self._places.get(key_id)
        if at is not None and self._cells[at] == key_id:
            return at
        if len(self._places) > self._buckets * WAYS:
            self._places.clear()
        bucket = CELLS * (1 + WAYS * (key_id % self._buckets))
        slots = range(bucket, bucket + WAYS * CELLS, CELLS)
        cells = self._cells
        self._shared.lock(bucket * 8, WAYS * WIDTH)
        try:
            free = oldest = -1
            for at in slots:
                if cells[at] == key_id:
                    break
                if not cells[at]:
                    free = at if free < 0 else free
                elif oldest < 0 or cells[at + WINDOW] < cells[oldest + WINDOW]:
                    oldest = at
            else:
                at = free
                if at < 0:
                    at = oldest
                    self._evict(at)
                cells[at] = 0  # until all cells are set
                cells[at + LEASE] = 0
                # As if just used, so that it is not evicted next.
                cells[at + WINDOW] = max(cells[other + WINDOW] >> UNITS for other in slots) << UNITS
                cells[at + GENERATION] = secrets.randbits(62)  # different from any earlier one
                cells[at] = key_id
        finally:
            self._shared.unlock(bucket * 8, WAYS * WIDTH)
        self._places[key_id] = at
        return at

    def _evict(self, at: int) -> None:
        if self._cells[at + LEASE]:
            self.evicted.append(self._lease(at))

    def _lease(self, at: int) -> CreditLease:
        key_id, _, lease_id, granted, spent, state, _, _ = self._cells[at : at + CELLS]
        return CreditLease(key_id, state >> STEPS, lease_id, granted, state & ((1 << STEPS) - 1), spent)

    @contextmanager
    def _slot(self, key_id: int, *, make: bool = False) -> Iterator[int | None]:
        """Lock a key's slot and yield its first cell; None if it has none."""
        while True:
            at = self._place(key_id) if make else self._find(key_id)
            if at is None:
                yield None
                return
            with self._locked(at):
                if self._cells[at] == key_id:
                    yield at
                    return

    def _find(self, key_id: int) -> int | None:
        bucket = CELLS * (1 + WAYS * (key_id % self._buckets))
        slots = range(bucket, bucket + WAYS * CELLS, CELLS)
        return next((at for at in slots if self._cells[at] == key_id), None)

    def _all(self) -> range:
        return range(CELLS, _size(self._buckets) // 8, CELLS)

    @contextmanager
    def _locked(self, at: int) -> Iterator[None]:
        self._shared.lock(at * 8, WIDTH)
        try:
            yield
        finally:
            self._shared.unlock(at * 8, WIDTH)


def _size(buckets: int) -> int:
    return WIDTH * (1 + buckets * WAYS)


def _fits_burst(window: int, burst: int | None, cost: int, second: int) -> tuple[int, bool]:
    """Return the credits used in a second, and whether a request still fits.

    A request that costs more than a second's credits needs an unused second and also uses the following ones.
    """
    if burst is None:
        return 0, True
    used, passed = window & USED, second - (window >> UNITS)
    if passed > 0:
        used = max(0, used - min(burst, MAX_BURST) * passed)
    return used, (not used and burst > 0) or used + max(cost, 1) <= min(burst, MAX_BURST)
