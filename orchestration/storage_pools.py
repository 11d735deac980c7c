"""Pools of connections to Dagster's storage, for the processes that use it all the time.

Dagster connects anew for each statement, and PostgreSQL starts a process for each connection. In the demo that took as
much of the kernel's time as all programs together took of their own.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any

from dagster import DagsterInstance
from dagster_postgres.utils import create_pg_engine

from sql.database import connection_limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dagster._core.instance.ref import InstanceRef

STATEMENT_TIMEOUT_MS = 60_000
# Of each of three storages. Threads bound what is open: some 25 in the daemon, cores + 5 in the code server.
POOL_SIZE, MAX_OVERFLOW = 3, 12
RECYCLE_S = 3600
VANISHED_S = 10


def keep_connections(instance: DagsterInstance, statement_timeout_ms: int = STATEMENT_TIMEOUT_MS) -> None:
    """Give an instance's storages pools in place of a connection for each statement.

    Dagster's own `optimize_for_webserver` keeps one connection for all threads, fails the first statement after a
    restart of the server, and keeps connections to a server that has become a replica.
    """
    for storage in (instance.run_storage, instance.event_log_storage, instance.schedule_storage):
        made: Any = storage
        if not hasattr(made, "postgres_url"):  # an instance without our dagster.yaml
            continue
        given = made._engine.url.normalized_query.get("options", ())  # noqa: SLF001 (Dagster has no setting for it)
        made._engine = create_pg_engine(  # noqa: SLF001
            made.postgres_url,
            made._token_provider,  # noqa: SLF001
            isolation_level="AUTOCOMMIT",
            pool_size=POOL_SIZE,
            max_overflow=MAX_OVERFLOW,
            pool_recycle=RECYCLE_S,
            pool_pre_ping=True,
            pool_use_lifo=True,
            connect_args={
                "options": " ".join([*given, f"-c statement_timeout={statement_timeout_ms}"]),
                "target_session_attrs": "primary",
                **connection_limits(connect_timeout_s=VANISHED_S, vanished_s=VANISHED_S),
            },
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
    """One instance of Dagster for this process, which otherwise opens one for each tick of a sensor or schedule."""

    def __init__(self, open_instance: Callable[[InstanceRef], DagsterInstance]) -> None:
        self._open, self._lock = open_instance, Lock()
        self._held: tuple[InstanceRef, DagsterInstance] | None = None

    def __call__(self, instance_ref: InstanceRef) -> AbstractContextManager[DagsterInstance]:
        """Return the instance for a `with` block, whose end leaves it open."""
        held = self._held
        if held is None or held[0] != instance_ref:
            with self._lock:
                held = self._held
                if held is None or held[0] != instance_ref:
                    made = self._open(instance_ref)
                    keep_connections(made)
                    held = self._held = instance_ref, made
        return nullcontext(held[1])


def share_instance() -> None:
    """Let all that opens Dagster's instance by its reference share one in this process."""
    DagsterInstance.from_ref = staticmethod(SharedInstance(DagsterInstance.from_ref))  # type: ignore[assignment, method-assign]
