"""Dagster's code server, with runs forked from a process that has imported everything.

python -m orchestration.code_server [OPTIONS OF `dagster api grpc`]

Dagster starts a new Python for each run, which imports Dagster and our definitions again: four seconds of processor
time, a dozen times in the first minute and several times in each minute after it. A fork takes half a second.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pkgutil
import time
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any

from dagster._cli.api import grpc_command
from dagster._grpc import server
from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import OperationalError

from orchestration import assets as defs
from orchestration import run_priority
from orchestration.storage_pools import share_instance

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger(__name__)

WAIT_S = 600.0  # as `presage up` waits for the database
RETRY_S = 0.2
USABLE = "select coalesce(has_table_privilege(to_regclass('runs'), 'insert'), has_schema_privilege('public', 'create'))"

PRELOADED = [
    "orchestration.definitions",
    *(f"orchestration.assets.{module.name}" for module in pkgutil.iter_modules(defs.__path__)),
    *("orchestration.run_priority", "dagster._grpc.impl", "dagster_postgres", "dagster_pipes"),
]


class CodeServer(server.DagsterApiServer):
    """Dagster's own server, except for how run processes start."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._mp_ctx = multiprocessing.get_context("forkserver")  # type: ignore[assignment]


def preload() -> None:
    """Start the process that runs are forked from; it imports in parallel with this one."""
    multiprocessing.set_forkserver_preload(PRELOADED)
    forkserver.ensure_running()


def wait_for_database(url: str, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until our login can use the database; `presage up` creates it meanwhile. Dagster itself gives up soon."""
    engine, began, reason = create_engine(url, poolclass=NullPool), time.monotonic(), ""
    while time.monotonic() - began < WAIT_S:
        before = reason
        try:
            with engine.connect() as conn:
                if conn.scalar(text(USABLE)):
                    return
                reason = "it is not ours yet"
        except OperationalError as error:
            reason = str(error.orig)
        if reason != before:
            log.warning("waiting for the database: %s", reason)
        sleep(RETRY_S)
    log.error("the database cannot be used after %.0f s; Dagster tries it and then gives up: %s", WAIT_S, reason)


def main() -> None:
    """Serve until asked to stop."""
    preload()
    if url := os.environ.get("DAGSTER_PG_URL"):
        wait_for_database(url)
    server.DagsterApiServer = CodeServer  # type: ignore[misc]
    server.start_run_in_subprocess = run_priority.execute  # type: ignore[attr-defined]
    share_instance()  # of ticks: a run is forked from another process, and opens its own
    grpc_command()


if __name__ == "__main__":
    main()
