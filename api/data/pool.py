"""The database connection pool of one API process: last in, first out; broken connections are replaced."""

from __future__ import annotations

import contextlib
import queue
import time
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.types.numeric import Int8Dumper

from api.errors import Problem
from api.metrics.counts import Counter, SharedCounters
from sql import database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

NO_PARAMETERS: Mapping[str, str | int] = MappingProxyType({})
RETRY_S = 1.0  # how long an unreachable database is left alone; then one request tries, not all


@dataclass(frozen=True)
class PoolCounters:
    """Where a pool counts its connections in use."""

    counts: SharedCounters
    busy: Counter


class Pool:
    """At most `size` connections in autocommit, opened on demand."""

    def __init__(
        self,
        url: str,
        size: int = 8,
        parameters: Mapping[str, str | int] = NO_PARAMETERS,
        *,
        wait_s: float = 2.0,
        counters: PoolCounters | None = None,
    ) -> None:
        self.url, self.wait_s, self.parameters = url, wait_s, parameters
        counters = counters or PoolCounters(SharedCounters(), Counter.READS_BUSY)
        self._counts, self._busy = counters.counts, counters.busy
        self._idle: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._retry_at = 0.0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection. An interrupted one is closed, since a query may still be running on it."""
        try:
            conn = self._idle.get(timeout=self.wait_s)
        except queue.Empty:
            self._counts.add(Counter.CONNECTIONS_LACKING)
            raise overloaded("All database connections are busy") from None
        self._counts.add(self._busy)
        try:
            if conn is None or conn.closed:
                conn = self._connect()
            yield conn
        except BaseException as error:
            if conn is not None and not conn.closed and not self._is_reusable(conn, error):
                conn.close()
            raise
        finally:
            self._counts.add(self._busy, -1)
            self._idle.put(conn if conn is not None and not conn.closed else None)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run an idempotent `work`; retry it once on a new connection if the connection is dead."""
        for last in (False, True):
            with self.connection() as conn:
                try:
                    return work(conn)
                except psycopg.OperationalError:
                    if last or not conn.closed:
                        raise
                    self._close_idle()
        raise AssertionError

    def close(self) -> None:
        """Close the idle connections."""
        self._close_idle()

    def _close_idle(self) -> None:
        """Close all idle connections: if one is dead, the others probably are too."""
        idle: list[Connection | None] = []
        with contextlib.suppress(queue.Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for conn in idle:
            if conn is not None:
                conn.close()
            self._idle.put(None)

    def _connect(self) -> Connection:
        if time.monotonic() < self._retry_at:
            raise overloaded("The database cannot be reached")
        try:
            conn = database.connect(self.url, autocommit=True, name="presage api", **self.parameters)
        except psycopg.OperationalError:
            self._retry_at = time.monotonic() + RETRY_S
            raise
        self._counts.add(Counter.CONNECTIONS_MADE)
        conn.prepare_threshold = 1
        conn.adapters.register_dumper(
            int, Int8Dumper
        )  # one integer width, so that a statement is prepared once and not once per width
        return conn

    @staticmethod
    def _is_reusable(conn: Connection, error: BaseException) -> bool:
        """Return whether the connection is reusable: after a failed statement it is, after an interrupted one not."""
        return isinstance(error, Exception) and conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def overloaded(detail: str, retry_s: int = 1) -> Problem:
    """Return the Problem for a transient failure, with Retry-After."""
    return Problem("overloaded", detail, hint=f"Retry in {retry_s} s", headers={"Retry-After": str(retry_s)})


def problem_for(error: psycopg.Error) -> Problem | None:
    """Return the Problem for a database failure; None for an error in our own code."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return overloaded("The query took too long")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return overloaded("The database is read-only at the moment")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return overloaded("The database cannot be reached")
    return None
