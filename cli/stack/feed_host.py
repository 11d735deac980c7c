"""Runs of feeds on a host without Dagster: those that fall to this host among all that have the role `feed`."""

from __future__ import annotations

import contextlib
import math
import secrets
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cli.stack.processes.program import Program
from config import settings
from config.exchanges import EXCHANGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import psycopg

    from cli.stack.processes.supervisor import Supervisor
    from config.settings import Settings
    from orchestration.feeds.hosts import Changes

EVERY_S = 2.0
WINDOW_S = 86_400
"""As on Kubernetes: Dagster's limit on the length of a run does not concern it."""
GRACE_S = 45.0
"""For a run to commit what it has received, and to release the lead."""
SETTLEMENT = "settlement"


@dataclass
class FeedRun(Program):
    """A run of a feed; each of its processes has a lease of its own.

    Whether it comes up is not for the supervisor to judge: while the database is away no run can show it.
    """

    host: str = ""
    run_id: str = ""
    started: float = field(default_factory=time.monotonic)
    ready_within_s: float = math.inf

    def start(self) -> None:
        """Start it as a run with a name that no other has."""
        self.started = time.monotonic()  # first: another thread takes a name for as old as this says
        self.run_id = f"{self.host}-{secrets.token_hex(6)}"
        self._start("--run-id", self.run_id)


class FeedHost(threading.Thread):
    """Reads every two seconds which feeds are to run here; `apply`, in the supervisor's thread, starts and ends runs.

    While the database does not answer nothing is changed: what a run has received since is in its memory.
    """

    def __init__(
        self,
        given: Settings,
        url: str,
        supervisor: Supervisor,
        *,
        environment: Mapping[str, str],
        logs: Path,
        directory: Path,
        say: Callable[[str], None],
    ) -> None:
        super().__init__(daemon=True, name="feed host")
        self._settings, self._url, self._supervisor, self._say = given, url, supervisor, say
        self._host = given.host
        # As this host names itself now: what the machine calls itself may change.
        self._environment = {**environment, settings.variable("host_name"): self._host}
        self._logs, self._directory = logs, directory
        self._instance = secrets.token_hex(8)
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._changes: Changes | None = None
        self._assigned: dict[str, list[str]] = {}
        self._assigned_at = self._warned_at = -math.inf
        self._answering_since: float | None = None
        self._was_away = False  # the database, at any time
        self._has_beaten = False
        self._fault = ""
        self._runs: dict[str, FeedRun] = {}  # by feed; of the supervisor's thread, which replaces the whole
        self._alive: frozenset[str] = frozenset()  # runs that renew a lease

    def run(self) -> None:
        """Read until stopped; then others may run this host's feeds at once."""
        from sql.queries import feed as queries

        conn: psycopg.Connection[Any] | None = None
        while not self._stopping.wait(0 if conn is None and not self._fault else EVERY_S):
            conn = self._look(conn)
        if conn is not None:
            with contextlib.suppress(Exception):
                queries.forget_host(conn, host=self._host)
            conn.close()

    def _look(self, conn: psycopg.Connection[Any] | None) -> psycopg.Connection[Any] | None:
        """Read what is to change; return the connection, or None if that failed."""
        from sql.database import connect

        changes, fault = None, ""
        try:
            if conn is None or conn.closed:
                conn = connect(self._url, autocommit=True, name="presage feed host", statement_timeout=10_000)
            changes = self._read(conn)
        except Exception as error:  # noqa: BLE001 (whatever it is, the runs go on, and the next look may find more)
            fault = str(error).strip().partition("\n")[0] or type(error).__name__
            self._answering_since, self._was_away = None, True
            if conn is not None:
                conn.close()
            conn = None
        with self._lock:
            self._changes = changes
        before, self._fault = self._fault, fault
        if fault != before:
            said = f"runs go on as they are: {fault}" if fault else "the database answers again"
            with contextlib.suppress(OSError):
                self._say(f"feed host: {said}")
        return conn

    def _read(self, conn: psycopg.Connection[Any]) -> Changes:
        from orchestration.feeds.hosts import FRESH_S, HostedRun, OwnRun, assigned, changes
        from sql.queries import feed as queries

        other = queries.beat_host(conn, host=self._host, instance=self._instance)
        self._warn_of(other)
        shards = queries.wanted_shards(conn) or self._settings.live_shards or 1
        hosts = [row[0] for row in queries.alive_hosts(conn)]
        runs = [HostedRun(*row) for row in queries.runs_of_hosts(conn)]
        now = time.monotonic()
        self._answering_since = self._answering_since or now
        self._alive = frozenset(run.run_id for run in runs if run.silent_s < FRESH_S)
        of_feed = assigned(self._feeds(shards), hosts)
        if of_feed != self._assigned:
            self._assigned, self._assigned_at = of_feed, now
        return changes(
            self._host,
            {feed: OwnRun(run.run_id, now - run.started) for feed, run in self._runs.items()},
            of_feed,
            runs,
            assigned_s=now - self._assigned_at,
            answering_s=now - self._answering_since,
            was_away=self._was_away,
        )

    def _warn_of(self, other: str | None) -> None:
        """Say that another host has this one's name: each takes the other's feeds for its own."""
        now = time.monotonic()
        if self._has_beaten and other not in {None, self._instance} and now - self._warned_at > 60:
            self._warned_at = now
            self._say(f"feed host: another host is called {self._host}, too: set PRESAGE_HOST_NAME on one of them")
        self._has_beaten = True

    def _feeds(self, shards: int) -> list[str]:
        from orchestration.feeds.shards import Shard
        from orchestration.ingest.exchanges.opening import recorded_exchanges
        from orchestration.settlement import chain

        first, *others = recorded_exchanges(self._settings)
        settlement = [SETTLEMENT] if chain.urls(self._settings) else []
        # What hosts with other settings need not have stands last: runs are shared out by the place in this list.
        feeds = [[shard.feed(exchange.name) for shard in Shard.all(shards)] for exchange in (first, *others)]
        return [*feeds[0], *settlement, *(feed for more in feeds[1:] for feed in more)]

    def apply(self) -> None:
        """Do what the last look found; called by who supervises, between two checks."""
        with self._lock:
            changes, self._changes = self._changes, None
        watched = self._supervisor.watched
        self._runs = {feed: run for feed, run in self._runs.items() if run.name in watched}
        if changes is None:
            return
        for feed in changes.start:
            if (name := program_name(feed)) not in watched:
                run = self._made(name, feed)
                self._runs = {**self._runs, feed: run}
                with contextlib.suppress(OSError):  # no memory, a full disk: the supervisor tries again, and says why
                    self._supervisor.start(run)
        for feed, run_id in {**changes.stop, **changes.release}.items():
            if self._is_still(feed, run_id):
                self._supervisor.release(self._runs[feed].name, terminate=feed in changes.stop)
        for feed, run_id in changes.kill.items():
            if self._is_still(feed, run_id):
                self._say(f"{self._runs[feed].name} gives no sign of life in the database: it is killed")
                self._runs[feed].kill()

    def _is_still(self, feed: str, run_id: str) -> bool:
        return feed in self._runs and self._runs[feed].run_id == run_id

    def _made(self, name: str, feed: str) -> FeedRun:
        run = FeedRun(
            name,
            command(feed),
            self._logs / f"{name}.log",
            environment=self._environment,
            directory=self._directory,
            grace_s=GRACE_S,
            host=self._host,
        )
        run.is_ready = lambda: run.run_id in self._alive
        return run

    def stop(self) -> None:
        """Stop reading, and leave this host's feeds to others."""
        self._stopping.set()
        if self.is_alive():
            self.join(timeout=15)


def program_name(feed: str) -> str:
    """Return the name of a feed's program, and of its log.

    >>> [program_name(feed) for feed in ("polymarket", "polymarket/2of4", "kalshi/2of4", "settlement")]
    ['live', 'live-2of4', 'live-kalshi-2of4', 'settlement']
    """
    family, _, shard = feed.partition("/")
    kind = family if family == SETTLEMENT else EXCHANGES[family].own("live").replace("_", "-")
    return f"{kind}-{shard}" if shard else kind


def command(feed: str) -> Sequence[str]:
    """Return the command of a run of a feed."""
    family, _, shard = feed.partition("/")
    if family == SETTLEMENT:
        return sys.executable, "-m", "orchestration.settlement", "--window", str(WINDOW_S)
    number, _, of = (shard or "1of1").partition("of")
    return (
        *(sys.executable, "-m", "orchestration.ingest", "--exchange", family),
        *("--shard", f"{number}/{of}", "--window", str(WINDOW_S)),
    )
