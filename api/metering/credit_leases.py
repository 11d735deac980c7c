"""Credits on their way between the database and the ledger of this host."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import psycopg

from api.data.pool import overloaded
from api.errors import Problem
from api.metrics.counts import Counts, Number
from sql.queries import metering as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from api.data.pool import Pool
    from api.metering.credit_ledger import Lease, Ledger

UNLIMITED = 1 << 60
IDLE_S, SWEEP_S = 600, 60  # a key unused for so long gives its credits back; looked for so often
CHUNK = 500  # leases ended in one transaction

log = logging.getLogger("presage.api")


@dataclass
class Asking:
    """A lease that is being asked for; others of the same key wait for it."""

    done: threading.Event = field(default_factory=threading.Event)
    left: int | None = None  # what the database has beyond it


class Leases:
    """Takes credits of the month from the database, some at a time, and gives back what is not spent."""

    def __init__(self, pool: Pool, ledger: Callable[[], Ledger], counts: Counts | None = None) -> None:
        self._pool, self._ledger, self._counts = pool, ledger, counts or Counts()
        self._asking: dict[int, Asking] = {}
        self._sweep_at = time.monotonic() + SWEEP_S
        self._closed = False

    def fetch(self, key_id: int, month: int, wanted: int) -> int | None:
        """Have more credits in the ledger; tell how many the database has beyond, None when that is not known.

        Requests of one key that come while it is being asked wait for the first one's answer.
        """
        if self._closed:
            raise overloaded("The service is stopping")
        asking = self._asking.get(key_id)
        if asking is not None:
            asking.done.wait(10)  # whoever asks is bound by the statement timeout; if it fails, one of us asks again
            return asking.left
        self._asking[key_id] = asking = Asking()
        self._counts.add(Number.LEASES_ASKED)
        try:
            asking.left = self._ask(self._ledger().lease(key_id, month), wanted)
            self._end_evicted()
            return asking.left
        finally:
            del self._asking[key_id]
            asking.done.set()

    def tidy(self, second: int) -> None:
        """See to it that now and then one worker sweeps for all."""
        now = time.monotonic()
        if now > self._sweep_at:
            self._sweep_at = now + SWEEP_S
            if self._ledger().due(second, SWEEP_S):
                threading.Thread(target=self.sweep, args=[second - IDLE_S], daemon=True).start()

    def sweep(self, idle_since: int) -> None:
        """Free the slots that have not been used since a second, and give their credits back."""
        try:
            for lease in self._end(self._ledger().withdraw(idle_since)):
                self._ask(lease, 0)  # the database knows more of it: then it can be ended next time
        except (psycopg.Error, Problem) as error:
            log.warning("credits could not be returned: %s", error)

    def close(self) -> None:
        """Leave the ledger; the last to do so gives back what is not spent. For when all requests are answered."""
        if not self._closed:
            self._closed = True
            self._ledger().leave(self._give_back)

    def _ask(self, lease: Lease, wanted: int) -> int:
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
        if not self._ledger().enter(lease, granted, step, used):
            # Its slot has gone to another: nothing of what has been granted now was spent.
            self._ledger().evicted.append(lease._replace(step=step, spent=lease.granted))
        return UNLIMITED if left is None else int(left)

    def _give_back(self) -> bool:
        try:
            remain = self._end(self._ledger().withdraw(), for_sure=True)
            self._end_evicted()
        except (psycopg.Error, Problem) as error:
            log.warning("credits could not be returned, and are kept for the next start: %s", error)
            return False
        return not remain

    def _end_evicted(self) -> None:
        """End the leases that have no slot any more, so that nobody spends from them."""
        evicted = self._ledger().evicted
        while evicted:
            leases = evicted[:]
            self._end(leases, for_sure=True)
            del evicted[: len(leases)]

    def _end(self, leases: Iterable[Lease], *, for_sure: bool = False) -> list[Lease]:
        """Return leases to the database and free their slots; give those that have moved on.

        `for_sure` none can have: nobody else spends from them.
        """
        todo, remain = sorted(leases), []  # in one order on every host, so that none waits for another in a circle
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


def _begin(lease: Lease) -> datetime:
    return datetime(lease.month // 12, lease.month % 12 + 1, 1, tzinfo=UTC)
