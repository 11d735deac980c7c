"""The programs of Presage and their start order."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from cli import logins
from cli.stack import readiness, sandboxes, sources
from cli.stack.databases import create_beside, refuse_other_schema, refuse_other_source, refuse_other_tape
from cli.stack.feed_host import FeedHost
from cli.stack.plan import ROOT
from cli.stack.processes import Program, Server, StartError, tail
from config import secret_files, settings
from config.hosts import ONE_MACHINE
from sql.roles.rights import API, PIPELINE, SITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from cli.stack.plan import Plan
    from cli.stack.processes import Report, Supervisor
    from sql.embedded import Cluster

DAGSTER = "dagster"  # its database on a server of yours
DATABASE_READY_S = 600.0  # recovery after a crash replays the log
LOGINS = ("pipeline_database_url", "api_database_url", "site_database_url")


@dataclass
class EmbeddedDatabase:
    """The embedded cluster as a supervised service."""

    cluster: Cluster
    started: Callable[[int], None]
    name: str = "database"
    ready_within_s: float = DATABASE_READY_S
    grace_s: float = 10.0
    tier: int = 0

    @property
    def pid(self) -> int | None:
        return self.cluster.pid

    def start(self) -> None:
        self.cluster.start()
        if (pid := self.pid) is not None:
            self.started(pid)

    def running(self) -> bool:
        return self.pid is not None

    def ready(self) -> bool:
        return self.running()

    def terminate(self) -> None:
        self.cluster.stop("fast")

    def kill(self) -> None:
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        pass

    def log_tail(self) -> str:
        logs = sorted((self.cluster.home / "log").glob("*.log"), key=lambda log: log.stat().st_mtime)
        return tail(logs[-1]) if logs else ""


@dataclass
class Stack:
    """All services of a plan, run by a supervisor."""

    plan: Plan
    supervisor: Supervisor
    report: Report
    database_url: str = ""
    dagster_url: str = ""
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)  # URLs of processes, by role
    installed_at: float = 0.0  # monotonic: reference of the times to first market and price
    steps: dict[str, float] = field(default_factory=dict)  # seconds each step took
    fresh: bool = False  # drop this source's data of earlier runs
    tape: dict[str, Any] | None = None  # what is played of each recording
    # The site requests keys on behalf of the users of its form; any other program on this machine may not.
    site_token: str = field(default_factory=lambda: _site_token(), repr=False)  # noqa: PLW0108 (defined below)
    feeds: FeedHost | None = None

    def start(self, on_tables: Callable[[], None] = lambda: None) -> None:
        """Start everything; raises StartError or the error of the step that failed."""
        for log in self.plan.logs.glob("*.log"):
            log.replace(log.with_suffix(".log.1"))
        roles = self.plan.roles
        self._install()
        self.installed_at = time.monotonic()
        self._name_databases()
        if "dagster" in roles:
            self._prepare_dagster()
        # These import for seconds and need no tables, so they start in parallel with the database.
        self.supervisor.start(*self.sandboxes(), *([self.code_server()] if "dagster" in roles else []))
        if self.plan.migrates:
            self._open_database()
            self._make_tables()
        else:
            self._await_tables()
        on_tables()
        if "api" in roles:
            self.supervisor.start(self.api())
        if "dagster" in roles:
            # A daemon that finds no code server retries only much later.
            self.supervisor.wait("code-server")
            self.supervisor.start(self.daemon())
        self.supervisor.wait(*self.supervisor.watched)
        self._report_tape()
        # Last, because they are slow to import and nothing waits for them.
        last = [*([self.webserver()] if "dagster" in roles else []), *([self.site()] if "site" in roles else [])]
        self.supervisor.start(*last)
        self.supervisor.wait(*(program.name for program in last))
        if "dagster" in roles:
            self._check_code_location()
        if "feed" in roles:
            self.feeds = FeedHost(
                settings.get(),
                self.url_of(PIPELINE),
                self.supervisor,
                environment=self.environment(PIPELINE),
                logs=self.plan.logs,
                directory=ROOT,
                say=self.report,
            )
            self.feeds.start()
        for watched in self.supervisor.watched.values():
            self.steps[watched.service.name] = watched.ready_after_s or 0.0

    # The database

    def _install(self) -> None:
        if self.plan.embedded:
            with self._step("install"):
                self.cluster().install(self.report)
                self._configure_archiving()

    def _configure_archiving(self) -> None:
        """Turn archiving of the write-ahead log on or off, as the settings say, before the server starts."""
        from sql.backup import BackupError
        from sql.backup.base import options, repository
        from sql.embedded.place import find

        wanted = options.of(settings.get())
        if wanted is None:
            if repository.disable(find(self.plan.data_dir / "database")):
                self.report(f"base backups are off from now on: {options.OFF}")
            return
        try:
            on = repository.enable(self.plan.data_dir, wanted, cache_dir=self.plan.cache_dir, tell=self.report)
        except BackupError as error:
            raise StartError(str(error)) from error
        self.report(f"base backups: {on.stanza} in {wanted.repository}")

    def cluster(self) -> Cluster:
        """Return the embedded server of this plan's data folder."""
        from sql.embedded import Cluster

        return Cluster(self.plan.data_dir / "database", port=self.plan.ports.database, cache_dir=self.plan.cache_dir)

    def _name_databases(self) -> None:
        from psycopg.conninfo import make_conninfo

        from sql.roles.logins import on_socket

        if self.plan.embedded:
            cluster = self.cluster()
            name = self.plan.database
            self.database_url, self.dagster_url = cluster.url(name), cluster.url(sources.dagster_of(name))
            self.logins = {role: on_socket(self.database_url, role) for role in (PIPELINE, API, SITE)}
        else:
            self.logins = self.plan.logins
            # Of a host without the owner's address, any login that it has.
            self.database_url = self.plan.database_url or next(iter(self.logins.values()))
            self.dagster_url = make_conninfo(self.database_url, dbname=DAGSTER)

    def url_of(self, role: str) -> str:
        """Return the URL by which processes of a role connect: the owner's, if they have no login of their own."""
        return self.logins.get(role, self.database_url)

    def _open_database(self) -> None:
        with self._step("database"):
            if self.plan.embedded:
                database = EmbeddedDatabase(self.cluster(), self.supervisor.guard_last)
                self.supervisor.start(database)
                name = self.plan.database
                sources.rename_legacy(database.cluster, name, self.plan.label_of_rows, self.report)
                if self.fresh:
                    sources.drop(database.cluster, name)
                for each in (name, sources.dagster_of(name)):
                    database.cluster.create_database(each)
                sources.remember(self.plan.data_dir, name)
            else:
                if self.plan.roles != ONE_MACHINE:
                    self._await_primary()
                create_beside(self.database_url, DAGSTER)

    def _await_primary(self) -> None:
        """Wait for a server that accepts writes: hosts that come back together meet a failover."""
        from cli.stack import migrated

        if not migrated.wait_for_primary(self.database_url, tell=self.report):
            raise StartError(f"no database that accepts writes within {migrated.WAIT_S / 60:.0f} minutes")

    def _make_tables(self) -> None:
        from sql import migrate

        with self._step("migration"):
            applied: list[str] = []
            migrate.upgrade(self.database_url, progress=applied.append)
            is_new = len(applied) == len(migrate.revisions())
            for step in [f"tables made by {len(applied)} revisions"] if is_new else applied:
                self.report(step)
            logins.create(self.database_url, self.logins, self.dagster_url)
            refuse_other_schema(self.database_url, made_now=bool(applied))
            refuse_other_source(self.database_url, self.plan.label_of_rows)
            refuse_other_tape(self.database_url, self.plan.tape)
            self._encrypt_secrets()

    def _await_tables(self) -> None:
        """Wait until another host has brought the database to this release's schema."""
        from cli.stack import migrated

        with self._step("migration"):
            if not migrated.wait(self.database_url, tell=self.report):
                raise StartError(
                    f"no database with this release's schema within {migrated.WAIT_S / 60:.0f} minutes, for the reason "
                    "above; a host with the role dagster, or `presage migrate`, brings the schema there"
                )
            if "feed" in self.plan.roles:
                refuse_other_source(self.url_of(PIPELINE), self.plan.label_of_rows)

    def _encrypt_secrets(self) -> None:
        """Encrypt webhook secrets that a release before stored as clear text: it is not running any more."""
        from config import webhook_keys
        from sql import webhook_secrets
        from sql.database import connect

        given = settings.get().model_copy(update={"data_dir": self.plan.data_dir})
        webhook_keys.ensure(given)
        box = webhook_secrets.SecretBox(lambda: webhook_keys.read(given))
        with connect(self.database_url, autocommit=True) as conn:
            if changed := webhook_secrets.store_all(conn, box):
                self.report(f"{changed:,} webhook secrets have been encrypted")

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.steps[name] = time.monotonic() - began

    # The programs

    def environment(self, role: str | None = None) -> dict[str, str]:
        """Return the environment variables of our programs; those of a role have its login, and no other."""
        from sql.database import sqlalchemy_url

        plan = self.plan
        environment = {
            "DATABASE_URL": self.url_of(role) if role else "",
            "DAGSTER_PG_URL": sqlalchemy_url(self._dagster_login(), "psycopg2") if role == PIPELINE else "",
            **dict.fromkeys(map(settings.variable, LOGINS), ""),
            "DAGSTER_HOME": str(plan.dagster_home),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
            "GX_ANALYTICS_ENABLED": "false",
            "PRESAGE_LOG_FORMAT": plan.log_format,
            "PYTHONUNBUFFERED": "1",
            "PRESAGE_DATA_DIR": str(plan.data_dir),
            "PRESAGE_SOURCE": plan.label_of_rows,
            "PRESAGE_BACKFILL_DAYS": str(plan.backfill_days),
            "PRESAGE_API_HOST": plan.host,
            "PRESAGE_API_PORT": str(plan.ports.api),
            "PRESAGE_API_WORKERS": str(plan.workers),
            "PRESAGE_DAGSTER_PORT": str(plan.ports.dagster),
            "PRESAGE_API_URL": plan.urls()["api"] or settings.get().api_url,
            "PRESAGE_SITE_PORT": str(plan.ports.site),
            "PRESAGE_TRUSTED_PROXIES": plan.trusted_proxies,
        }
        if plan.source != "exchange":
            environment |= sandboxes.environment(plan)
            # A shard of its few markets would often be quiet, and count as late.
            environment["PRESAGE_LIVE_SHARDS"] = str(settings.get().live_shards or 1)
        return environment

    def _dagster_login(self) -> str:
        """Return the URL of Dagster's database for its own processes."""
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        name = conninfo_to_dict(self.dagster_url)["dbname"]
        return make_conninfo(self.logins[PIPELINE], dbname=name) if PIPELINE in self.logins else self.dagster_url

    def _program(
        self,
        name: str,
        *command: str | None,
        is_ready: Callable[[], bool],
        role: str | None = PIPELINE,
        more_environment: Mapping[str, str] | None = None,
        **more: Any,
    ) -> Program:
        return Program(
            name,
            [word for word in command if word is not None],
            self.plan.logs / f"{name}.log",
            environment={**self.environment(role), **(more_environment or {})},
            directory=ROOT,
            is_ready=is_ready,
            **more,
        )

    @property
    def _dagster_format(self) -> str:
        return "json" if self.plan.log_format == "json" else "colored"

    def sandboxes(self) -> list[Program]:
        """Return the programs of the simulated exchanges."""
        return [
            self._program(name, *command, is_ready=partial(readiness.answers, f"{url}/status"), role=None, tier=1)
            for name, command, url in sandboxes.of(self.plan)
        ]

    def _report_tape(self) -> None:
        """Report what is played of the recordings, and why the rest is not."""
        if self.plan.source != "tape":
            return
        status = readiness.fetch(f"http://127.0.0.1:{self.plan.ports.sandbox}/sandbox/tape") or {}
        for line in status.pop("lines", []):
            self.report(f"tape: {line}")
        self.tape = status

    def code_server(self) -> Program:
        """Return the program of Dagster's code server; live runs are its children."""
        port = self.plan.ports.code
        return self._program(
            "code-server",
            *(sys.executable, "-m", "orchestration.code_server", "--module-name", "orchestration.definitions"),
            *("--host", "127.0.0.1", "--port", str(port), "--working-directory", str(ROOT)),
            *("--location-name", "presage", "--use-python-environment-entry-point"),
            *("--log-format", self._dagster_format),
            is_ready=lambda: readiness.listens(port),  # it listens once it has loaded
            ready_within_s=DATABASE_READY_S,  # it first waits for the database
            grace_s=2.0,  # on SIGTERM it keeps serving for minutes while its runs are alive
        )

    def daemon(self) -> Program:
        """Return the program of Dagster's daemon: sensors, schedules and run queue.

        It is ready as soon as it runs, or waits for the end of another host's.
        """
        program = self._program(
            "daemon",
            *(sys.executable, "-m", "orchestration.daemon", "run", "--workspace", str(self.plan.workspace)),
            *("--log-format", self._dagster_format),
            is_ready=lambda: (
                waits_for_another(program.log_tail()) or daemon_alive_since(self._dagster_login(), program.started_at)
            ),
            grace_s=3.0,
        )
        return program

    def webserver(self) -> Program:
        """Return the program of Dagster's UI."""
        port = self.plan.ports.dagster
        return self._program(
            "webserver",
            *("nice", "-n", "5"),  # seconds of imports that nothing waits for; first data has priority
            *(sys.executable, "-m", "orchestration.webserver", "--host", "127.0.0.1", "--port", str(port)),
            *("--workspace", str(self.plan.workspace), "--log-format", self._dagster_format),
            is_ready=lambda: readiness.answers(f"http://127.0.0.1:{port}/server_info"),
            grace_s=3.0,
            more_environment={"PRESAGE_DAGSTER_PASSWORD": self.dagster_password()},
        )

    def dagster_password(self) -> str:
        """Return the password of Dagster's UI: that of the settings, or one generated and shown once."""
        if self.plan.dagster_password is not None:
            return self.plan.dagster_password
        file = self.plan.password_file
        with contextlib.suppress(FileNotFoundError):
            return file.read_text()
        password = secrets.token_urlsafe(24)
        secret_files.write(file, password)
        self.report(f"Dagster's UI: user {settings.DAGSTER_USER}, password {password}, kept in {file}")
        return password

    def api(self) -> Server:
        """Return the program of the API."""
        plan = self.plan
        command = [sys.executable, "-m", "gunicorn", "-c", "python:api.server.gunicorn_conf"]
        command += ["-w", str(plan.workers), "api.app:app"]
        return self._server("api", API, command, (plan.host, plan.ports.api), fd_option="--bind=fd://{}")

    def site(self) -> Server:
        """Return the program of the site: pages for people, Markdown and MCP for agents."""
        plan = self.plan
        command = ["nice", "-n", "5", sys.executable, "-m", "api.site.server"]
        return self._server("site", SITE, command, (plan.site_host, plan.ports.site), fd_option="--fd={}", grace_s=3.0)

    def _server(
        self,
        name: str,
        role: str,
        command: Sequence[str],
        address: tuple[str, int],
        *,
        fd_option: str,
        grace_s: float = 5.0,
    ) -> Server:
        return Server(
            name,
            command,
            self.plan.logs / f"{name}.log",
            environment={**self.environment(role), "PRESAGE_SITE_TOKEN": self.site_token},
            directory=ROOT,
            grace_s=grace_s,
            drain_s=settings.get().api_drain_s + 15,
            address=address,
            fd_option=fd_option,
        )

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
        found = readiness.fetch(url, password=self.dagster_password(), body={"query": query})
        entries = ((found or {}).get("data") or {}).get("workspaceOrError", {}).get("locationEntries", [])
        for entry in entries:
            loaded = entry["locationOrLoadError"] or {}
            if loaded.get("__typename") == "PythonError":
                raise StartError(f"Dagster could not load the definitions: {loaded['message']}")


def _site_token() -> str:
    """Return the token of the settings, which API and site on different hosts need, or a new one."""
    given = settings.get().site_token
    return given.get_secret_value() if given is not None else secrets.token_urlsafe(32)


def waits_for_another(log: str) -> bool:
    """Return whether the last that a daemon has said is that it waits: see `orchestration.daemon`, slow to import."""
    return "another host's daemon runs" in log.rpartition("\n")[2]


def daemon_alive_since(url: str, since: float) -> bool:
    """Return whether Dagster's daemon has sent a heartbeat since then: it has no port to check.

    The address is that of Dagster's own login: a function behind a view there would run with the reader's rights.
    """
    import psycopg

    # Dagster writes local time, without its zone.
    query = "select from daemon_heartbeats where daemon_type = 'SENSOR' and timestamp >= to_timestamp(%s)::timestamp"
    try:
        with psycopg.connect(url, connect_timeout=2) as conn:
            return conn.execute(query, [since]).fetchone() is not None
    except psycopg.Error:  # not running, or its tables do not exist yet
        return False
