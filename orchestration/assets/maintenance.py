"""Maintenance: expired data is dropped, old books are packed, and Dagster's own history is pruned."""

import time
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec

from config import settings
from orchestration.maintenance import packs, pruning, retention
from orchestration.resources import Database
from sql.queries import retention as queries

FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6), warn_window=timedelta(hours=3))


@dg.asset(
    group_name="maintenance",
    kinds={"timescaledb"},
    freshness_policy=FRESH,
    description="Size of each table. Expired trades, quotes, book events and stream events are dropped by whole "
    "chunks, leftovers of runs by rows. Candles are never dropped.",
)
def storage(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Drop expired data."""
    began = time.monotonic()
    with database.connection(autocommit=True, name="presage maintenance") as conn:
        dropped = retention.drop_old(conn, settings.get(), datetime.now(UTC))
        sizes = list(queries.sizes(conn))
    context.log.info("dropped: %s", dropped)
    return dg.MaterializeResult(
        metadata={
            **{f"dropped {name}": count for name, count in dropped.items()},
            **{f"{name}, MB": round(size / 1e6, 3) for name, size in sizes},
            "all, MB": round(sum(size for _, size in sizes) / 1e6, 3),
            "seconds": round(time.monotonic() - began, 3),
        }
    )


@dg.asset(
    group_name="maintenance",
    kinds={"timescaledb"},
    freshness_policy=FRESH,
    description="Book events of past days, packed into few bytes each, some hours after the day's end; each is either "
    "here or in `book_events`. On the Community licence the columnstore does this, and this table is "
    "empty.",
)
def book_packs(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Pack the days that are due, for ten minutes at most."""
    began = time.monotonic()
    with database.connection(autocommit=True, name="presage packs") as conn:
        packed = packs.bring_up_to_date(conn, datetime.now(UTC))
    context.log.info("packed: %s", packed)
    figures: dict[str, float] = msgspec.structs.asdict(packed)
    if packed.events:
        figures["bytes_an_event"] = round(packed.bytes / packed.events, 1)
    return dg.MaterializeResult(metadata={**figures, "seconds": round(time.monotonic() - began, 3)})


@dg.asset(
    group_name="maintenance",
    kinds={"dagster"},
    freshness_policy=FRESH,
    description="Dagster's own runs and events, which it never deletes itself: kept for a day, failures for a week, "
    "and the newest of each asset and check for as long as it is the newest.",
)
def run_history(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """Delete old runs, for a minute at most."""
    began = time.monotonic()
    pruned = pruning.prune(context.instance, datetime.now(UTC))
    return dg.MaterializeResult(
        metadata={
            "deleted": pruned.deleted,
            "spared": pruned.spared,
            "check_evaluations_deleted": pruned.checks,
            "events_without_a_run_deleted": pruned.runless_events,
            "finished": pruned.finished,
            "kept": context.instance.get_runs_count(),
            "seconds": round(time.monotonic() - began, 3),
        }
    )


job = dg.define_asset_job(
    "maintenance",
    selection=dg.AssetSelection.assets(storage, book_packs, run_history),
    description="Each hour: retention, packing of past books, and pruning of Dagster's history.",
    tags={"dagster/max_runtime": "900"},
)

each_hour = dg.ScheduleDefinition(
    name="maintenance_each_hour",
    job=job,
    cron_schedule="17 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Drops expired data and prunes Dagster's history.",
)
