"""Checks on the pipeline's freshness and on the data's plausibility, attached to the assets that they concern."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from config import settings
from config.exchanges import KALSHI, POLYMARKET
from orchestration import checks
from orchestration.checks import Judgement
from orchestration.resources import Database

# Lateness is computed when read, from the clock that each stage touches: if everything stops, every check fails.
STAGES = {
    "discovery": dg.AssetKey("markets"),
    "discovery_kalshi": dg.AssetKey("kalshi_markets"),
    "ingestion": dg.AssetKey("trades"),
    "ingestion_kalshi": dg.AssetKey("kalshi_trades"),
    "settlement": dg.AssetKey("settlements"),
    "analysis": dg.AssetKey("signals"),
    "aggregates": dg.AssetKey("market_rankings"),
    "delivery": dg.AssetKey("webhook_deliveries"),
}
FEEDS = {"": POLYMARKET.name, "kalshi_": KALSHI.name}
"""Exchanges by what the names of their feeds' assets begin with."""
NO_CLOCK = Judgement(holds=False, summary="missing: this database has no clock for it")

SPECS = [
    *(
        dg.AssetCheckSpec(f"{stage}_fresh", asset=asset, description=f"Stage `{stage}` is not late, by its own clock.")
        for stage, asset in STAGES.items()
    ),
    *(
        dg.AssetCheckSpec(name, asset=f"{prefix}{asset}", description=description)
        for prefix in FEEDS
        for asset, name, description in (
            ("trades", "lag", "99 % of rows are committed within a second of the exchange's timestamp."),
            ("live_books", "not_crossed", "In every served book the best bid is below the best ask."),
            ("live_prices", "complementary", "The mid prices of Yes and No add up to 1."),
            ("book_events", "no_open_gap", "No data is being missed now: coverage has no open gap."),
        )
    ),
    dg.AssetCheckSpec(
        "nothing_refused", asset="markets", description="No payload was refused in the last ten minutes."
    ),
    dg.AssetCheckSpec(
        "quality_passes", asset="trades", description="Data-quality passes continue while there are new rows."
    ),
]


@dg.multi_asset_check(
    name="pipeline_checks",
    specs=SPECS,
    can_subset=True,
    description="How late each stage is, and whether its newest data is plausible.",
)
def pipeline_checks(context: dg.AssetCheckExecutionContext, database: Database) -> Iterator[dg.AssetCheckResult]:
    """Evaluate all checks within one snapshot of the database; report those that were selected."""
    wanted = context.op_execution_context.selected_asset_check_keys
    now = datetime.now(UTC)
    with database.connection(name="presage freshness") as conn:
        stages = checks.stages(conn)
        judged = {
            dg.AssetCheckKey(asset, f"{stage}_fresh"): stages.get(stage, NO_CLOCK) for stage, asset in STAGES.items()
        }
        judged |= {
            dg.AssetCheckKey(dg.AssetKey(f"{prefix}{asset}"), name): judgement
            for prefix, exchange in FEEDS.items()
            for asset, name, judgement in (
                ("trades", "lag", checks.lag_p99(conn, now, exchange)),
                ("live_books", "not_crossed", checks.not_crossed(conn, exchange)),
                ("live_prices", "complementary", checks.complementary(conn, exchange)),
                ("book_events", "no_open_gap", checks.no_open_gaps(conn, exchange)),
            )
        }
        judged |= {
            dg.AssetCheckKey(dg.AssetKey(asset), name): judgement
            for asset, name, judgement in (
                ("markets", "nothing_refused", checks.nothing_refused(conn, now)),
                ("trades", "quality_passes", checks.quality_passes(conn, settings.get().quality_every_s)),
            )
        }
    for key, judgement in judged.items():
        if key in wanted:
            yield dg.AssetCheckResult(asset_key=key.asset_key, check_name=key.name, **check_fields(judgement))


def result(asset: str, name: str, judgement: Judgement) -> dg.AssetCheckResult:
    """Convert a judgement of an asset into Dagster's check result."""
    return dg.AssetCheckResult(asset_key=asset, check_name=name, **check_fields(judgement))


def check_fields(judgement: Judgement) -> dict[str, Any]:
    """Return the arguments that a check's result and its evaluation share."""
    return {
        "passed": judgement.holds,
        "severity": dg.AssetCheckSeverity.WARN if judgement.severity == "warn" else dg.AssetCheckSeverity.ERROR,
        "description": judgement.summary,
        "metadata": {
            figure: dg.MetadataValue.timestamp(value) if isinstance(value, datetime) else value
            for figure, value in judgement.figures.items()
        },
    }


job = dg.define_asset_job(
    "freshness",
    # Without the one that restores a whole base backup.
    selection=dg.AssetSelection.all_asset_checks()
    - dg.AssetSelection.checks(dg.AssetCheckKey(dg.AssetKey("base_backups"), "restore_check")),
    description="All checks on their own; `aggregates` includes them each minute.",
    tags={"dagster/max_runtime": "300"},
)
