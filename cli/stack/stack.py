"""Starts the services of a plan in their order."""

from __future__ import annotations

import contextlib
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cli.stack import readiness
from cli.stack.feed_host import FeedHost
from cli.stack.plan import ROOT
from cli.stack.plan_database import PlanDatabase
from cli.stack.processes.program import StartError
from cli.stack.programs import Programs
from config import settings
from config.hosts import ONE_MACHINE
from sql.roles.rights import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cli.stack.plan import Plan
    from cli.stack.processes.supervisor import Report, Supervisor


@dataclass
class Stack:
    """All services of a plan, run by a supervisor."""

    plan: Plan
    supervisor: Supervisor
    report: Report
    installed_at: float = 0.0  # monotonic: reference of the times to first market and price
    steps: dict[str, float] = field(default_factory=dict)  # seconds each step took
    fresh: bool = False  # drop this source's data of earlier runs
    tape: dict[str, Any] | None = None  # what is played of each recording
    feeds: FeedHost | None = None
    database: PlanDatabase = field(init=False, repr=False)
    programs: Programs = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.database = PlanDatabase(self.plan, self.report)
        self.programs = Programs(self.plan, self.database, self.report)

    def start(self, on_tables: Callable[[], None] = lambda: None) -> None:
        """Start everything; raises StartError or the error of the step that failed."""
        for log in self.plan.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))
        roles, programs = self.plan.roles, self.programs
        if self.plan.embedded:
            with self._step("install"):
                self.database.install()
        self.installed_at = time.monotonic()
        self.database.set_urls()
        if not {"dagster", "runs"}.isdisjoint(roles):
            self._prepare_dagster()
        # These import for seconds and need no tables, so they start in parallel with the database.
        self.supervisor.start(*programs.sandboxes(), *([programs.code_server()] if "dagster" in roles else []))
        self._prepare_tables()
        on_tables()
        if "api" in roles:
            self.supervisor.start(programs.api())
        if "dagster" in roles:
            # A daemon that finds no code server retries only much later.
            self.supervisor.wait("code-server")
            self.supervisor.start(programs.daemon())
        if "runs" in roles:
            self.supervisor.start(programs.runs())
        self.supervisor.wait(*self.supervisor.watched)
        self._report_tape()
        self._start_pages()
        ready = {name: watched.ready_after_s for name, watched in self.supervisor.watched.items()}
        self.steps.update((name, after_s) for name, after_s in ready.items() if after_s is not None)
        if "feed" in roles:
            self._start_feeds()

    def _start_pages(self) -> None:
        """Start what people look at: last, because it is slow to import and nothing waits for it.

        A host's feeds do not wait for it either: until each has two runs again, the loss of the other one loses data.
        """
        last = [
            *([self.programs.webserver()] if "dagster" in self.plan.roles else []),
            *([self.programs.site()] if "site" in self.plan.roles else []),
        ]
        self.supervisor.start(*last)
        if "feed" in self.plan.roles:
            return
        self.supervisor.wait(*self.supervisor.watched)
        if "dagster" in self.plan.roles:
            self._check_code_location()

    def _start_feeds(self) -> None:
        self.feeds = FeedHost(
            settings.get(),
            self.database.url_of(PIPELINE),
            self.supervisor,
            environment=self.programs.environment(PIPELINE),
            logs=self.plan.logs,
            directory=ROOT,
            say=self.report,
        )
        self.feeds.start()

    def _prepare_tables(self) -> None:
        """Open the database and upgrade its schema, or wait until another host has."""
        if not self.plan.migrates:
            with self._step("migration"):
                self.database.wait_for_tables()
        elif self.plan.embedded or self.plan.roles == ONE_MACHINE:
            self._make_tables()
        else:
            self.database.with_primary(self._make_tables)

    def _make_tables(self) -> None:
        with self._step("database"):
            self.database.open(self.supervisor, fresh=self.fresh)
        with self._step("migration"):
            self.database.create_tables()

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.steps[name] = time.monotonic() - began

    def _report_tape(self) -> None:
        """Report what is played of the recordings, and why the rest is not."""
        if self.plan.source != "tape":
            return
        status = readiness.fetch(f"http://127.0.0.1:{self.plan.ports.sandbox}/sandbox/tape") or {}
        for line in status.pop("lines", []):
            self.report(f"tape: {line}")
        self.tape = status

    def _prepare_dagster(self) -> None:
        home = self.plan.dagster_home
        home.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / "dagster.yaml", home / "dagster.yaml")
        self.plan.workspace.write_text(
            "# Written by presage. One code server for the daemon and the UI.\n"
            "load_from:\n"
            f"  - grpc_server: {{host: 127.0.0.1, port: {self.plan.ports.code}, location_name: presage}}\n"
        )

    def _check_code_location(self) -> None:
        query = """{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {
            __typename ... on PythonError { message } } } } } }"""
        url = f"http://127.0.0.1:{self.plan.ports.dagster}/graphql"
        found = readiness.fetch(url, password=self.programs.dagster_password(), body={"query": query})
        entries = ((found or {}).get("data") or {}).get("workspaceOrError", {}).get("locationEntries", [])
        for entry in entries:
            loaded = entry["locationOrLoadError"] or {}
            if loaded.get("__typename") == "PythonError":
                raise StartError(f"Dagster could not load the definitions: {loaded['message']}")
