"""The programs of a plan: their commands, environments and readiness."""

from __future__ import annotations

import contextlib
import secrets
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from cli.stack import readiness, sandboxes
from cli.stack.plan import ROOT
from cli.stack.plan_database import DATABASE_READY_S
from cli.stack.processes.program import Program, Server
from config import secret_files, settings
from sql.roles.rights import API, PIPELINE, SITE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cli.stack.plan import Plan
    from cli.stack.plan_database import PlanDatabase
    from cli.stack.processes.supervisor import Report

RUNS_GRACE_S = 60.0
"""For interrupted runs to clean up, and to say in Dagster how they ended."""
NICENESS = 5
"""Of what gives way to the live feed and the database where processor time is scarce."""
LOGINS = ("pipeline_database_url", "api_database_url", "site_database_url")


@dataclass
class Programs:
    """The programs of a plan, as they are given to a supervisor."""

    plan: Plan
    database: PlanDatabase
    report: Report
    # The site requests keys on behalf of the users of its form; any other program on this machine may not.
    site_token: str = field(default_factory=lambda: _site_token(), repr=False)  # noqa: PLW0108 (defined below)

    def environment(self, role: str | None = None) -> dict[str, str]:
        """Return the environment variables of our programs; those of a role have its login, and no other."""
        from sql.database import sqlalchemy_url

        plan = self.plan
        environment = {
            "DATABASE_URL": self.database.url_of(role) if role else "",
            "DAGSTER_PG_URL": sqlalchemy_url(self.database.dagster_login(), "psycopg2") if role == PIPELINE else "",
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

    def runs(self) -> Program:
        """Return the program that executes Dagster's runs on this host."""
        beat = self.plan.dagster_home / "runs.beat"
        program = self._program(
            "runs",
            *(sys.executable, "-m", "orchestration.runs", "--beat", str(beat)),
            is_ready=lambda: readiness.says(beat, f"{program.pid} ready"),
            ready_within_s=DATABASE_READY_S,  # it first waits for the database
            grace_s=RUNS_GRACE_S,
            ends_its_own=True,
        )
        return program

    def daemon(self) -> Program:
        """Return the program of Dagster's daemon: sensors, schedules and run queue.

        It is ready as soon as it runs, or waits for the end of another host's.
        """
        program = self._program(
            "daemon",
            *(sys.executable, "-m", "orchestration.daemon", "run", "--workspace", str(self.plan.workspace)),
            *("--log-format", self._dagster_format),
            is_ready=lambda: (
                waits_for_another(program.log_tail())
                or daemon_alive_since(self.database.dagster_login(), program.started_at)
            ),
            grace_s=3.0,
        )
        return program

    def webserver(self) -> Program:
        """Return the program of Dagster's UI."""
        port = self.plan.ports.dagster
        return self._program(
            "webserver",
            *(sys.executable, "-m", "orchestration.webserver", "--host", "127.0.0.1", "--port", str(port)),
            *("--workspace", str(self.plan.workspace), "--log-format", self._dagster_format),
            is_ready=lambda: readiness.answers(f"http://127.0.0.1:{port}/server_info"),
            grace_s=3.0,
            niceness=NICENESS,  # seconds of imports that nothing waits for; first data has priority
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
        command = [sys.executable, "-m", "api.site.server"]
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
            # Replaying a minute of the venue's stream takes a core for ten seconds, in which prices must not be late.
            niceness=NICENESS,
            drain_s=settings.get().api_drain_s + 15,
            address=address,
            fd_option=fd_option,
        )


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
