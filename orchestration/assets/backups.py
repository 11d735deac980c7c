"""Base backups of the embedded database: taken when due, and restored each week to see that they can be."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg

from config import settings
from orchestration import checks
from orchestration.assets.pipeline import check_fields
from orchestration.checks import Judgement
from orchestration.feeds.runs import unfinished
from orchestration.resources import Database
from sql.backup.base import options, repository, state, taking

OFF = "off: PRESAGE_BACKUP_REPOSITORY is not set"
ASSET = "base_backups"


class BaseBackupConfig(dg.Config):
    """What to take; a run that is started by hand takes a full backup."""

    kind: str = "full"


@dg.asset(
    group_name="maintenance",
    kinds={"postgresql"},
    description="Base backups in PRESAGE_BACKUP_REPOSITORY: all files of the embedded database, or those changed since "
    "the one before. With the archived write-ahead log, any later moment can be restored.",
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(days=30), warn_window=timedelta(days=15)),
)
def base_backups(
    context: dg.AssetExecutionContext, config: BaseBackupConfig, database: Database
) -> dg.MaterializeResult[None]:
    """Take a base backup; those beyond PRESAGE_BACKUP_FULLS_KEPT are deleted after it."""
    began, given = time.monotonic(), settings.get()
    if repository.active(given.data_folder) is None:
        return dg.MaterializeResult(metadata={"off": OFF})
    taken = taking.take(database.url, given.data_folder, "incr" if config.kind == "incr" else "full", context.log.info)
    return dg.MaterializeResult(
        metadata={
            "label": taken.label,
            "kind": taken.kind,
            "MB": round(taken.bytes / 1e6, 3),
            "MB_in_the_repository": round(taken.stored_bytes / 1e6, 3),
            "seconds": round(time.monotonic() - began, 1),
        }
    )


@dg.multi_asset_check(
    name="archive_checks",
    specs=[
        dg.AssetCheckSpec(
            "wal_archived", asset=ASSET, description="No write-ahead log has waited for minutes to be archived."
        ),
        dg.AssetCheckSpec("base_backup_recent", asset=ASSET, description="No base backup is overdue, and none failed."),
    ],
    can_subset=True,
    description="How much write-ahead log waits to be archived and since when, and how old the newest base backup is.",
)
def archive_checks(context: dg.AssetCheckExecutionContext, database: Database) -> Iterator[dg.AssetCheckResult]:
    """Evaluate both checks; report those that were selected."""
    given, now = settings.get(), datetime.now(UTC)
    on = repository.active(given.data_folder) is not None
    with database.connection(autocommit=True, name="presage backups") as conn:
        judged = {
            "wal_archived": checks.wal_archived(state.archive(conn), now) if on else checks.OFF_BACKUPS,
            "base_backup_recent": (
                checks.base_backup_recent(state.read(conn), now, timedelta(hours=given.backup_every_h))
                if on
                else checks.OFF_BACKUPS
            ),
        }
    for key in context.op_execution_context.selected_asset_check_keys:
        yield dg.AssetCheckResult(asset_key=key.asset_key, check_name=key.name, **check_fields(judged[key.name]))


@dg.asset_check(
    asset=ASSET,
    description="The newest base backup can be restored: it is, into a temporary folder, started, compared with what "
    "was noted when it was made (rows and newest times of the main tables), and removed.",
)
def restore_check(context: dg.AssetCheckExecutionContext, database: Database) -> dg.AssetCheckResult:
    """Restore the newest base backup and look at it."""
    given = settings.get()
    wanted = options.of(given)
    if wanted is None or repository.active(given.data_folder) is None:
        return dg.AssetCheckResult(**check_fields(checks.OFF_BACKUPS))
    done = taking.check(database.url, given.data_folder, wanted, given.cache_dir, context.log.info)
    figures = {"label": done.label, "seconds": done.seconds}
    return dg.AssetCheckResult(**check_fields(Judgement(done.ok, done.said, "error", figures)))


job = dg.define_asset_job(
    "base_backup",
    selection=dg.AssetSelection.assets(base_backups).without_checks(),
    description="A base backup of the embedded database, when one is due.",
    tags={"dagster/max_runtime": "43200", "dagster/priority": "-1"},
)
check_job = dg.define_asset_job(
    "restore_check",
    selection=dg.AssetSelection.checks(restore_check),
    description="Each week: restores the newest base backup into a temporary folder and looks at it.",
    tags={"dagster/max_runtime": "43200", "dagster/priority": "-2"},
)


@dg.schedule(
    job=job,
    cron_schedule="*/5 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Takes a base backup when PRESAGE_BACKUP_EVERY_H or PRESAGE_BACKUP_FULL_EVERY_DAYS have passed.",
)
def base_backup_due(context: dg.ScheduleEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Request a base backup if one is due and none is running."""
    given, now = settings.get(), datetime.now(UTC)
    archiving = repository.active(given.data_folder)
    if archiving is None:
        return dg.SkipReason(OFF)
    if unfinished(context.instance, job.name):
        return dg.SkipReason("a base backup is running")
    with database.connection(autocommit=True, name="presage base_backup_due") as conn:
        kind = state.due(
            state.read(conn),
            archiving.stanza,
            now,
            every=timedelta(hours=given.backup_every_h),
            full_every=timedelta(days=given.backup_full_every_days),
        )
    if kind is None:
        return dg.SkipReason("none is due")
    return dg.RunRequest(run_config={"ops": {ASSET: {"config": {"kind": kind}}}})


restore_check_each_week = dg.ScheduleDefinition(
    name="restore_check_each_week",
    job=check_job,
    cron_schedule="23 5 * * 0",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Restores the newest base backup to see that it can be.",
)
