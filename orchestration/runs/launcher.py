"""Dagster's run launcher: hosts with the role `runs` execute runs, and the code server does where there are none."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import CheckRunHealthResult, DefaultRunLauncher, WorkerStatus
from dagster._grpc.types import CanCancelExecutionRequest, CanCancelExecutionResult
from dagster._serdes import deserialize_value

from orchestration.feeds.keeping import WINDOW_TAG
from orchestration.feeds.runs import REPEATED_TAG
from orchestration.runs.hosts import EXECUTES, HOST_TAG, QUEUED_TAG, TAKES, Absence, put, session_of, sessions

if TYPE_CHECKING:
    from dagster import DagsterRun
    from dagster._core.launcher import LaunchRunContext
    from dagster._serdes import ConfigurableClassData

LOST_S = 60.0
"""After so long without its host's session, or unknown to its code server, a run or a pass has failed.

A host that met a failover has another session by then.
"""
ANSWER_S = 5
"""For the code server to answer."""
KEPT_S = 5.0
"""For how long the list of sessions is used: Dagster asks for all runs, one after the other."""


class RunLauncher(DefaultRunLauncher):
    """Dagster's own, but for runs that a host takes from the queue.

    Runs of feeds, as their keepers start them, stay with the code server: a leader and its standby must not meet on a
    host. Hosts with the role `feed` are for these.
    """

    def __init__(self, inst_data: ConfigurableClassData | None = None) -> None:
        super().__init__(inst_data)
        self._absence: Absence[int] = Absence()
        self._unknown: Absence[str] = Absence()
        self._there: set[int] = set()
        self._looked_at = -KEPT_S

    def launch_run(self, context: LaunchRunContext) -> None:
        """Put a run into the queue if there is a host that takes from it, else have the code server start it."""
        run = context.dagster_run
        if WINDOW_TAG in run.tags or not sessions(self._instance, TAKES):
            super().launch_run(context)
            return
        # Before it is put there: two who write tags at once would each undo what the other has written.
        self._instance.add_run_tags(run.run_id, {QUEUED_TAG: run.run_id})
        self._instance.report_engine_event("For the queue of hosts with the role runs.", run, cls=type(self))
        put(self._instance, run.run_id)

    def terminate(self, run_id: str) -> bool:
        """Ask for the end of a run; its host interrupts a run that is being cancelled."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or run.is_finished or not is_queued(run):
            return bool(super().terminate(run_id))  # type: ignore[no-untyped-call]
        self._instance.report_run_canceling(run)
        return True

    @property
    def supports_check_run_worker_health(self) -> bool:
        return True

    def check_run_worker_health(self, run: DagsterRun) -> CheckRunHealthResult:
        """Return whether a run's host is there or, of a pass without one, whether the code server still executes it.

        Of the code server's other runs nothing is known, as by Dagster's own: one that outlives its code server must
        not be taken for lost, and be started again beside itself.
        """
        number = session_of(run)
        away_s, found = 0.0, ""
        if number is not None:
            away_s = self._absence.seconds(number, self._sessions())
            found = f"host {run.tags.get(HOST_TAG)} has given no sign of life for {away_s:.0f} s"
        elif REPEATED_TAG in run.tags and not is_queued(run):
            away_s = self._unknown_s(run)
            found = f"the code server that started it has not executed it for {away_s:.0f} s"
        if away_s > LOST_S:
            return CheckRunHealthResult(WorkerStatus.FAILED, found)
        return CheckRunHealthResult(WorkerStatus.RUNNING)

    def get_run_worker_debug_info(self, run: DagsterRun, include_container_logs: bool | None = True) -> str | None:  # noqa: ARG002, FBT001, FBT002 (Dagster's)
        """Return what is known of where a run is, for the message with which Dagster fails it."""
        if session_of(run) is not None:
            return f"Its host is {run.tags.get(HOST_TAG)}."
        if is_queued(run):
            return "No host with the role runs has taken it: all were gone, or each had PRESAGE_MAX_RUNS runs."
        return None

    def _unknown_s(self, run: DagsterRun) -> float:
        """Return for how long the code server has been gone, or another than the one that executes the run."""
        client = self._get_grpc_client_for_termination(run.run_id)  # type: ignore[no-untyped-call]
        if client is None:  # no code server executes it, or it has ended meanwhile
            return 0.0
        request = CanCancelExecutionRequest(run_id=run.run_id)
        try:
            answer = client.can_cancel_execution(request, timeout=ANSWER_S)
        except DagsterUserCodeUnreachableError as error:
            refused = getattr(error.__cause__, "code", None)
            executes = refused is None or refused().name != "UNAVAILABLE"  # no answer in time: it may be busy
        else:
            executes = deserialize_value(answer, CanCancelExecutionResult).can_cancel
        return self._unknown.seconds(run.run_id, {run.run_id} if executes else set())

    def _sessions(self) -> set[int]:
        now = time.monotonic()
        if now - self._looked_at >= KEPT_S:
            self._there, self._looked_at = sessions(self._instance, EXECUTES), now
        return self._there


def is_queued(run: DagsterRun) -> bool:
    """Return whether a run was put into the queue; one that is executed again inherits the tags of the first."""
    return run.tags.get(QUEUED_TAG) == run.run_id
