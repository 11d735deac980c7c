"""Queries a job's runs in Dagster's instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from orchestration.feeds.keeper import Run

if TYPE_CHECKING:
    from collections.abc import Collection

SHARD_TAG = "presage/shard"  # of a live run; one without it follows every market

UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
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
