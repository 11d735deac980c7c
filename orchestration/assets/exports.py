"""Exports: each day's data as files, a partition a day, where it can be fetched by whoever has a key."""

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
import psycopg

from config import settings
from orchestration.exports.topics import TOPICS, Topic
from orchestration.resources import Database
from sql.queries import coverage
from sql.queries import exports as queries

DAYS_BACK = 7  # what was not exported for longer than that, an operator may still have exported
FORMATS = 2  # `files.SUFFIX`, which brings Arrow along

daily = dg.DailyPartitionsDefinition(start_date="2024-01-01", end_offset=1)  # today as well: as far as it has come


class How(dg.Config):
    """Nothing given: what is there is left alone."""

    again: bool = False
    """Write anew what is there: after trades of a past day have been filled in, say."""


def export_of(topic: Topic) -> dg.AssetsDefinition:
    """Make the asset of a topic."""

    @dg.asset(
        name=f"export_{topic.name}",
        partitions_def=daily,
        group_name="exports",
        kinds={"parquet", "csv"},
        deps=["candles_1m" if topic.name == "candles" else topic.name],
        description=f"{topic.description} A file of Parquet and one of CSV for each of {topic.parts} part(s) of the "
        "day; what is there whole is left alone, so an interrupted run goes on where it was.",
    )
    def export(context: dg.AssetExecutionContext, database: Database, config: How) -> dg.MaterializeResult[None]:
        """Write what is not there."""
        from orchestration.exports import days  # noqa: PLC0415 (brings Arrow along, which other runs need not load)

        began = time.monotonic()
        configured = settings.get()
        day, now = date.fromisoformat(context.partition_key), datetime.now(UTC)
        kept = timedelta(days=configured.exports_retention_days)
        with database.connection(autocommit=True, name=f"presage export of {topic.name}") as conn:
            # Here and not in the schedule, which is evaluated where the files are not. First: a day long ago that
            # somebody asks for is there until the next run.
            days.forget(conn, topic, configured.exports_folder, (now - kept).date())
            done = days.export(
                conn,
                topic,
                day,
                configured.exports_folder,
                now,
                again=config.again,
                progress=context.log.info,
            )
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": done.rows,
                "MB": round(done.bytes / 1e6, 3),
                "parts_written": done.written,
                "parts_kept": done.kept,
                "seconds": round(time.monotonic() - began, 1),
            }
        )

    return export


exports = [export_of(topic) for topic in TOPICS]

job = dg.define_asset_job(
    "exports",
    selection=dg.AssetSelection.assets(*exports).without_checks(),
    description="Each night: yesterday's data as files, and what of the last week is missing. By hand: any day.",
    executor_def=dg.in_process_executor,
    # dagster.yaml lets one of them run at a time, as with days that are counted.
    tags={"dagster/max_runtime": "21600", "dagster/priority": "-2", "presage/exports": "day"},
)


@dg.schedule(
    job=job,
    cron_schedule="25 0 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Exports yesterday, once it is settled, and what of the last week is missing; the run deletes files "
    "beyond their time.",
)
def exports_each_night(
    context: dg.ScheduleEvaluationContext, database: Database
) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for each day that is not there whole: one for which a night failed as well."""
    with database.connection(autocommit=True, name="presage exports_each_night") as conn:
        due = missing(conn, context.scheduled_execution_time.astimezone(UTC))
    if not due:
        return dg.SkipReason("every day is there")
    return [dg.RunRequest(run_key=f"{day}", partition_key=f"{day}") for day in due]  # several only with keys


def missing(conn: psycopg.Connection[Any], now: datetime) -> list[date]:
    """List the days that are over and not exported whole, the newest first: yesterday, and since data is recorded."""
    coverage.remember_since(conn)
    since_ms = coverage.recorded_since(conn)
    days = [now.date() - timedelta(days=n) for n in range(1, DAYS_BACK + 1)]
    first = days[0] if since_ms is None else datetime.fromtimestamp(since_ms / 1000, UTC).date()
    oldest = (now - timedelta(days=settings.get().exports_retention_days)).date()  # the run would delete older ones
    return [
        day
        for (day,) in queries.unfinished(
            conn,
            days=[days[0], *(day for day in days[1:] if day >= max(first, oldest))],
            topics=[topic.name for topic in TOPICS],
            files=[topic.parts * FORMATS for topic in TOPICS],
        )
    ]
