"""Dagster's code server, with runs forked from a process that has imported everything.

python -m orchestration.code_server [OPTIONS OF `dagster api grpc`]

Dagster starts a new Python for each run, which imports Dagster and our definitions again: four seconds of processor
time, a dozen times in the first minute and several times in each minute after it. A fork takes half a second.
"""

from __future__ import annotations

import multiprocessing
import pkgutil
from multiprocessing import forkserver
from typing import Any

from dagster._cli.api import grpc_command
from dagster._grpc import server

from orchestration import assets as defs

PRELOADED = [
    "orchestration.definitions",
    *(f"orchestration.assets.{module.name}" for module in pkgutil.iter_modules(defs.__path__)),
    *("dagster._grpc.impl", "dagster_postgres", "dagster_pipes"),
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


def main() -> None:
    """Serve until asked to stop."""
    preload()
    server.DagsterApiServer = CodeServer  # type: ignore[misc]
    grpc_command()


if __name__ == "__main__":
    main()
