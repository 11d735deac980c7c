"""Webhooks: two long runs, of which one delivers, while any webhook is registered."""

import time
from collections.abc import Iterator
from datetime import timedelta

import dagster as dg

from config import settings
from orchestration.feeds.keeping import WINDOW_TAG, ensure_runs
from orchestration.feeds.reporter import MATERIALISE_S, OBSERVE_S, Reporter
from orchestration.feeds.runs import execute, unfinished
from orchestration.resources import Database
from orchestration.webhooks.feed import FEED, WebhookFeed
from sql.queries import feed as feed_queries
from sql.queries import webhooks as queries

LIVE = "polymarket"
ASSET = "webhook_deliveries"
OFF = "no webhook is enabled: POST /v1/webhooks makes one"


@dg.asset(
    name=ASSET,
    group_name="delivery",
    kinds={"webhook"},
    deps=["trades", "settlements", "signals", "markets"],
    freshness_policy=dg.FreshnessPolicy.time_window(
        fail_window=timedelta(minutes=12), warn_window=timedelta(minutes=8)
    ),
    output_required=False,
    description="Events sent to webhooks, one row per webhook and event, with every attempt.",
)
def webhook_deliveries(context: dg.AssetExecutionContext, database: Database) -> Iterator[dg.MaterializeResult[None]]:
    """Deliver or stand by, until the window is over and a successor is ready."""
    window_s = context.run.tags.get(WINDOW_TAG)
    reporter = Reporter(context, {ASSET: ()}, (ASSET, ()))
    feed = WebhookFeed(
        settings.get(),
        database.url,
        run_id=context.run.run_id,
        window_s=float(window_s) if window_s else None,
        observe_s=OBSERVE_S,
    )
    yield from reporter.results(execute(context, feed, reporter.observe))


job = dg.define_asset_job(
    "delivery",
    selection=dg.AssetSelection.assets(webhook_deliveries).without_checks(),
    description="One of the two long runs that deliver webhooks: the leader delivers, the standby takes over.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_retries": "0", "dagster/max_runtime": "7200", "dagster/priority": "7"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps two delivery runs, by their leases, while a webhook is enabled; after the live feed's.",
)
def delivery_keeper(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult | dg.SkipReason:
    """Start runs as the other feeds' keepers do."""
    with database.connection(autocommit=True, name="presage delivery_keeper") as conn:
        if not queries.wanted(conn):
            queries.switch_off(conn, why=OFF)
            return _idle(context)
        queries.switch_on(conn)
        live_is_up = feed_queries.is_up(conn, family=LIVE)
    if not live_is_up and unfinished(context.instance, "live"):
        return dg.SkipReason("the live feed comes first")
    return ensure_runs(context, database, feed=FEED, job=job.name, window_s=settings.get().webhook_window_s)


def _idle(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Report the asset as fresh: without webhooks nothing is waiting."""
    said_at = float(context.cursor or 0)
    if time.time() - said_at < MATERIALISE_S:
        return dg.SkipReason(OFF)
    return dg.SensorResult(
        skip_reason=OFF,
        cursor=f"{time.time():.0f}",
        asset_events=[dg.AssetMaterialization(ASSET, metadata={"webhooks": 0})],
    )
