"""Pruning of Dagster's history: Dagster keeps every run for ever, so old ones are deleted here."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import dagster as dg
import sqlalchemy as sa
from dagster._core.instance.utils import RUNLESS_RUN_ID
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable as Checks
from dagster._core.storage.event_log.schema import AssetEventTagsTable as Tags
from dagster._core.storage.event_log.schema import SqlEventLogStorageTable as Events
from dagster._core.storage.event_log.sql_event_log import SqlEventLogStorage

if TYPE_CHECKING:
    from datetime import datetime

KEPT = {
    dg.DagsterRunStatus.SUCCESS: timedelta(days=1),
    dg.DagsterRunStatus.CANCELED: timedelta(days=1),
    dg.DagsterRunStatus.FAILURE: timedelta(days=7),
}
MAX_RUNS_PER_QUERY = 5000
NEWEST_CHECKS = sa.select(sa.func.max(Checks.c.id)).group_by(Checks.c.asset_key, Checks.c.check_name)


@dataclass(frozen=True)
class Pruned:
    """What one pass has deleted and spared."""

    deleted: int
    spared: int
    """Old runs kept as the newest of an asset or a check: deleting them would make it look never materialized."""
    checks: int
    """Evaluations of checks, which Dagster does not delete with their run."""
    runless_events: int
    """Events that sensors reported without a run."""
    finished: bool


def prune(instance: dg.DagsterInstance, now: datetime, *, seconds: float = 60.0) -> Pruned:
    """Delete runs older than `KEPT`, oldest first, for at most `seconds`: the next pass continues."""
    deadline = time.monotonic() + seconds
    newest = newest_runs(instance)
    deleted = spared = 0
    for status, kept in KEPT.items():
        old = dg.RunsFilter(statuses=[status], created_before=now - kept)
        for record in instance.get_run_records(old, limit=MAX_RUNS_PER_QUERY, ascending=True):
            run_id = record.dagster_run.run_id
            if run_id in newest:
                spared += 1
            elif time.monotonic() >= deadline:
                return Pruned(deleted, spared, 0, 0, finished=False)
            else:
                instance.delete_run(run_id)
                deleted += 1
    before = now - KEPT[dg.DagsterRunStatus.SUCCESS]
    return Pruned(
        deleted, spared, prune_checks(instance, before), prune_runless_events(instance, before), finished=True
    )


def newest_runs(instance: dg.DagsterInstance) -> set[str]:
    """Return the newest run of each asset and of each check."""
    newest: set[str | None] = set()
    for record in instance.get_asset_records():
        entry = record.asset_entry
        newest.add(entry.last_run_id)
        for event in (entry.last_materialization_record, entry.last_observation_record):
            newest.add(event.run_id if event is not None else None)
    storage = instance.event_log_storage
    if isinstance(storage, SqlEventLogStorage):
        with storage.index_connection() as conn:
            newest |= set(conn.execute(sa.select(Checks.c.run_id).where(Checks.c.id.in_(NEWEST_CHECKS))).scalars())
    return {run_id for run_id in newest if run_id is not None}


def prune_checks(instance: dg.DagsterInstance, before: datetime) -> int:
    """Delete old check evaluations, but never the newest of each check; Dagster has no call for this."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    old = Checks.delete().where(
        Checks.c.create_timestamp < before.replace(tzinfo=None), Checks.c.id.not_in(NEWEST_CHECKS)
    )
    with storage.index_connection() as conn:
        return int(conn.execute(old).rowcount)


def prune_runless_events(instance: dg.DagsterInstance, before: datetime) -> int:
    """Delete old events that belong to no run, but never the newest of each asset and kind."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return 0
    newest = sa.select(sa.func.max(Events.c.id)).where(Events.c.run_id == RUNLESS_RUN_ID)
    newest = newest.group_by(Events.c.asset_key, Events.c.dagster_event_type)
    old = sa.and_(
        Events.c.run_id == RUNLESS_RUN_ID,
        Events.c.timestamp < before.replace(tzinfo=None),
        Events.c.id.not_in(newest),
    )
    with storage.index_connection() as conn:
        conn.execute(Tags.delete().where(Tags.c.event_id.in_(sa.select(Events.c.id).where(old))))
        return int(conn.execute(Events.delete().where(old)).rowcount)
