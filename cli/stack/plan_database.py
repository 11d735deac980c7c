"""The database of a plan: installed, opened, and brought to this release's schema."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli import logins
from cli.stack import sources
from cli.stack.databases import create_beside, refuse_other_source, refuse_other_tape
from cli.stack.processes.program import StartError, tail
from config import settings
from sql.roles.rights import API, PIPELINE, SITE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cli.stack.plan import Plan
    from cli.stack.processes.supervisor import Report, Supervisor
    from sql.embedded import Cluster

DAGSTER = "dagster"  # its database on a server of yours
DATABASE_READY_S = 600.0  # recovery after a crash replays the log


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
class PlanDatabase:
    """The database of a plan: the embedded server's, or one on a server of the user's."""

    plan: Plan
    report: Report
    url: str = ""
    dagster_url: str = ""
    logins: Mapping[str, str] = field(default_factory=dict, repr=False)  # URLs of processes, by role

    def install(self) -> None:
        """Install the embedded server."""
        self.cluster().install(self.report)
        self.configure_archiving()

    def configure_archiving(self) -> None:
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

    def set_urls(self) -> None:
        """Set the addresses of the databases and of each role's login."""
        from psycopg.conninfo import make_conninfo

        from sql.roles.logins import on_socket

        if self.plan.embedded:
            cluster = self.cluster()
            name = self.plan.database
            self.url, self.dagster_url = cluster.url(name), cluster.url(sources.dagster_of(name))
            self.logins = {role: on_socket(self.url, role) for role in (PIPELINE, API, SITE)}
        else:
            self.logins = self.plan.logins
            # Of a host without the owner's address, any login that it has.
            self.url = self.plan.database_url or next(iter(self.logins.values()))
            self.dagster_url = make_conninfo(self.url, dbname=DAGSTER)

    def url_of(self, role: str) -> str:
        """Return the URL by which processes of a role connect: the owner's, if they have no login of their own."""
        return self.logins.get(role, self.url)

    def dagster_login(self) -> str:
        """Return the URL of Dagster's database for its own processes."""
        from psycopg.conninfo import conninfo_to_dict, make_conninfo

        name = conninfo_to_dict(self.dagster_url)["dbname"]
        return make_conninfo(self.logins[PIPELINE], dbname=name) if PIPELINE in self.logins else self.dagster_url

    def open(self, supervisor: Supervisor, *, fresh: bool) -> None:
        """Start the embedded server, if it is one, and create the databases that are missing.

        `fresh`: drop those of the embedded server before.
        """
        if self.plan.embedded:
            database = EmbeddedDatabase(self.cluster(), supervisor.guard_last)
            supervisor.start(database)
            name = self.plan.database
            sources.rename_legacy(database.cluster, name, self.plan.label_of_rows, self.report)
            if fresh:
                sources.drop(database.cluster, name)
            for each in (name, sources.dagster_of(name)):
                database.cluster.create_database(each)
            sources.remember(self.plan.data_dir, name)
        else:
            create_beside(self.url, DAGSTER)

    def with_primary(self, act: Callable[[], None]) -> None:
        """Act once a server accepts writes, and again if that fails over meanwhile: hosts that come back meet that."""
        from cli.stack import migrated

        if not migrated.with_primary(self.url, act, migrated.Waiting(tell=self.report)):
            minutes = migrated.WAIT_S / 60
            raise StartError(f"no database that accepts writes within {minutes:.0f} minutes, for the reason above")

    def create_tables(self) -> None:
        """Upgrade the schema, create the logins, and refuse data that must not be mixed."""
        from sql import migrate

        applied: list[str] = []
        migrate.upgrade(self.url, progress=applied.append)
        is_new = len(applied) == len(migrate.revisions())
        for step in [f"tables made by {len(applied)} revisions"] if is_new else applied:
            self.report(step)
        logins.create(self.url, self.logins, self.dagster_url)
        refuse_other_source(self.url, self.plan.label_of_rows)
        refuse_other_tape(self.url, self.plan.tape)
        self._encrypt_secrets()

    def wait_for_tables(self) -> None:
        """Wait until another host has brought the database to this release's schema."""
        from cli.stack import migrated

        if not migrated.wait(self.url, migrated.Waiting(tell=self.report)):
            raise StartError(
                f"no database with this release's schema within {migrated.WAIT_S / 60:.0f} minutes, for the reason "
                "above; a host with the role dagster, or `presage migrate`, brings the schema there"
            )
        if not {"feed", "runs"}.isdisjoint(self.plan.roles):
            refuse_other_source(self.url_of(PIPELINE), self.plan.label_of_rows)

    def _encrypt_secrets(self) -> None:
        """Encrypt webhook secrets that a release before stored as clear text: it is not running any more."""
        from config import webhook_keys
        from sql import webhook_secrets
        from sql.database import connect

        given = settings.get().model_copy(update={"data_dir": self.plan.data_dir})
        webhook_keys.ensure(given)
        box = webhook_secrets.SecretBox(lambda: webhook_keys.read(given))
        with connect(self.url, autocommit=True) as conn:
            if changed := webhook_secrets.store_all(conn, box):
                self.report(f"{changed:,} webhook secrets have been encrypted")
