"""Coverage: known gaps filled each hour, and each day counted against the exchange's list and the chain's logs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg

from config import settings
from orchestration.assets.pipeline import result
from orchestration.coverage import days, filling, judging
from orchestration.ingest import exchange as live_exchange
from orchestration.resources import Database, Exchange
from orchestration.settlement import chain
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import Writer
from sql.queries import coverage as queries

GROUP, KINDS = "coverage", {"timescaledb"}
FILL_S = 1800.0  # a pass; what is left is taken up by the next one
COUNT_S = 10_800.0
each_day = dg.DailyPartitionsDefinition(start_date="2023-01-01")


@contextmanager
def asked(exchange: Exchange) -> Iterator[live_exchange.Exchange]:
    """Speak to the exchange for a block."""
    speaking = live_exchange.Exchange(
        exchange.gamma_url, exchange.clob_url, exchange.clob_socket_url, exchange.data_api_url, exchange.source
    )
    try:
        yield speaking
    finally:
        speaking.close()


@dg.asset(
    group_name=GROUP,
    kinds=KINDS,
    deps=["trades", "book_events"],
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6), warn_window=timedelta(hours=3)),
    description="What may have been missed, one row a gap: from when to when, of which markets, and why. Trades are "
    "filled in from the exchange's list, however old the gap is; changes of books cannot be had later from anywhere.",
)
def coverage_gaps(
    context: dg.AssetExecutionContext, database: Database, exchange: Exchange
) -> dg.MaterializeResult[None]:
    """Fill what can be filled, for half an hour at most."""
    began = time.monotonic()
    with asked(exchange) as speaking, database.connection(autocommit=True, name="presage gaps") as conn:
        filled = filling.fill(conn, speaking, should_stop=lambda: time.monotonic() - began > FILL_S)
        left = {f"{kind} {status}": count for kind, status, count in queries.gap_counts(conn)}
    if filled.failed:
        context.log.warning("%s gaps could not be filled for now", filled.failed)
    if filled.unknown:
        context.log.warning("%s trades are of markets that the catalogue does not know", filled.unknown)
    return dg.MaterializeResult(
        metadata={
            "filled": filled.gaps,
            "failed": filled.failed,
            "trades_of_unknown_markets": filled.unknown,
            "trades_listed": filled.listed,
            "trades_added": filled.added,
            **left,
            "seconds": round(time.monotonic() - began, 1),
        }
    )


@dg.asset(
    group_name=GROUP,
    kinds=KINDS,
    deps=["trades"],
    partitions_def=each_day,
    retry_policy=dg.RetryPolicy(max_retries=2, delay=120),
    description="A day's trades, held against the exchange's own list (`/v2/trades`), trade by trade: what is missing "
    "is written, what the exchange does not list is counted. A day from before anything was recorded is filled in.",
)
def reconciled_trades(
    context: dg.AssetExecutionContext, database: Database, exchange: Exchange
) -> dg.MaterializeResult[None]:
    """Count and fill in the partition's day."""
    began, day = time.monotonic(), _day(context)
    with asked(exchange) as speaking, database.connection(autocommit=True, name="presage reconciliation") as conn:
        told = days.reconcile_trades(conn, speaking, day, should_stop=lambda: time.monotonic() - began > COUNT_S)
    return dg.MaterializeResult(metadata=shown(context, told, began))


@dg.asset(
    group_name=GROUP,
    kinds={"polygon", "timescaledb"},
    deps=["chain_blocks"],
    partitions_def=each_day,
    retry_policy=dg.RetryPolicy(max_retries=2, delay=120),
    description="The logs of a day's blocks, counted again block by block against the chain; those that an endpoint "
    "had left out are written, and told as incidents.",
)
def reconciled_settlements(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Count the partition's day, where a chain is followed."""
    began, configured = time.monotonic(), settings.get()
    if not chain.urls(configured):
        return dg.MaterializeResult(metadata={"off": chain.OFF})
    contracts = chain.followed(configured)
    name = "presage reconciliation of the chain"
    with chain.reached(configured) as (rpc, second), database.connection(autocommit=True, name=name) as conn:
        ranges = Ranges(
            Writer(conn, contracts),
            rpc,
            contracts,
            should_stop=lambda: time.monotonic() - began > COUNT_S,
            second=second,
        )
        told = days.reconcile_settlements(conn, ranges, rpc.heads(), _day(context))
    if told is None:
        return dg.MaterializeResult(metadata={"blocks": 0, "seconds": round(time.monotonic() - began, 1)})
    return dg.MaterializeResult(metadata=shown(context, told, began))


def shown(context: dg.AssetExecutionContext, told: days.Day, began: float) -> dict[str, Any]:
    """Say what a day came to."""
    if told.added or not told.agrees:
        context.log.warning("%s of %s: %s", told.kind, told.day, told.figures())
    return {**told.figures(), **told.detail, "seconds": round(time.monotonic() - began, 1)}


def _kinds() -> list[str]:
    return ["trades", "settlements"] if chain.urls(settings.get()) else ["trades"]


def _day(context: dg.AssetExecutionContext) -> date:
    start: datetime = context.partition_time_window.start
    return start.date()


filling_job = dg.define_asset_job(
    "gap_filling",
    selection=dg.AssetSelection.assets(coverage_gaps).without_checks(),
    description="Each hour: fills the gaps in the trades that the live feed could not fill itself.",
    tags={"dagster/max_runtime": "3600", "dagster/priority": "-1"},
)

each_hour = dg.ScheduleDefinition(
    name="gap_filling_each_hour",
    job=filling_job,
    cron_schedule="47 * * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Fills what can be filled.",
)

reconciliation_job = dg.define_asset_job(
    "reconciliation",
    selection=dg.AssetSelection.assets(reconciled_trades, reconciled_settlements).without_checks(),
    description="Each day: counts the day before against the exchange and the chain. By hand, for any day: what the "
    "exchange lists of it is filled in.",
    # dagster.yaml lets one of them run at a time: days that were missed take no place from the live runs.
    tags={"dagster/max_runtime": "25200", "dagster/priority": "-2", "presage/reconciliation": "day"},
)


@dg.schedule(
    job=reconciliation_job,
    cron_schedule="20 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Counts yesterday, and what of the last week was not counted.",
)
def reconciliation_each_day(
    context: dg.ScheduleEvaluationContext, database: Database
) -> list[dg.RunRequest] | dg.SkipReason:
    """Ask for each day that is due."""
    with database.connection(autocommit=True, name="presage reconciliation_each_day") as conn:
        due = days.due(conn, context.scheduled_execution_time, _kinds())
    if not due:
        return dg.SkipReason("every day in which something was recorded has been counted")
    return [dg.RunRequest(run_key=f"{day}", partition_key=f"{day}") for day in due]  # several only with keys


@dg.asset_check(
    asset=coverage_gaps,
    name="reconciled",
    description="Each day is counted in time, and what is held is what the exchange and the chain have.",
)
def coverage_reconciled(database: Database) -> dg.AssetCheckResult:
    """Judge the last 30 days."""
    with database.connection(name="presage coverage check") as conn:
        judgement = judging.reconciled(conn, datetime.now(UTC), _kinds())
    return result("coverage_gaps", "reconciled", judgement)
