"""Exports: each day's data as files, one partition per day, downloadable with an API key."""

import time
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg
import psycopg

from config import settings
from config.exchanges import DEFAULT
from orchestration.exports.topics import TOPICS, Topic
from orchestration.resources import Database
from sql.queries import coverage
from sql.queries import exports as queries

DAYS_BACK = 7  # older days are exported only when an operator asks for it
FORMATS = 2  # `len(files.SUFFIX)`, without importing Arrow

daily = dg.DailyPartitionsDefinition(start_date="2024-01-01", end_offset=1)  # includes today, as far as it has come


class ExportConfig(dg.Config):
    """Configuration of an export run; by default existing files are left alone."""

    again: bool = False
    """Rewrite existing files: after trades of a past day have been filled in, for example."""


def export_of(topic: Topic) -> dg.AssetsDefinition:
    """Return the asset that exports a topic."""

    @dg.asset(
        name=f"export_{topic.name}",
        partitions_def=daily,
        group_name="exports",
        kinds={"parquet", "csv"},
        deps=[source(topic)],
        description=f"{topic.exchange.title}. {topic.description} A file of Parquet and one of CSV for each of "
        f"{topic.parts} part(s) of the day; what is there whole is left alone, so an interrupted run goes on where it "
        "was.",
    )
    def export(
        context: dg.AssetExecutionContext, database: Database, config: ExportConfig
    ) -> dg.MaterializeResult[None]:
        """Write the files that do not exist yet."""
        from orchestration.exports import days  # noqa: PLC0415 (brings Arrow along, which other runs need not load)
        from orchestration.exports.store import ExportStore  # noqa: PLC0415 (the same)

        began = time.monotonic()
        configured = settings.get()
        day, now = date.fromisoformat(context.partition_key), datetime.now(UTC)
        kept, store = timedelta(days=configured.exports_retention_days), ExportStore.of(configured)
        if topic.exchange.name not in configured.exchange_names:
            return dg.MaterializeResult(metadata={"off": f"{topic.exchange.title} is not in PRESAGE_EXCHANGES"})
        for other in unread(topic, configured.exchange_names):
            with database.connection(autocommit=True, name=f"presage export of {other.name}") as conn:
                days.forget(conn, other, store, (now - kept).date())
        with database.connection(autocommit=True, name=f"presage export of {topic.name}") as conn:
            # Done here and not in the schedule, which is evaluated where the files are not. Done first, so that an old
            # day that somebody exports by hand stays until the next run.
            days.forget(conn, topic, store, (now - kept).date())
            done = days.export(conn, topic, day, store, now, again=config.again, progress=context.log.info)
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


def unread(topic: Topic, read: Sequence[str]) -> list[Topic]:
    """Return the same topic of exchanges that are not read any more, which Polymarket's run deletes the old days of."""
    if not topic.exchange.is_default:
        return []
    return [each for each in TOPICS if each.asset == topic.asset and each.exchange.name not in read]


def source(topic: Topic) -> str:
    """Return the asset that a topic's rows are of; candles are one for all exchanges."""
    own = not topic.exchange.is_default and topic.asset != "candles_1m"
    return f"{topic.exchange.name}_{topic.asset}" if own else topic.asset


exports = [export_of(topic) for topic in TOPICS]

job = dg.define_asset_job(
    "exports",
    selection=dg.AssetSelection.assets(*exports).without_checks(),
    description="Each night: yesterday's data as files, and missing days of the last week. Manually: any day.",
    executor_def=dg.in_process_executor,
    # dagster.yaml runs one of these at a time, as with reconciliation.
    tags={"dagster/max_runtime": "21600", "dagster/priority": "-2", "presage/exports": "day"},
)


@dg.schedule(
    job=job,
    cron_schedule="25 0 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Exports yesterday, once its data is complete, and missing days of the last week; the run deletes "
    "expired files.",
)
def exports_each_night(
    context: dg.ScheduleEvaluationContext, database: Database
) -> list[dg.RunRequest] | dg.SkipReason:
    """Request a run for each day that is not exported completely, including days whose nightly run failed."""
    with database.connection(autocommit=True, name="presage exports_each_night") as conn:
        due = missing(conn, context.scheduled_execution_time.astimezone(UTC))
    if not due:
        return dg.SkipReason("every day is exported")
    return [
        dg.RunRequest(run_key=f"{day}", partition_key=f"{day}", asset_selection=assets)  # several requests need keys
        for day, assets in due.items()
    ]


def missing(conn: psycopg.Connection[Any], now: datetime) -> dict[date, list[dg.AssetKey]]:
    """Return past days of which an exchange's topics are not exported completely, newest first, with their assets.

    They go from yesterday back to the exchange's first recorded day.
    """
    coverage.remember_since(conn)
    configured = settings.get()
    days = [now.date() - timedelta(days=n) for n in range(1, DAYS_BACK + 1)]
    oldest = (now - timedelta(days=configured.exports_retention_days)).date()  # the run would delete older ones
    due: dict[date, list[dg.AssetKey]] = {}
    for exchange in configured.exchange_names:
        since, ended = coverage.recorded_span(conn, exchange=exchange)
        first = days[0] if since is None else since.astimezone(UTC).date()
        for day in (days[0], *(day for day in days[1:] if day >= max(first, oldest))):
            topics = [topic for topic in TOPICS if topic.exchange.name == exchange]
            if exchange != DEFAULT.name and (since is None or (ended and day > ended.astimezone(UTC).date())):
                topics = [topic for topic in topics if topic.of_catalogue]  # its feed is off
            names, files = [topic.name for topic in topics], [topic.parts * FORMATS for topic in topics]
            if list(queries.unfinished(conn, days=[day], topics=names, files=files)):
                due.setdefault(day, []).extend(dg.AssetKey(f"export_{name}") for name in names)
    return dict(sorted(due.items(), reverse=True))
