"""Reads from a replica, while it is close behind the primary."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg

from api.data.pool import Pool, Unreachable
from api.errors import Problem
from sql.queries import pipeline as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from api.data.pool import Connection

T = TypeVar("T")

EVERY_S = 1.0
"""Seconds between two looks at how far the replica is behind."""

lag_of_answer: ContextVar[float | None] = ContextVar("lag_of_answer", default=None)
"""How far the replica was behind that has answered last, in this request; None: the primary has."""


class ReplicaReads:
    """Lends connections as a `Pool` does: to the replica while it is at most `max_lag_s` behind, or to the primary.

    Of two that cannot both be had, the other one is read: a replica that is behind, while the primary does not answer,
    and the primary, while the replica does not. How far the replica is behind is the age of the newest transaction that
    it has replayed, by its own clock; the pipeline commits several times a second.
    """

    def __init__(
        self, replica: Pool, primary: Pool, *, max_lag_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.url = replica.url
        self.replica, self._primary = replica, primary
        # One of its own: a replica that is busy is not away.
        self.looks = Pool(replica.url, 1, replica.parameters)
        self._max_lag_s, self._clock = max_lag_s, clock
        self._looking = threading.Lock()
        self._looked_at = float("-inf")
        self._lag_s: float | None = None  # None: it does not answer, or does not know

    def _is_close(self) -> bool:
        # One request looks, and the others go by what was known before.
        if self._clock() - self._looked_at >= EVERY_S and self._looking.acquire(blocking=False):
            try:
                self._lag_s = self._look()
            finally:
                self._looked_at = self._clock()
                self._looking.release()
        return self._lag_s is not None and self._lag_s <= self._max_lag_s

    def _look(self) -> float | None:
        try:
            return cast("float | None", self.looks.read(queries.lag_of_reads))
        except (psycopg.Error, Problem):
            return None

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection."""
        with (self.replica if self._is_close() else self._primary).connection() as conn:
            yield conn

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run an idempotent `work`."""
        lag_s = self._lag_s
        if self._is_close():
            lag_s = self._lag_s
            try:
                return self._read(self.replica, work, lag_s, again=False)  # if it is lost, the primary answers at once
            except _GoneError:
                self._lag_s, self._looked_at = None, self._clock()
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                pass  # it conflicts with what is replayed
        try:
            return self._read(self._primary, work, None)
        except _GoneError as gone:
            if lag_s is None:
                raise gone.fault from None
        try:
            found = self._read(self.replica, work, lag_s)
        except _GoneError as gone:
            raise gone.fault from None
        self._lag_s = lag_s
        return found

    @staticmethod
    def _read(pool: Pool, work: Callable[[Connection], T], lag_s: float | None, *, again: bool = True) -> T:
        """Run it there; raise _GoneError if no connection could be had or it was lost, but not if all are busy."""
        lent: list[Any] = []

        def noted(conn: Connection) -> T:
            lent.append(conn)
            return work(conn)

        try:
            found = pool.read(noted, again=again)
        except (psycopg.OperationalError, Unreachable) as fault:
            if lent and not lent[-1].closed:
                raise
            raise _GoneError(fault) from fault
        lag_of_answer.set(lag_s)
        return found

    def close(self) -> None:
        """Close the idle connections."""
        for pool in (self.replica, self._primary, self.looks):
            pool.close()


class _GoneError(Exception):
    """A server does not answer."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault
