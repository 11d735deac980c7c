"""Runs of a feed in Dagster: queries them, and runs a feed until Dagster takes its run for over."""

from __future__ import annotations

import logging
from time import monotonic
from typing import TYPE_CHECKING, Any

import dagster as dg

from orchestration.feeds.keeper import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from orchestration.feeds.base import Feed

log = logging.getLogger(__name__)

SHARD_TAG = "presage/shard"  # of a live run; one without it follows every market
REPEATED_TAG = "presage/repeated"  # of a pass: its sensor starts one after the other, and it bears another beside it

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
LOOK_S = 15.0  # between two looks at the run's own status: each is a connection to Dagster's database
FINISHED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def unfinished(instance: dg.DagsterInstance, job: str) -> list[Run]:
    """Return the runs of a job that have not ended, as far as Dagster knows."""
    records = instance.get_run_records(dg.RunsFilter(job_name=job, statuses=UNFINISHED))
    return [
        Run(
            record.dagster_run.run_id,
            record.dagster_run.status.value,
            record.update_timestamp.timestamp(),
            record.dagster_run.tags.get(SHARD_TAG, ""),
        )
        for record in records
    ]


def finished(instance: dg.DagsterInstance, run_ids: Collection[str]) -> set[str]:
    """Return which of these runs have ended."""
    if not run_ids:
        return set()
    records = instance.get_run_records(dg.RunsFilter(run_ids=list(run_ids), statuses=FINISHED))
    return {record.dagster_run.run_id for record in records}


def mark_failed(instance: dg.DagsterInstance, run_id: str, why: str) -> None:
    """Mark a run failed whose process is gone; Dagster would show it as running forever."""
    run = instance.get_run_by_id(run_id)
    if run is not None and not run.is_finished:
        instance.report_run_failed(run, f"{why}: its process is gone")


class Finished:
    """Whether Dagster takes a run for over whose process goes on: it was silent and marked failed, and is replaced."""

    def __init__(self, instance: dg.DagsterInstance, run_id: str) -> None:
        self._instance, self._run_id = instance, run_id
        self._looked_at, self._is_finished = monotonic(), False

    def __call__(self) -> bool:
        """Return whether it does, or did when it was last looked at, some seconds ago."""
        if not self._is_finished and monotonic() - self._looked_at >= LOOK_S:
            self._looked_at = monotonic()
            try:
                run = self._instance.get_run_by_id(self._run_id)
            except Exception as fault:  # noqa: BLE001 (Dagster's storage may be unavailable: the feed goes on)
                log.warning("the run's status cannot be read: %s", fault)
            else:
                self._is_finished = run is not None and run.is_finished
        return self._is_finished


def execute(context: dg.AssetExecutionContext, feed: Feed, observe: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a feed to its end and return its totals.

    One that Dagster takes for over ends once a younger run could go on, so that it takes nothing from others.
    """
    finished_ = Finished(context.instance, context.run.run_id)
    totals = feed.run(lambda: finished_() and feed.may_leave(), observe)
    if finished_():
        raise dg.Failure("the run had been marked failed, and replaced, while its process went on; it has ended now")
    return totals
