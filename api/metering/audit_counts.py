"""Counts of refused requests, by address and minute: kept in memory, written to the audit trail from time to time.

A flood of requests is a few rows, and no request waits for them.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from sql.audit import Entry, report
from sql.queries import audit as queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from api.data.pool import Connection

FLUSH_S = 5.0  # between two writes of a worker's counts: what is lost if it is killed
GRACE_S = 30  # after the end of a minute, until it counts as over for all workers
MAX_SINGLE = 256  # addresses (with result, and key if known) that a worker counts singly in a minute
OTHERS = "others"  # all further addresses of the minute

log = logging.getLogger("presage.api")


class Counted(NamedTuple):
    """What is counted together."""

    minute: int  # Unix seconds of its beginning
    action: str
    result: str
    address: str
    account_id: int
    key_id: int


class AuditCounts:
    """Counts of this worker that are not written yet."""

    def __init__(
        self, connect: Callable[[], AbstractContextManager[Connection]], clock: Callable[[], float] = time.time
    ) -> None:
        self._connect, self._clock = connect, clock
        self._counts: dict[Counted, int] = {}
        self._single: set[Counted] = set()  # of the current minute
        self._minute = 0
        self._open_until = 0.0  # by then, all minutes in which this worker has counted are over
        self._stopped = threading.Event()

    def count(
        self, address: str, action: str, result: str, account_id: int | None = None, key_id: int | None = None
    ) -> None:
        """Count a request."""
        minute = int(self._clock() // 60) * 60
        if minute != self._minute:
            self._minute, self._single = minute, set()
            self._open_until = minute + 60 + GRACE_S
        counted = Counted(minute, action, result, address, account_id or 0, key_id or 0)
        if counted not in self._single:
            if len(self._single) < MAX_SINGLE:
                self._single.add(counted)
            else:
                counted = Counted(minute, action, result, OTHERS, 0, 0)
        self._counts[counted] = self._counts.get(counted, 0) + 1

    def start(self) -> None:
        """Start to write the counts, in a thread."""
        threading.Thread(target=self._run, name="audit counts", daemon=True).start()

    def stop(self) -> None:
        """Write what is left, and stop."""
        self._stopped.set()
        self.flush()

    def flush(self) -> None:
        """Write the counts, and enter those of minutes that are over in the audit trail."""
        counts, self._counts = self._counts, {}
        try:
            with self._connect() as conn:
                if counts:
                    self._write(conn, counts)
                    counts = {}
                for ts, action, result, times, account_id, key_id, address in queries.close_minutes(
                    conn, before=int((self._clock() - GRACE_S) // 60) * 60
                ):
                    who = {"account_id": account_id, "key_id": key_id, "address": address}
                    report(Entry(action, result, **who, times=times, ts=ts, stored=True))
        except Exception as error:  # noqa: BLE001 (the next write is tried all the same)
            log.warning("the audit trail cannot be written, its counts are kept: %s", type(error).__name__)
            for counted, times in counts.items():
                self._counts[counted] = self._counts.get(counted, 0) + times

    @staticmethod
    def _write(conn: Connection, counts: dict[Counted, int]) -> None:
        columns = list(zip(*sorted(counts.items()), strict=True))  # in one order everywhere, to avoid deadlocks
        minutes, actions, results, addresses, account_ids, key_ids = map(list, zip(*columns[0], strict=True))
        queries.count(
            conn,
            minutes=minutes,
            actions=actions,
            results=results,
            addresses=addresses,
            account_ids=account_ids,
            key_ids=key_ids,
            times=list(columns[1]),
        )

    def _run(self) -> None:
        self.flush()  # minutes that a worker counted in before it was killed
        while not self._stopped.wait(FLUSH_S):
            if self._counts or self._clock() < self._open_until + 2 * FLUSH_S:
                self.flush()
