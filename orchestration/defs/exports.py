"""Exports: each day's data as files, a partition a day, where it can be fetched by whoever has a key."""

import time
from datetime import UTC, date, datetime, timedelta

import dagster as dg

import settings
from orchestration.exports.topics import TOPICS, Topic
from orchestration.resources import Database

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
    selection=dg.AssetSelection.assets(*exports),
    description="Each night: yesterday's data as files. By hand: any day, and what is missing of it.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_runtime": "21600"},
)


@dg.schedule(
    job=job,
    cron_schedule="25 0 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Exports yesterday, once it is settled; the run deletes files beyond their time.",
)
def exports_each_night(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Ask for yesterday."""
    yesterday = (context.scheduled_execution_time.astimezone(UTC) - timedelta(days=1)).date()
    return dg.RunRequest(run_key=f"{yesterday}", partition_key=f"{yesterday}")
