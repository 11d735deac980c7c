"""Settlements: the chain's head followed by two long runs (one writes), and history backfilled by block range."""

import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from config import settings
from orchestration import checks
from orchestration.assets.pipeline import result
from orchestration.feeds.keeping import WINDOW_TAG, ensure_runs
from orchestration.feeds.reporter import OBSERVE_S, Reporter
from orchestration.feeds.runs import execute, unfinished
from orchestration.resources import Database
from orchestration.settlement import chain, judging
from orchestration.settlement.feed import SettlementFeed
from orchestration.settlement.partitions import bounds, listed
from orchestration.settlement.ranges import Progress, Ranges, RecountResult
from orchestration.settlement.writer import ANOMALIES, FEED, Writer
from sql.queries import feed as feed_queries
from sql.queries import settlement as queries

LIVE = "polymarket"
CHECK_S = 3600.0  # per pass of the daily check; the next one continues with the rest
KINDS = {"polygon", "timescaledb"}
SHOWN: Mapping[str, tuple[str, ...]] = {
    "settlements": (
        *("settlements", "settlements_since", "told", "revoked", "resolved", "behind"),
        *("zero_amounts", "dust", "impossible_prices", "maker_rows_without_match"),
    ),
    "wallet_fills": ("settlements", "settlements_since"),
    "ledger_entries": (
        *("ledger_entries", "ledger_entries_since"),
        *("refused", "unattributed", "foreign_collateral", "fee_refunds"),
    ),
    "chain_blocks": (
        *("blocks", "blocks_since", "head", "finalized", "indexed", "provisional", "reorgs", "deepest_reorg"),
        *("checked_blocks", "logs_found_missing", "logs_withheld", "faults"),
    ),
}
STANDBY = "chain_blocks", ("head", "finalized", "indexed")
DESCRIPTIONS = {
    "settlements": "Fills as settled on the chain, one row per log: maker, taker, price, size, fee. A match has a row "
    "for each maker's order and one for the taker's; `counted` marks those that make up the volume.",
    "wallet_fills": "The same by wallet: each order's owner has a row in their history.",
    "ledger_entries": "Other position changes: splits, merges, conversions, redemptions, transfers, resolutions.",
    "chain_blocks": "Indexed blocks, with their hashes, by which reorganisations are detected, and their log counts. "
    "Above the finalized head they are provisional.",
}


@dg.multi_asset(
    name="settlement_feed",
    specs=[
        dg.AssetSpec(
            name,
            deps=["markets"],
            group_name="settlement",
            kinds=KINDS,
            description=description,
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(minutes=12), warn_window=timedelta(minutes=8)
            ),
            skippable=True,
        )
        for name, description in DESCRIPTIONS.items()
    ],
)
def feed(context: dg.AssetExecutionContext, database: Database) -> Iterator[dg.MaterializeResult[None]]:
    """Lead the feed or stand by, until the window is over and a successor is ready."""
    window_s = context.run.tags.get(WINDOW_TAG)
    configured = settings.get()
    reporter = Reporter(context, SHOWN, STANDBY)
    with chain.open_clients(configured) as (rpc, second):
        feed_ = SettlementFeed(
            configured,
            database.url,
            rpc,
            chain.followed(configured),
            run_id=context.run.run_id,
            second=second,
            window_s=float(window_s) if window_s else None,
            observe_s=OBSERVE_S,
        )
        totals = execute(context, feed_, reporter.observe)
    yield from reporter.results(totals)


job = dg.define_asset_job(
    "settlement",
    # Checks would run after the feed's end, in the middle of the hand-over.
    selection=dg.AssetSelection.assets(feed).without_checks(),
    description="One of the two long runs that follow the chain's head: the leader writes, the standby takes over.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_retries": "0", "dagster/max_runtime": "7200", "dagster/priority": "8"},
)

blocks = dg.DynamicPartitionsDefinition(name="settlement_blocks")


@dg.sensor(
    job=job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps two settlement runs, by their leases, once the live feed is up; none if no chain RPC is "
    "configured. Lists the block ranges that can be backfilled.",
)
def settlement_keeper(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult | dg.SkipReason:
    """Start runs as the live feed's keeper does, and after it."""
    configured = settings.get()
    on = bool(chain.urls(configured))
    with database.connection(autocommit=True, name="presage settlement_keeper") as conn:
        if not on:
            feed_queries.switch_off(conn, stage="settlement", why=chain.OFF)
            return dg.SkipReason(chain.OFF)
        feed_queries.switch_on(conn, stage="settlement")
        held = queries.heads(conn, feed=FEED)
        live_is_up = feed_queries.is_up(conn, family=LIVE)
    if not live_is_up and unfinished(context.instance, "live"):
        return dg.SkipReason("the live feed comes first")
    kept = ensure_runs(context, database, feed=FEED, job=job.name, window_s=configured.settlement_window_s, hosted=True)
    if held is None:
        return kept
    wanted = listed(held[1], configured.settlement_partition_blocks, configured.settlements_retention_days)
    known = set(context.instance.get_dynamic_partitions("settlement_blocks"))
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if missing := [key for key in wanted if key not in known]:
        requests.append(blocks.build_add_request(missing))
    if gone := sorted(known - set(wanted)):
        requests.append(blocks.build_delete_request(gone))
    return dg.SensorResult(
        run_requests=kept.run_requests,
        skip_reason=kept.skip_reason,
        cursor=kept.cursor,
        dynamic_partitions_requests=requests or None,
    )


class RangeConfig(dg.Config):
    """Configuration: which blocks of the partition; by default all of them."""

    from_block: int | None = None
    to_block: int | None = None
    check: bool = False
    """Recount blocks that are indexed already: after contracts were added, or if an endpoint is no longer trusted."""


@dg.asset(
    partitions_def=blocks,
    group_name="settlement",
    kinds=KINDS,
    deps=["chain_blocks"],
    description="History by block ranges: indexes the blocks of a range that are missing. An interrupted run continues "
    "where it stopped; a run over indexed blocks changes nothing.",
)
def settlement_history(
    context: dg.AssetExecutionContext, database: Database, config: RangeConfig
) -> dg.MaterializeResult[None]:
    """Backfill a block range, and report progress."""
    configured = settings.get()
    low, high = bounds(context.partition_key)
    low = max(low, config.from_block or 0)
    high = high if config.to_block is None else min(high, config.to_block)
    began, reported_at = time.monotonic(), time.monotonic()
    contracts = chain.followed(configured)
    progress = Progress(0)
    name = "presage back-fill"
    checked = RecountResult()
    with chain.open_clients(configured) as (rpc, second), database.connection(autocommit=True, name=name) as conn:
        heads = rpc.heads()
        final = heads.finalized
        ranges = Ranges(Writer(conn, contracts), rpc, contracts, second=second)
        for progress in ranges.fill(low, min(high, final)):
            if time.monotonic() - reported_at >= OBSERVE_S:
                reported_at = time.monotonic()
                metadata = progress_metadata(progress, time.monotonic() - began)
                context.log_event(
                    dg.AssetObservation("settlement_history", partition=context.partition_key, metadata=metadata)
                )
        if config.check:
            for piece in ranges.check_all([(low, min(high, final))], heads):
                checked.add(piece)
    metadata = {"range": f"{low} to {min(high, final)}", **progress_metadata(progress, time.monotonic() - began)}
    if config.check:
        metadata |= {"blocks_checked": checked.blocks, "logs_found_missing": checked.missing}
    return dg.MaterializeResult(metadata=metadata)


def progress_metadata(progress: Progress, seconds: float) -> dict[str, Any]:
    """Return a backfill's progress as metadata."""
    return {
        "blocks_done": progress.done,
        "blocks_missing": progress.blocks - progress.done,
        "share": round(progress.done / progress.blocks, 4) if progress.blocks else 1.0,
        "logs": progress.written.logs,
        "settlements": progress.written.settlements,
        "ledger_entries": progress.written.ledger_entries,
        **{name: progress.written.counts[name] for name in ANOMALIES},
        "retries": progress.retries,
        "logs_per_s": round(progress.written.logs / seconds) if seconds else 0,
        "seconds": round(seconds, 1),
    }


backfill_job = dg.define_asset_job(
    "settlement_backfill",
    selection=dg.AssetSelection.assets(settlement_history).without_checks(),
    description="Started by an operator, for any of the listed block ranges: indexes missing blocks.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_retries": "0", "dagster/max_runtime": "86400"},
)


@dg.asset(
    group_name="settlement",
    kinds=KINDS,
    deps=["chain_blocks"],
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=72), warn_window=timedelta(hours=30)),
    description="Indexed and recounted block ranges: once a day the logs of blocks that were never recounted are "
    "requested again. Logs that an endpoint had left out are then written, and recorded as incidents.",
)
def chain_ranges(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Recount indexed blocks, for an hour at most."""
    configured = settings.get()
    began = time.monotonic()
    contracts = chain.followed(configured)
    checked = RecountResult()
    name = "presage re-check"
    with chain.open_clients(configured) as (rpc, second), database.connection(autocommit=True, name=name) as conn:
        heads = rpc.heads()
        spans = list(queries.unchecked(conn, to_block=heads.finalized))  # whole days are counted by `reconciliation`
        ranges = Ranges(
            Writer(conn, contracts),
            rpc,
            contracts,
            should_stop=lambda: time.monotonic() - began > CHECK_S,
            second=second,
        )
        for piece in ranges.check_all(spans, heads):
            checked.add(piece)
        incidents = judging.no_incidents(conn)
    if checked.missing or checked.replaced:
        context.log.warning("%s logs had been left out, %s blocks had another hash", checked.missing, checked.replaced)
    return dg.MaterializeResult(
        metadata={
            "blocks": checked.blocks,
            "logs": checked.logs,
            "logs_found_missing": checked.missing,
            "logs_withheld": checked.withheld,
            "blocks_replaced": checked.replaced,
            "incidents": incidents.summary,
            "seconds": round(time.monotonic() - began, 1),
        }
    )


check_job = dg.define_asset_job(
    "settlement_check",
    selection=dg.AssetSelection.assets(chain_ranges).without_checks(),
    description="Each day: recounts indexed blocks, and adds logs that an endpoint had left out.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_runtime": "7200"},
)


@dg.schedule(
    job=check_job,
    cron_schedule="40 4 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Starts the daily recount, if a chain RPC is configured.",
)
def settlement_check_each_day() -> dg.RunRequest | dg.SkipReason:
    """Start the daily check, or return why not."""
    return dg.RunRequest() if chain.urls(settings.get()) else dg.SkipReason(chain.OFF)


@dg.multi_asset_check(
    name="settlement_checks",
    specs=[
        dg.AssetCheckSpec("provisional_depth", asset="chain_blocks", description="Finality keeps up with the head."),
        dg.AssetCheckSpec(
            "no_holes", asset="chain_ranges", description="All blocks from the first requested one on are indexed."
        ),
        dg.AssetCheckSpec(
            "no_incidents",
            asset="settlements",
            description="No endpoint has left out logs, and exchange and chain agree about payouts.",
        ),
        dg.AssetCheckSpec(
            "all_settled",
            asset="settlements",
            description="Trades of an hour ago are settled: otherwise a contract of the exchange may not be followed "
            "(PRESAGE_CHAIN_CONTRACTS).",
        ),
        dg.AssetCheckSpec(
            "all_understood",
            asset="ledger_entries",
            description="No log of the contracts was refused in the last ten minutes because of an unknown layout.",
        ),
    ],
    can_subset=True,
    description="Whether the indexed data is complete and consistent.",
)
def settlement_checks(context: dg.AssetCheckExecutionContext, database: Database) -> Iterator[dg.AssetCheckResult]:
    """Evaluate all checks within one snapshot of the database; report those that were selected."""
    wanted = context.op_execution_context.selected_asset_check_keys
    with database.connection(name="presage settlement_checks") as conn:
        judged = {
            ("chain_blocks", "provisional_depth"): judging.provisional_depth(conn),
            ("chain_ranges", "no_holes"): judging.no_holes(conn),
            ("settlements", "no_incidents"): judging.no_incidents(conn),
            ("settlements", "all_settled"): judging.all_settled(conn, datetime.now(UTC)),
            ("ledger_entries", "all_understood"): checks.nothing_refused(conn, datetime.now(UTC), of_chain=True),
        }
    for (asset, name), judgement in judged.items():
        if dg.AssetCheckKey(dg.AssetKey(asset), name) in wanted:
            yield result(asset, name, judgement)
