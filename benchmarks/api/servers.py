"""Measured servers, each with one worker on a port of its own."""

from __future__ import annotations

import secrets
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.api.load import children
from cli.stack.plan import ROOT
from cli.stack.ports import choose
from cli.stack.processes.program import Program
from cli.stack.readiness import answers, listens
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.database import Bench

TOKEN = secrets.token_hex(32)  # opens /debug
MANY_REGISTRATIONS = {"PRESAGE_REGISTRATIONS_A_DAY": "1000000"}
NO_ADDRESS_BUDGET = {"PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE": "1000000"}
OURS, RIVAL, HELLO, UNCACHED, SANDBOX = "api", "rival", "hello", "uncached", "sandbox"


class Server(NamedTuple):
    """A program, its port, and its application name in the database."""

    program: Program
    port: int
    application: str = ""

    def pids(self) -> list[int]:
        """Return the processes that serve requests: for gunicorn the worker, not its master."""
        pid = self.program.pid
        assert pid is not None
        return children(pid) or [pid]

    def connections(self, url: str) -> list[int]:
        """Return the database's backend processes it is connected to."""
        with connect(url, autocommit=True, name="presage bench") as conn:
            rows = conn.execute("select pid from pg_stat_activity where application_name = %s", [self.application])
            return [int(row[0]) for row in rows]


def servers(bench: Bench, changed: Mapping[str, str] = MappingProxyType({})) -> dict[str, Server]:
    """Return all servers, with their default settings but for the `changed` ones; none is started."""
    from benchmarks.api import rival

    ports = choose(None)
    exchange = f"http://127.0.0.1:{ports.database}"
    environment = {
        "DATABASE_URL": bench.url,
        "PRESAGE_API_WORKERS": "1",
        "PRESAGE_METERING_DIR": str(bench.folder),
        "PRESAGE_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "PRESAGE_DEBUG_TOKEN": TOKEN,
        "PRESAGE_GAMMA_URL": f"{exchange}/gamma",
        "PRESAGE_DATA_API_URL": f"{exchange}/data",
        **changed,
    }

    def program(name: str, port: int, *command: str, health: str = "") -> Program:
        return Program(
            name,
            [sys.executable, "-m", *command],
            bench.folder / f"{name}.log",
            environment=environment,
            directory=ROOT,
            is_ready=lambda: answers(f"http://127.0.0.1:{port}{health}") if health else listens(port),
        )

    def gunicorn(name: str, port: int, app: str, health: str) -> Program:
        where = ("-b", f"127.0.0.1:{port}", app)
        return program(name, port, "gunicorn", "-c", "python:api.server.gunicorn_conf", *where, health=health)

    def uvicorn(name: str, port: int, app: str) -> Program:
        how = ("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning")
        return program(name, port, "uvicorn", app, "--host", "127.0.0.1", "--port", str(port), *how)

    simulated = ("--simulate", "1", "--rate", "20", "--markets", "20", "--no-limits", "--port", str(ports.database))
    return {
        OURS: Server(gunicorn(OURS, ports.api, "api.app:app", "/health"), ports.api, "presage api"),
        RIVAL: Server(uvicorn(RIVAL, ports.sandbox, "benchmarks.api.rival:app"), ports.sandbox, rival.NAME),
        HELLO: Server(gunicorn(HELLO, ports.dagster, "benchmarks.api.apps:hello", "/hello"), ports.dagster),
        UNCACHED: Server(gunicorn(UNCACHED, ports.code, "benchmarks.api.apps:uncached", "/health"), ports.code),
        SANDBOX: Server(program(SANDBOX, ports.database, "upstream.sandbox", *simulated), ports.database),
    }
