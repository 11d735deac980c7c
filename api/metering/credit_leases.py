"""Leases credits from the database into this host's ledger and returns unspent ones."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import psycopg
from cachetools import TTLCache

from api.data.pool import overloaded
from api.errors import Problem
from api.metrics.counts import Counter, SharedCounters
from sql.queries import metering as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from api.data.pool import Pool
    from api.metering.credit_ledger import CreditLease, CreditLedger

UNLIMITED = 1 << 60
TOP_UP_S, SPENT_S = 1.0, 30.0  # at most so often a key's lease is topped up, and if its month had no more
MAX_TOPPED_UP = 10_000  # keys
IDLE_S, SWEEP_S = 600, 60  # idle keys return their credits after IDLE_S, checked every SWEEP_S
LAST_LEASES_S = 3.0  # how long the last worker waits for leases that are being asked for in the background
CHUNK = 500  # leases returned in one transaction

log = logging.getLogger("presage.api")


def in_background(call: Callable[[], object]) -> None:
    """Call it in another thread."""
    threading.Thread(target=call, daemon=True).start()


@dataclass
class PendingLease:
    """A lease request in progress; other requests of the same key wait for it."""

    done: threading.Event = field(default_factory=threading.Event)
    left: int | None = None  # what remains in the database


class CreditLeases:
    """Leases the month's credits from the database in portions, and returns unspent ones."""

    def __init__(self, pool: Pool, ledger: Callable[[], CreditLedger], counts: SharedCounters | None = None) -> None:
        self._pool, self._ledger, self._counts = pool, ledger, counts or SharedCounters()
        self.in_background = in_background  # a test sets another
        self._asking: dict[int, PendingLease] = {}
        self._topped_up: TTLCache[int, bool] = TTLCache(MAX_TOPPED_UP, TOP_UP_S)
        self._spent: TTLCache[int, bool] = TTLCache(MAX_TOPPED_UP, SPENT_S)
        self._sweep_at = time.monotonic() + SWEEP_S
        self._closed = False

    def fetch(self, key_id: int, month: int, wanted: int) -> int | None:
        """Lease more credits into the ledger; return how many remain in the database, None if unknown.

        Concurrent requests of one key wait for the first one's result.
        """
        if self._closed:
            raise overloaded("The service is stopping")
        asking = self._asking.get(key_id)
        if asking is not None:
            asking.done.wait(10)  # the first is bound by the statement timeout; if it fails, a waiter retries
            return asking.left
        self._asking[key_id] = asking = PendingLease()
        self._counts.add(Counter.LEASES_ASKED)
        try:
            asking.left = self._ask(self._ledger().lease(key_id, month), wanted)
            self._end_evicted()
            return asking.left
        finally:
            del self._asking[key_id]
            asking.done.set()

    def top_up(self, key_id: int, month: int, wanted: int) -> None:
        """Lease more credits in the background, before the last are spent: requests need no database for a while."""
        if not (self._closed or key_id in self._asking or key_id in self._topped_up or key_id in self._spent):
            self._topped_up[key_id] = True
            self.in_background(partial(self._top_up, key_id, month, wanted))

    def _top_up(self, key_id: int, month: int, wanted: int) -> None:
        with suppress(psycopg.Error, Problem):  # a request that needs them asks again
            if self.fetch(key_id, month, wanted) == 0:
                self._spent[key_id] = True

    def tidy(self, second: int) -> None:
        """Start a sweep from time to time, in one worker for all."""
        now = time.monotonic()
        if now > self._sweep_at:
            self._sweep_at = now + SWEEP_S
            if self._ledger().due(second, SWEEP_S):
                self.in_background(partial(self.sweep, second - IDLE_S))

    def sweep(self, idle_since: int) -> None:
        """Return the credits of keys not used since `idle_since` (Unix seconds), and free their slots."""
        try:
            for lease in self._end(self._ledger().withdraw(idle_since)):
                self._ask(lease, 0)  # the database is ahead: update the ledger so that the next sweep can return it
        except (psycopg.Error, Problem) as error:
            log.warning("credits could not be returned: %s", error)

    def close(self) -> None:
        """Leave the ledger; the last worker returns unspent credits. Call after all requests are answered."""
        if not self._closed:
            self._closed = True
            self._ledger().leave(self._give_back)

    def _ask(self, lease: CreditLease, wanted: int) -> int:
        granted, step, used, left = self._pool.read(
            lambda conn: queries.lease(
                conn,
                key_id=lease.key_id,
                month=_begin(lease),
                lease_id=lease.lease_id,
                granted=lease.granted,
                step=lease.step,
                wanted=wanted,
            )
        )
        if not self._ledger().record(lease, granted, step, used):
            # Its slot was reassigned: none of the newly granted credits were spent.
            self._ledger().evicted.append(lease._replace(step=step, spent=lease.granted))
        return UNLIMITED if left is None else int(left)

    def _give_back(self) -> bool:
        until = time.monotonic() + LAST_LEASES_S
        if not all(asking.done.wait(until - time.monotonic()) for asking in list(self._asking.values())):
            log.warning("credits are still being leased; those of this host are kept for the next start")
            return False
        try:
            remain = self._end(self._ledger().withdraw(), for_sure=True)
            self._end_evicted()
        except (psycopg.Error, Problem) as error:
            log.warning("credits could not be returned, and are kept for the next start: %s", error)
            return False
        return not remain

    def _end_evicted(self) -> None:
        """Return the leases that lost their slot; nobody can spend from them."""
        evicted = self._ledger().evicted
        while evicted:
            leases = evicted[:]
            self._end(leases, for_sure=True)
            del evicted[: len(leases)]

    def _end(self, leases: Iterable[CreditLease], *, for_sure: bool = False) -> list[CreditLease]:
        """Return leases to the database and free their slots; return those that changed meanwhile.

        With `for_sure` none can have changed: nobody else spends from them.
        """
        todo, remain = sorted(leases), []  # one order on every host, to avoid deadlocks
        for start in range(0, len(todo), CHUNK):
            chunk = todo[start : start + CHUNK]
            with self._pool.connection() as conn:
                answer = queries.settle(
                    conn,
                    key_ids=[lease.key_id for lease in chunk],
                    months=[_begin(lease) for lease in chunk],
                    lease_ids=[lease.lease_id for lease in chunk],
                    steps=[None if for_sure else lease.step for lease in chunk],
                    spent=[lease.spent for lease in chunk],
                )
                ended = [done for (done,) in answer]
            for lease, done in zip(chunk, ended, strict=True):
                if done:
                    self._ledger().clear(lease)
                else:
                    remain.append(lease)
        return remain


def _begin(lease: CreditLease) -> datetime:
    return datetime(lease.month // 12, lease.month % 12 + 1, 1, tzinfo=UTC)
