"""Pools of connections to Dagster's storage, for the processes that use it all the time.

Dagster connects anew for each statement, and PostgreSQL starts a process for each connection. In the demo that took as
much of the kernel's time as all programs together took of their own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any

from dagster_postgres.utils import create_pg_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dagster import DagsterInstance
    from dagster._core.instance.ref import InstanceRef

STATEMENT_TIMEOUT_MS = 60_000
POOL_SIZE, MAX_OVERFLOW = 4, 20  # for each of three storages; the server allows 200 connections
RECYCLE_S = 3600


def keep_connections(instance: DagsterInstance) -> None:
    """Give an instance's storages pools in place of a connection for each statement.

    Dagster's own `optimize_for_webserver` keeps one connection for all threads, and fails the first statement after a
    restart of the server.
    """
    for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        made: Any = storage
        options = made._engine.url.query.get("options", "")  # noqa: SLF001 (Dagster has no setting for it)
        made._engine = create_pg_engine(  # noqa: SLF001
            made.postgres_url,
            made._token_provider,  # noqa: SLF001
            isolation_level="AUTOCOMMIT",
            pool_size=POOL_SIZE,
            max_overflow=MAX_OVERFLOW,
            pool_recycle=RECYCLE_S,
            pool_pre_ping=True,
            pool_use_lifo=True,
            connect_args={"options": f"{options} -c statement_timeout={STATEMENT_TIMEOUT_MS}"},
        )


def pooled(
    instance: Callable[..., AbstractContextManager[DagsterInstance]],
) -> Callable[..., AbstractContextManager[DagsterInstance]]:
    """Return the same way to open Dagster's instance, with connections that are kept."""

    @contextmanager
    def opened(**given: Any) -> Iterator[DagsterInstance]:
        with instance(**given) as made:
            keep_connections(made)
            yield made

    return opened


class SharedInstance:
    """Dagster's instance of this process, in place of one for each tick of a sensor or schedule."""

    def __init__(self, open_instance: Callable[[InstanceRef], DagsterInstance]) -> None:
        self._open, self._lock = open_instance, Lock()
        self._held: tuple[InstanceRef, DagsterInstance] | None = None

    def __call__(self, ref: InstanceRef) -> AbstractContextManager[DagsterInstance]:
        """Return the instance for a `with` block, whose end leaves it open."""
        with self._lock:
            if self._held is None or self._held[0] != ref:
                made = self._open(ref)
                keep_connections(made)
                self._held = ref, made
            return nullcontext(self._held[1])
