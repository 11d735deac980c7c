"""The lake: days that are over as Iceberg tables, written each night."""

import time
from datetime import UTC, datetime, timedelta

import dagster as dg

from config import settings
from orchestration import checks
from orchestration.assets.pipeline import check_fields
from orchestration.maintenance import retention
from orchestration.resources import Database
from sql.queries import lake as queries

OFF = "off: PRESAGE_LAKE is not set"
ASSET = "lake_days"


@dg.asset(
    name=ASSET,
    group_name="maintenance",
    kinds={"iceberg", "parquet"},
    deps=["markets", "trades", "candles_1m", "settlements", "book_events"],
    description="Markets, trades, candles, settlements and book events of days that are over, as Iceberg tables in "
    "PRESAGE_LAKE: days that are not there yet, and those of the last two weeks to which rows were added since. "
    "Expired rows are dropped only once they are there.",
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(days=3), warn_window=timedelta(days=2)),
)
def lake_days(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Write the days that are due, and delete files that no snapshot has any more."""
    given, began = settings.get(), time.monotonic()
    if not given.lake:
        return dg.MaterializeResult(metadata={"off": OFF})
    from orchestration.lake import verifying, writing  # noqa: PLC0415 (brings Arrow and Iceberg along)
    from orchestration.lake.catalogue import Lake  # noqa: PLC0415
    from orchestration.lake.tables import TABLES  # noqa: PLC0415

    written, swept, failed, now = [], 0, {}, datetime.now(UTC)
    with Lake(database.url, given) as iceberg:
        for table in TABLES:
            try:
                with database.connection(autocommit=True, name="presage lake") as conn:
                    written += writing.write_due(conn, iceberg, table, now, context.log.info)
                    swept += verifying.sweep(conn, iceberg, table, now)
            except Exception as fault:  # the other tables do not wait for this one
                context.log.exception("%s was not written", table.name)
                failed[table.name] = f"{type(fault).__name__}: {fault}"
    if failed:
        raise dg.Failure("not every table was written", metadata=failed)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(day.rows for day in written),
            "days": len(written),
            "MB": round(sum(day.bytes for day in written) / 1e6, 3),
            "files_deleted": swept,
            "seconds": round(time.monotonic() - began, 1),
        }
    )


@dg.asset_check(
    name="lake_current",
    asset=ASSET,
    description="The lake has every day a day after its end: expired trades would be kept until it does.",
)
def lake_current(database: Database) -> dg.AssetCheckResult:
    """Judge the oldest missing day."""
    if not settings.get().lake:
        return dg.AssetCheckResult(**check_fields(checks.OFF_LAKE))
    from orchestration.lake.tables import BY_NAME  # noqa: PLC0415 (brings Arrow and Iceberg along)

    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    missing = {}
    with database.connection(autocommit=True, name="presage lake") as conn:
        for name in retention.HELD_FOR_THE_LAKE:
            table = BY_NAME[name]
            ended = today - timedelta(days=1 + table.settle_time.days)
            missing[name] = queries.first_missing(conn, name=name, hypertable=table.hypertable, before=ended)
    return dg.AssetCheckResult(**check_fields(checks.lake_current(missing)))


job = dg.define_asset_job(
    "lake",
    selection=dg.AssetSelection.assets(lake_days),
    description="Each night: days that are over into the lake, if PRESAGE_LAKE is set.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_runtime": "21600", "dagster/priority": "-2", "presage/exports": "day"},
)

each_night = dg.ScheduleDefinition(
    name="lake_each_night",
    job=job,
    cron_schedule="10 1 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Writes yesterday into the lake, an hour after its end.",
)
