"""Connections of one API process: the last one used is the next one used, and a broken one is replaced."""

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
from api.metrics.counts import Counts, Number
from sql import database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Connection = psycopg.Connection[tuple[Any, ...]]
T = TypeVar("T")

NONE: Mapping[str, str | int] = MappingProxyType({})
RETRY_S = 1.0  # an unreachable database is asked again after this long, by one request and not by all


@dataclass(frozen=True)
class Told:
    """Where a pool's use is counted."""

    counts: Counts
    busy: Number


class Pool:
    """At most `size` connections, in autocommit, made when first needed."""

    def __init__(
        self,
        url: str,
        size: int = 8,
        parameters: Mapping[str, str | int] = NONE,
        *,
        wait_s: float = 2.0,
        told: Told | None = None,
    ) -> None:
        self.url, self.wait_s, self.parameters = url, wait_s, parameters
        told = told or Told(Counts(), Number.READS_BUSY)
        self._counts, self._busy = told.counts, told.busy
        self._idle: queue.LifoQueue[Connection | None] = queue.LifoQueue()
        for _ in range(size):
            self._idle.put(None)
        self._retry_at = 0.0

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection. Whatever interrupts its use closes it: a query may still be running on it."""
        try:
            conn = self._idle.get(timeout=self.wait_s)
        except queue.Empty:
            self._counts.add(Number.CONNECTIONS_LACKING)
            raise overloaded("All database connections are busy") from None
        self._counts.add(self._busy)
        try:
            if conn is None or conn.closed:
                conn = self._connect()
            yield conn
        except BaseException as error:
            if conn is not None and not conn.closed and not self._at_rest(conn, error):
                conn.close()
            raise
        finally:
            self._counts.add(self._busy, -1)
            self._idle.put(conn if conn is not None and not conn.closed else None)

    def read(self, work: Callable[[Connection], T]) -> T:
        """Do something that may be done twice: a connection that turns out to be dead is replaced once."""
        for last in (False, True):
            with self.connection() as conn:
                try:
                    return work(conn)
                except psycopg.OperationalError:
                    if last or not conn.closed:
                        raise
                    self._forget()
        raise AssertionError

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._forget()

    def _forget(self) -> None:
        """Close all idle connections: when one was dead, so are probably the others."""
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
        self._counts.add(Number.CONNECTIONS_MADE)
        conn.prepare_threshold = 1
        conn.adapters.register_dumper(int, Int8Dumper)  # one width: a statement is prepared once, not for each
        return conn

    @staticmethod
    def _at_rest(conn: Connection, error: BaseException) -> bool:
        """Tell whether the connection is still usable: it is after a failed statement, not after an interrupted one."""
        return isinstance(error, Exception) and conn.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def overloaded(detail: str, retry_s: int = 1) -> Problem:
    """Give the answer for what may work again in a moment."""
    return Problem("overloaded", detail, hint=f"Try again in {retry_s} s", headers={"Retry-After": str(retry_s)})


def answer(error: psycopg.Error) -> Problem | None:
    """Give what a client is told of a failure of the database; None when it is our own mistake."""
    if isinstance(error, psycopg.errors.QueryCanceled):
        return overloaded("The query took too long")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return overloaded("The database takes no writes right now")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return overloaded("The database cannot be reached")
    return None
