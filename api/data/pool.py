"""The database connection pool of one API process: last in, first out; broken connections are replaced."""

from __future__ import annotations

import contextlib
import queue
import threading
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
CONNECT_TIMEOUT_S = 5
VANISHED_S = 10  # a server that does not acknowledge what it is sent for so long is gone


@dataclass(frozen=True)
class PoolCounters:
    """Where a pool counts its connections in use."""

    counts: SharedCounters
    busy: Counter


class Pool:
    """At most `size` connections in autocommit, opened on demand; `of_the_primary`, never to a replica."""

    def __init__(
        self,
        url: str,
        size: int = 8,
        parameters: Mapping[str, str | int] = NO_PARAMETERS,
        *,
        wait_s: float = 2.0,
        of_the_primary: bool = False,
        counters: PoolCounters | None = None,
    ) -> None:
        self.url, self.wait_s, self.parameters = url, wait_s, parameters
        self._of_the_primary = of_the_primary
        counters = counters or PoolCounters(SharedCounters(), Counter.READS_BUSY)
        self._counts, self._busy = counters.counts, counters.busy
        self._idle: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._retry_at = 0.0
        self._unreachable = False  # at the last attempt
        self._attempt = threading.Lock()  # of the one request that tries while it is unreachable

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
            if _is_of_a_replica(error):
                self._close_idle()
            raise
        finally:
            self._counts.add(self._busy, -1)
            self._idle.put(conn if conn is not None and not conn.closed else None)

    def read(self, work: Callable[[Connection], T], *, again: bool = True) -> T:
        """Run an idempotent `work`; `again` on a new connection if this one is dead, or to a replica by now."""
        for last in (False, True) if again else (True,):
            with self.connection() as conn:
                try:
                    return work(conn)
                except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as error:
                    if not (conn.closed or _is_of_a_replica(error)):
                        raise
                    conn.close()
                    self._close_idle()
                    if last:
                        raise
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
        is_trial = self._unreachable
        if time.monotonic() < self._retry_at or (is_trial and not self._attempt.acquire(blocking=False)):
            raise Unreachable
        try:
            conn = database.connect(
                self.url,
                autocommit=True,
                name="presage api",
                connect_timeout_s=CONNECT_TIMEOUT_S,
                vanished_s=VANISHED_S,
                **self.parameters,
            )
            if self._of_the_primary:
                _refuse_replica(conn)
            self._unreachable = False
        except psycopg.OperationalError:
            self._unreachable, self._retry_at = True, time.monotonic() + RETRY_S
            raise
        finally:
            if is_trial:
                self._attempt.release()
        self._counts.add(Counter.CONNECTIONS_MADE)
        conn.prepare_threshold = 1
        conn.adapters.register_dumper(
            int, Int8Dumper
        )  # one integer width, so that a statement is prepared once and not once per width
        return conn

    @staticmethod
    def _is_reusable(conn: Connection, error: BaseException) -> bool:
        """Return whether the connection is reusable: after a failed statement it is, after an interrupted one not."""
        if _is_of_a_replica(error):
            return False
        return isinstance(error, Exception) and conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def _refuse_replica(conn: Connection) -> None:
    """Close a connection to a replica and raise OperationalError: the address leads to a former primary, say."""
    if conn.pgconn.parameter_status(b"in_hot_standby") == b"on":
        conn.close()
        raise psycopg.OperationalError("the database's address leads to a replica")


class Unreachable(Problem):
    """No connection could be made lately, and another request is trying, or nobody is yet."""

    def __init__(self) -> None:
        super().__init__(
            "overloaded", "The database cannot be reached", hint="Retry in 1 s", headers={"Retry-After": "1"}
        )


def _is_of_a_replica(error: BaseException) -> bool:
    """Return whether a server refused a write: it was the primary once, and another is now."""
    return isinstance(error, psycopg.errors.ReadOnlySqlTransaction)


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
