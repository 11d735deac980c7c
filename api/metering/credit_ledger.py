"""What the workers of a host know together of each key: what it may still spend, this second's use, whether it holds.

A key has a slot of 64 bytes, one of the sixteen of its bucket; whoever has been away longest gives way to a newcomer.
A worker may be killed between any two writes: they are so ordered that no credit is ever spent twice, and that those of
the requests under way are the only ones lost (and, if sixteen others crowd out a key just then, what it had leased).
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

VERSION = 1  # of the file; it stands in its name
WAYS = 16
BUCKETS = 1024  # 16,384 keys in use at once, in a megabyte
WIDTH = 64
CELLS = WIDTH // 8

# The header, in cells.
ENDED, SWEPT = 1, 2
# A slot.
KEY, GENERATION, LEASE, GRANTED, SPENT, STATE, BASE, WINDOW = range(CELLS)
STEPS = 40  # bits of STATE that hold the lease's step; above them the month
UNITS = 29  # bits of WINDOW that hold what was used; above them the second
USED = (1 << UNITS) - 1
MOST_BURST = 1 << (UNITS - 1)
LATE_S = 1  # by how much a worker that was held up between clock and lock may be behind another
UNKNOWN = -1  # BASE of a lease that the database has not answered yet

Verdict = Literal["paid", "burst", "lacking", "over", "unknown", "stale"]


class Standing(msgspec.Struct, gc=False):
    """How a key stands after it was asked to pay."""

    verdict: Verdict
    used: int = 0  # this month
    room: int = 0  # leased and not spent
    burst: int = 0  # used of this second's credits; beyond them: of the next seconds' as well
    lease_id: int = 0


class Lease(NamedTuple):
    """Credits of a month that this host holds."""

    key_id: int
    month: int
    lease_id: int
    granted: int
    step: int
    spent: int


class Ledger:
    """The slots of one host."""

    def __init__(self, shared: SharedFile, buckets: int) -> None:
        self._shared, self._buckets = shared, buckets
        self._cells = shared.cells
        self._places: dict[int, int] = {}
        self.evicted: list[Lease] = []  # leases without a slot, to be ended

    @classmethod
    def private(cls, buckets: int = 4) -> Ledger:
        """Make one for this process alone."""
        return cls(SharedFile.private(_size(buckets)), buckets)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Use the host's."""
        return cls(SharedFile.open(path, _size(BUCKETS)), BUCKETS)

    # --- Paying

    def take(self, key: Key, cost: int, second: int, month: int) -> Standing:
        """Pay for a request if the second and the month allow it."""
        cells, shared = self._cells, self._shared
        while True:
            at = self._place(key.key_id)
            shared.lock(at * 8, WIDTH)
            try:
                holder, generation, lease_id, granted, spent, state, base, window = cells[at : at + CELLS].tolist()
                if holder != key.key_id:
                    continue  # it had to give way just now
                if generation != key.generation:
                    return Standing("stale")
                if not lease_id or state >> STEPS != month or base == UNKNOWN:
                    return Standing("unknown")
                used, room = base + spent, granted - spent
                if window >> UNITS > second + LATE_S:
                    # The clock was set back: what is used counts from now.
                    cells[at + WINDOW] = window = second << UNITS | window & USED
                burst, fits = _in_turn(window, key.credits_burst, cost, second)
                if not fits:
                    return Standing("burst", used, room, burst, lease_id)
                if key.credits_month is not None and used + cost > key.credits_month and room >= cost:
                    return Standing("over", used, room, burst, lease_id)
                if room < cost:
                    return Standing("lacking", used, room, burst, lease_id)
                burst += max(cost, 1)  # what costs nothing counts as one
                cells[at + WINDOW] = max(second, window >> UNITS) << UNITS | min(burst, USED)
                cells[at + SPENT] = spent + cost
                return Standing("paid", used + cost, room - cost, burst, lease_id)
            finally:
                shared.unlock(at * 8, WIDTH)

    def refund(self, key_id: int, lease_id: int, cost: int) -> int | None:
        """Give credits back, if they are of the present lease; gives the month's use, if that is known."""
        with self._slot(key_id) as at:
            if at is None or self._cells[at + LEASE] != lease_id:
                return None
            self._cells[at + SPENT] -= cost
            return self._cells[at + BASE] + self._cells[at + SPENT]

    def used(self, key_id: int, month: int) -> int | None:
        """Tell what a key has used in a month, if that is known."""
        with self._slot(key_id) as at:
            if at is None or not self._cells[at + LEASE] or self._cells[at + BASE] == UNKNOWN:
                return None
            if self._cells[at + STATE] >> STEPS != month:
                return None
            return self._cells[at + BASE] + self._cells[at + SPENT]

    # --- Leasing

    def lease(self, key_id: int, month: int) -> Lease:
        """Give the lease of a month, begun if there is none; one of another month is at an end."""
        cells = self._cells
        with self._slot(key_id, make=True) as at:
            assert at is not None
            if not cells[at + LEASE] or cells[at + STATE] >> STEPS != month:
                self._evict(at)
                cells[at + LEASE] = 0  # until all is in place
                cells[at + GRANTED] = cells[at + SPENT] = 0
                cells[at + BASE] = UNKNOWN
                cells[at + STATE] = month << STEPS
                cells[at + LEASE] = secrets.randbits(62) + 1
            return self._lease(at)

    def enter(self, lease: Lease, granted: int, step: int, used: int) -> bool:
        """Write down what the database says of a lease; false if its slot has gone to another."""
        cells = self._cells
        with self._slot(lease.key_id) as at:
            if at is None or cells[at + LEASE] != lease.lease_id:
                return False
            known = cells[at + STATE] & ((1 << STEPS) - 1)
            if step < 0:  # it was returned meanwhile: another is to be begun
                cells[at + LEASE] = 0
            elif step > known:
                cells[at + BASE] = used - granted
                cells[at + STATE] = lease.month << STEPS | step
                cells[at + GRANTED] = granted  # last: if it is not reached, the database tells it again
            elif step == known and granted == cells[at + GRANTED]:
                cells[at + BASE] = used - granted
            return True

    def withdraw(self, idle_since: int | None = None) -> Iterator[Lease]:
        """Stop spending from every lease, or from those not used since a second. Once it is returned, `clear` it."""
        cells = self._cells
        for at in self._all():
            if cells[at] and (idle_since is None or cells[at + WINDOW] >> UNITS < idle_since):
                with self._locked(at):
                    if not cells[at] or (idle_since is not None and cells[at + WINDOW] >> UNITS >= idle_since):
                        continue
                    lease = self._lease(at)
                    cells[at + GRANTED] = lease.spent
                yield lease

    def clear(self, lease: Lease) -> None:
        """Free the slot of a returned lease, unless it has been used since."""
        cells = self._cells
        with self._slot(lease.key_id) as at:
            if at is not None and self._lease(at) == lease._replace(granted=lease.spent):
                cells[at] = 0
                cells[at + LEASE] = 0

    def due(self, second: int, every: int) -> bool:
        """Tell whether something is to be done that one worker does for all, every so often."""
        with self._locked(0):
            due = not 0 <= second - self._cells[SWEPT] < every
            if due:
                self._cells[SWEPT] = second
            return due

    def held(self) -> tuple[int, int]:
        """Tell how many keys have a lease, and how many credits of all leases are not spent."""
        leases, granted, spent = (self._cells[CELLS + part :: CELLS].tolist() for part in (LEASE, GRANTED, SPENT))
        return sum(map(bool, leases)), sum(granted) - sum(spent)

    # --- Whether a key holds

    @property
    def ended(self) -> int:
        """How many keys have ended, or changed. Whoever reads a key from the database compares before and after."""
        return self._cells[ENDED]

    def generation(self, key_id: int) -> int:
        """Give the number that changes when what is known of a key no longer holds."""
        return self._cells[self._place(key_id) + GENERATION]

    def end(self, key_id: int) -> None:
        """Have every worker ask the database again for a key that has ended, or changed."""
        with self._locked(0):
            self._cells[ENDED] += 1  # before the other: see `ended`
        with self._slot(key_id) as at:
            if at is not None:
                self._cells[at + GENERATION] += 1

    # --- Coming and going

    def leave(self, at_last: Callable[[], bool] = lambda: True) -> None:
        """Stop using the ledger; the last to leave is asked `at_last`, and removes it if that says so."""
        self._shared.leave(at_last)

    def _place(self, key_id: int) -> int:
        """Give the slot of a key, as the number of its first cell; made if there is none."""
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
                cells[at] = 0  # until all is in place
                cells[at + LEASE] = 0
                # As if just used, so that it is not the next to give way.
                cells[at + WINDOW] = max(cells[other + WINDOW] >> UNITS for other in slots) << UNITS
                cells[at + GENERATION] = secrets.randbits(62)  # another than any that was known before
                cells[at] = key_id
        finally:
            self._shared.unlock(bucket * 8, WAYS * WIDTH)
        self._places[key_id] = at
        return at

    def _evict(self, at: int) -> None:
        if self._cells[at + LEASE]:
            self.evicted.append(self._lease(at))

    def _lease(self, at: int) -> Lease:
        key_id, _, lease_id, granted, spent, state, _, _ = self._cells[at : at + CELLS]
        return Lease(key_id, state >> STEPS, lease_id, granted, state & ((1 << STEPS) - 1), spent)

    @contextmanager
    def _slot(self, key_id: int, *, make: bool = False) -> Iterator[int | None]:
        """Hold a key's slot; None if it has none."""
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


def _in_turn(window: int, burst: int | None, cost: int, second: int) -> tuple[int, bool]:
    """Tell what is used of a second, and whether a request still fits in.

    One that costs more than a whole second's credits waits for an unused second, and takes the following ones as well.
    """
    if burst is None:
        return 0, True
    used, passed = window & USED, second - (window >> UNITS)
    if passed > 0:
        used = max(0, used - min(burst, MOST_BURST) * passed)
    return used, (not used and burst > 0) or used + max(cost, 1) <= min(burst, MOST_BURST)
