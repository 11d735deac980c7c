"""Coverage: known gaps are filled hourly, each day is reconciled against the exchange's list and the chain's logs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

import dagster as dg

from config import exchanges, settings
from orchestration.assets.pipeline import result
from orchestration.coverage import days, filling, judging
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.exchanges.opening import client_of, obstacle, recorded_exchanges
from orchestration.resources import Database, Exchange
from orchestration.settlement import chain
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import Writer
from sql.queries import coverage as queries

GROUP, KINDS = "coverage", {"timescaledb"}
FILL_S = 1800.0  # per pass; the next one continues with the rest
COUNT_S = 10_800.0
each_day = dg.DailyPartitionsDefinition(start_date="2023-01-01")


@contextmanager
def exchange_client(at: Exchange, exchange: exchanges.Exchange = exchanges.POLYMARKET) -> Iterator[ExchangeClient]:
    """Open an exchange's client for a block."""
    client = client_of(exchange, at)
    try:
        yield client
    finally:
        client.close()


@dg.asset(
    group_name=GROUP,
    kinds=KINDS,
    deps=["trades", "book_events"],
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6), warn_window=timedelta(hours=3)),
    description="Data that may be missing, one row per gap: start, end, markets, and cause. Trades are filled in from "
    "the exchange's list, however old the gap is; book changes are not available later from any source.",
)
def coverage_gaps(
    context: dg.AssetExecutionContext, database: Database, exchange: Exchange
) -> dg.MaterializeResult[None]:
    """Fill known gaps, for half an hour at most."""
    began, filled = time.monotonic(), filling.FillResult()
    with database.connection(autocommit=True, name="presage gaps") as conn:
        exchanges = recorded_exchanges(settings.get())
        for nth, each in enumerate(exchanges, start=1):
            # Each has its share of the time, and what those before it left.
            until = began + FILL_S * nth / len(exchanges)
            with exchange_client(exchange, each) as client:
                filled.add(filling.fill(conn, client, should_stop=partial(_is_past, until)))
        left = {f"{kind} {status}": count for kind, status, count in queries.gap_counts(conn)}
    if filled.failed:
        context.log.warning("%s gaps could not be filled for now", filled.failed)
    if filled.unknown:
        context.log.warning("%s trades belong to markets that the catalogue does not know", filled.unknown)
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


def _is_past(moment: float) -> bool:
    return time.monotonic() > moment


def reconciled_trades_of(exchange_: exchanges.Exchange, prefix: str = "") -> dg.AssetsDefinition:
    """Return the asset that reconciles an exchange's trades; `prefix` is that of the names of its feed's assets."""

    @dg.asset(
        name=f"{prefix}reconciled_trades",
        group_name=GROUP,
        kinds=KINDS,
        deps=[f"{prefix}trades"],
        partitions_def=each_day,
        retry_policy=dg.RetryPolicy(max_retries=2, delay=120),
        description=f"A day's trades, reconciled with {exchange_.title}'s own list, trade by trade: missing trades are "
        "written, unlisted ones counted. A day from before recording began is backfilled.",
    )
    def reconciled(
        context: dg.AssetExecutionContext, database: Database, exchange: Exchange
    ) -> dg.MaterializeResult[None]:
        """Reconcile the trades of the partition's day, and fill in what is missing."""
        began, day = time.monotonic(), _day(context)
        if why := obstacle(exchange_, settings.get()):
            return dg.MaterializeResult(metadata={"off": why})
        with (
            exchange_client(exchange, exchange_) as client,
            database.connection(autocommit=True, name="presage reconciliation") as conn,
        ):
            result = days.reconcile_trades(conn, client, day, should_stop=lambda: time.monotonic() - began > COUNT_S)
        return dg.MaterializeResult(metadata=day_metadata(context, result, began))

    return reconciled


reconciled_trades = reconciled_trades_of(exchanges.POLYMARKET)
kalshi_reconciled_trades = reconciled_trades_of(exchanges.KALSHI, prefix="kalshi_")


@dg.asset(
    group_name=GROUP,
    kinds={"polygon", "timescaledb"},
    deps=["chain_blocks"],
    partitions_def=each_day,
    retry_policy=dg.RetryPolicy(max_retries=2, delay=120),
    description="The logs of a day's blocks, recounted block by block against the chain; those that an endpoint had "
    "left out are written, and recorded as incidents.",
)
def reconciled_settlements(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Reconcile the settlements of the partition's day, if a chain is followed."""
    began, configured = time.monotonic(), settings.get()
    if not chain.urls(configured):
        return dg.MaterializeResult(metadata={"off": chain.OFF})
    contracts = chain.followed(configured)
    name = "presage reconciliation of the chain"
    with chain.open_clients(configured) as (rpc, second), database.connection(autocommit=True, name=name) as conn:
        ranges = Ranges(
            Writer(conn, contracts),
            rpc,
            contracts,
            should_stop=lambda: time.monotonic() - began > COUNT_S,
            second=second,
        )
        result = days.reconcile_settlements(conn, ranges, rpc.heads(), _day(context))
    if result is None:
        return dg.MaterializeResult(metadata={"blocks": 0, "seconds": round(time.monotonic() - began, 1)})
    return dg.MaterializeResult(metadata=day_metadata(context, result, began))


def day_metadata(context: dg.AssetExecutionContext, result: days.DayResult, began: float) -> dict[str, Any]:
    """Return a day's result as metadata."""
    if result.added or not result.agrees:
        context.log.warning("%s of %s: %s", result.kind, result.day, result.figures())
    return {**result.figures(), **result.detail, "seconds": round(time.monotonic() - began, 1)}


def _kinds() -> dict[str, list[str]]:
    """Return what is reconciled each day, by exchange."""
    configured = settings.get()
    followed = ["settlements"] if chain.urls(configured) else []
    return {each.name: ["trades", *(followed if each.has_chain else [])] for each in recorded_exchanges(configured)}


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
    description="Fills the gaps that can be filled.",
)

reconciliation_job = dg.define_asset_job(
    "reconciliation",
    selection=dg.AssetSelection.assets(
        reconciled_trades, kalshi_reconciled_trades, reconciled_settlements
    ).without_checks(),
    description="Each day: reconciles the day before with the exchanges and the chain. Manually, for any day: fills in "
    "what the exchanges list for it.",
    # dagster.yaml runs one of these at a time, so that missed days do not displace the live runs.
    tags={"dagster/max_runtime": "36000", "dagster/priority": "-2", "presage/reconciliation": "day"},
)


RECONCILED = {
    (exchanges.POLYMARKET.name, "trades"): reconciled_trades.key,
    (exchanges.KALSHI.name, "trades"): kalshi_reconciled_trades.key,
    (exchanges.POLYMARKET.name, "settlements"): reconciled_settlements.key,
}


@dg.schedule(
    job=reconciliation_job,
    cron_schedule="20 3 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Reconciles yesterday, and days of the last week that were not reconciled.",
)
def reconciliation_each_day(
    context: dg.ScheduleEvaluationContext, database: Database
) -> list[dg.RunRequest] | dg.SkipReason:
    """Request a run for each day that is due."""
    with database.connection(autocommit=True, name="presage reconciliation_each_day") as conn:
        due = days.due(conn, context.scheduled_execution_time, _kinds())
    if not due:
        return dg.SkipReason("every day with recorded data has been reconciled")
    return [
        dg.RunRequest(  # several requests need keys
            run_key=f"{day}", partition_key=f"{day}", asset_selection=sorted(RECONCILED[each] for each in missing)
        )
        for day, missing in due.items()
    ]


@dg.asset_check(
    asset=coverage_gaps,
    name="reconciled",
    description="Each day is reconciled in time, and stored data equals the exchanges' and the chain's.",
)
def coverage_reconciled(database: Database) -> dg.AssetCheckResult:
    """Check the reconciliation of the last 30 days."""
    with database.connection(name="presage coverage check") as conn:
        judgement = judging.reconciled(conn, datetime.now(UTC), _kinds())
    return result("coverage_gaps", "reconciled", judgement)
