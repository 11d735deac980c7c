"""The API over a benchmark's database, as a program."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from cli.stack.plan import ROOT
from cli.stack.ports import choose
from cli.stack.processes.program import Program
from cli.stack.programs import NICENESS
from cli.stack.readiness import answers

if TYPE_CHECKING:
    from benchmarks.database import Bench


def api(bench: Bench, *, gives_way: bool = False) -> tuple[Program, int, str]:
    """Return one worker of the API, its port, and the path of its stream with a key.

    `gives_way`: as `presage up` starts it; without, like a rival that it is compared with.
    """
    from cli import api_keys

    port = choose(None).api
    token = api_keys.create(bench.url, "bench@example.com", "bench", "enterprise")
    program = Program(
        "api",
        [sys.executable, "-m", "gunicorn", "-c", "python:api.server.gunicorn_conf", "api.app:app"],
        bench.folder / "api.server.log",
        environment={"DATABASE_URL": bench.url, "PRESAGE_API_PORT": str(port), "PRESAGE_API_WORKERS": "1"},
        directory=ROOT,
        is_ready=lambda: answers(f"http://127.0.0.1:{port}/health"),
        niceness=NICENESS if gives_way else 0,
    )
    return program, port, f"/stream?api_key={token}"
