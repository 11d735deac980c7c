"""A host's part in Dagster's runs: takes them from the queue, and executes each in a process of its own."""

from __future__ import annotations

import argparse
import contextlib
import logging
import multiprocessing
import os
import secrets
import signal
import time
from dataclasses import dataclass
from multiprocessing import connection, forkserver
from pathlib import Path
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from dagster import DagsterInstance, DagsterRunStatus, RunsFilter

from config import logging as logging_
from config import settings
from orchestration.code_server import PRELOADED, wait_for_database
from orchestration.runs import hosts
from orchestration.runs.execution import execute
from orchestration.runs.hosts import EXECUTES, HOST_TAG, SESSION_TAG, TAKES, session_of
from orchestration.storage_pools import keep_connections

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.context import ForkServerProcess


log = logging.getLogger(__name__)

CONTEXT = multiprocessing.get_context("forkserver")
POLL_S = 0.5
LOOK_S = 2.0
ENDING_S = 10.0
"""For a process to end by itself once its run has."""
LOST = 255
"""Exit code of a process whose parent, from which it was forked, has ended first."""
CLEANING_S = 45.0
"""For an interrupted run to clean up. It is interrupted once: a second time would cut that off."""


@dataclass
class Running:
    """A run under way; times are seconds of the monotonic clock."""

    process: ForkServerProcess
    finished_at: float | None = None  # when its end was first seen in Dagster
    interrupted_at: float | None = None


class Host:
    """Takes runs and executes them. All of it is one thread, and no method waits for a run."""

    def __init__(
        self,
        instance: DagsterInstance,
        url: str,
        *,
        name: str,
        max_runs: int,
        beat: Path | None = None,
        target: Callable[[str], None] = execute,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.number = secrets.randbelow(2**31)
        self._instance, self._url, self._name, self._max_runs = instance, url, name, max_runs
        self._beat, self._target, self._clock = beat, target, clock
        self._conn: psycopg.Connection[Any] | None = None
        self._taken: list[str] = []  # and not started yet
        self._running: dict[str, Running] = {}
        self._ended: dict[str, str] = {}  # and not reported yet: how
        self._looked_at = self._connected_at = -LOOK_S
        self._is_stopping = self._is_ready = self._takes = False
        self._faults: dict[str, str] = {}  # by what failed

    def serve(self) -> None:
        """Execute runs until `stop`, and then until the last one has ended."""
        while not self._is_stopping or self._running:
            self.step()
            ends = [each.process.sentinel for each in self._running.values() if each.process.exitcode is None]
            connection.wait(ends, POLL_S)
        self.step()
        if self._conn is not None:
            self._conn.close()

    def stop(self) -> None:
        """Take no more runs, and interrupt those under way; returns at once, as a signal handler must."""
        self._is_stopping = True
        for running in list(self._running.values()):
            self._interrupt(running)

    def step(self) -> None:
        """Do what is to be done now."""
        now = self._clock()
        is_due = now - self._looked_at >= LOOK_S
        if is_due:
            self._looked_at = now
            with self._said("others cannot see that this process works"):
                self._show()
        with self._said("no session in Dagster's database; runs go on as they are"):
            self._keep_session(now, is_due=is_due)
        for run_id, running in list(self._running.items()):
            self._reap(run_id, running)
        if self._is_stopping:
            self._stop()
        else:
            with self._said("no run can be taken"):
                self._take()
        if self._conn is None:  # each of what follows would try for a minute
            return
        with self._said("runs that were taken wait for the database"):
            self._start()
        if is_due:
            with self._said("runs cannot be looked at"):
                self._look(now)
        with self._said("the end of runs cannot be reported yet"):
            self._report()

    def _show(self) -> None:
        if self._beat is not None:
            self._beat.write_text(f"{os.getpid()} {'ready' if self._is_ready else 'starting'}\n")

    def _reap(self, run_id: str, running: Running) -> None:
        if running.process.is_alive():
            return
        exit_code = running.process.exitcode
        if exit_code == LOST and running.process.pid is not None and exists(running.process.pid):
            # The process that it was forked from is gone, and nobody would learn how it ends.
            self._interrupt(running)
            self._kill(running)
            return
        self._ended[run_id] = ended(exit_code)
        del self._running[run_id]

    def _keep_session(self, now: float, *, is_due: bool) -> None:
        if self._conn is not None and is_due:
            self._execute("select")
        if self._conn is None and now - self._connected_at >= LOOK_S:
            self._connected_at = now
            kinds = (EXECUTES,) if self._is_stopping else (EXECUTES, TAKES)
            self._conn = hosts.connect(self._url, self.number, *kinds)
            self._takes = TAKES in kinds
            if not self._is_ready:
                self._is_ready = True
                log.info("takes up to %d runs", self._max_runs)

    def _execute(self, statement: LiteralString, *values: Any) -> Any:
        """Execute in the session; return the one value of a row, if there is one. An error ends the session."""
        if self._conn is None:
            return None
        try:
            row = self._conn.execute(statement, values).fetchone()
        except psycopg.Error:
            self._conn.close()
            self._conn = None
            raise
        return row and row[0]

    def _take(self) -> None:
        while len(self._taken) + len(self._running) < self._max_runs:
            run_id = self._execute(hosts.TAKE)
            if run_id is None:
                return
            self._taken.append(run_id)

    def _start(self) -> None:
        while self._taken:
            run_id = self._taken.pop(0)
            try:
                run = self._instance.get_run_by_id(run_id)
                # A promoted replica that lagged may hand out a run once more.
                if run is None or run.is_finished or run_id in self._running:
                    continue
                if session_of(run) not in {None, self.number}:
                    continue
                self._tag(run_id)  # first of all: who asks whether the run's host is alive knows it by this
            except Exception:
                self._taken.append(run_id)  # the next time after all others
                raise
            process = CONTEXT.Process(target=self._target, args=(run_id,), name=f"run {run_id}")
            try:
                process.start()
            except (OSError, EOFError) as error:  # no memory, too many processes: what it is forked from ends by that
                self._ended[run_id] = f"it could not be started: {error}"
            else:
                self._running[run_id] = Running(process)

    def _tag(self, run_id: str) -> None:
        self._instance.add_run_tags(run_id, {HOST_TAG: self._name, SESSION_TAG: f"{self.number} {run_id}"})

    def _stop(self) -> None:
        for run_id in self._taken:
            self._ended[run_id] = "the host was stopped"
        self._taken.clear()
        for running in self._running.values():
            self._interrupt(running)
            self._kill(running)
        if self._takes:
            self._takes = False
            with self._said("others learn later that no more runs are taken here"):
                self._execute("select pg_advisory_unlock(%s, %s)", TAKES, self.number)

    def _look(self, now: float) -> None:
        """End runs that are being cancelled, or that Dagster has given up."""
        for run in self._instance.get_runs(RunsFilter(run_ids=list(self._running))) if self._running else ():
            running = self._running[run.run_id]
            if session_of(run) is None:  # a promoted replica may not have got the tags
                self._tag(run.run_id)
            if run.is_finished and running.finished_at is None:
                running.finished_at = now
            is_given_up = running.finished_at is not None and now - running.finished_at > ENDING_S
            if run.status is DagsterRunStatus.CANCELING or is_given_up:
                self._interrupt(running)
            if is_given_up:
                self._kill(running)

    def _interrupt(self, running: Running) -> None:
        if running.interrupted_at is None:
            running.interrupted_at = self._clock()
            # Not SIGINT, which a process does not heed in its first moment.
            _signal(running, signal.SIGTERM)

    def _kill(self, running: Running) -> None:
        if running.interrupted_at is not None and self._clock() - running.interrupted_at > CLEANING_S:
            _signal(running, signal.SIGKILL)

    def _report(self) -> None:
        """Tell Dagster of runs whose processes have ended before they did."""
        for run_id in list(self._ended):
            how = self._ended.pop(run_id)
            try:
                run = self._instance.get_run_by_id(run_id)
                if run is None or run.is_finished or session_of(run) not in {None, self.number}:
                    continue
                message = f"Its process on {self._name} has ended before the run did: {how}"
                if run.status is DagsterRunStatus.CANCELING:
                    self._instance.report_run_canceled(run, message)
                else:
                    self._instance.report_run_failed(run, message)
            except Exception:
                self._ended[run_id] = how  # the next time after all others
                raise

    @contextlib.contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """Log an error, and go on: the next step tries again. Once, until it succeeds or the error is another."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 (runs go on whatever it is)
            fault = str(error).strip().partition("\n")[0] or type(error).__name__
            if self._faults.get(what) != fault:
                log.warning("%s: %s", what, fault)
            self._faults[what] = fault
        else:
            self._faults.pop(what, None)


def ended(exit_code: int | None) -> str:
    """Return how a process ended.

    >>> ended(-9), ended(-35), ended(1)
    ('signal SIGKILL', 'signal 35', 'exit code 1')
    """
    if exit_code is None or exit_code >= 0:
        return f"exit code {exit_code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-exit_code).name}"
    return f"signal {-exit_code}"


def exists(pid: int) -> bool:
    """Return whether a process is there that has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _signal(running: Running, number: signal.Signals) -> None:
    if running.process.pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(running.process.pid, number)


def preload() -> None:
    """Start the process that runs are forked from; it imports in parallel with this one."""
    multiprocessing.set_forkserver_preload([*PRELOADED, "orchestration.runs.execution"])
    forkserver.ensure_running()


def main() -> None:
    """Execute runs on this host until asked to stop."""
    parser = argparse.ArgumentParser("python -m orchestration.runs", description=__doc__)
    parser.add_argument(
        "--beat", type=Path, help="file that is written every two seconds, with the state of this process"
    )
    arguments = parser.parse_args()
    given = settings.get()
    logging_.configure("runs")
    url = os.environ.get("DAGSTER_PG_URL")
    if not url:
        raise SystemExit("presage: DAGSTER_PG_URL is not set")
    if arguments.beat is not None:
        arguments.beat.unlink(missing_ok=True)
    preload()
    wait_for_database(url)
    with DagsterInstance.get() as instance:
        keep_connections(instance)
        host = Host(instance, url, name=given.host, max_runs=given.max_runs, beat=arguments.beat)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: host.stop())
        try:
            host.serve()
        except BaseException:
            log.exception("runs end with this process")
            os._exit(1)  # else it would wait for them, deaf
