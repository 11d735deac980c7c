"""The live feed: all data from the exchange's sockets, received by two long runs, of which one writes."""

from collections.abc import Iterator, Mapping
from datetime import timedelta

import dagster as dg

from config import settings, tunables
from orchestration.feeds.keeping import WINDOW_TAG, ensure_runs
from orchestration.feeds.reporter import OBSERVE_S, Reporter
from orchestration.feeds.runs import SHARD_TAG
from orchestration.feeds.shards import Shard
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.feed import LiveFeed
from orchestration.resources import Database, Exchange
from sql.queries import feed as queries

FEED = "polymarket"

# Each asset shows the feed figures that belong to it.
LAG = ("lag_p50_ms", "lag_p99_ms", "lag_max_ms")
SHOWN: Mapping[str, tuple[str, ...]] = {
    "trades": ("trades", "messages_since", "rows_since", "backlog_events", "repeats", "refused", *LAG),
    "quotes": ("quotes", *LAG),
    "book_events": ("events", "rows_since", *LAG),
    "live_prices": ("tokens", "messages_since", *LAG),
    "live_books": ("tokens", "sockets", "mismatches", "reanchored", "reconnects", "database_faults"),
    "stream_events": ("told", "rows_since"),
}
STANDBY = "live_books", ("tokens", "sockets", "messages_since", "backlog_events")
DESCRIPTIONS = {
    "trades": "All trades: each one once, whether received by one run, by both, or from the exchange's own list.",
    "quotes": "Best bid and ask of each outcome, one row per instant at which they changed.",
    "book_events": "Every book snapshot and every change of a level: any past book can be rebuilt from them.",
    "live_prices": "The newest price of each outcome, one row each.",
    "live_books": "The newest book of each outcome, one row each; served while it agrees with the exchange's best.",
    "stream_events": "Messages to stream subscribers, numbered without gaps; kept for a day for resuming.",
}


@dg.multi_asset(
    name="feed",
    specs=[
        dg.AssetSpec(
            name,
            deps=["markets"],
            group_name="live",
            kinds={"websocket", "timescaledb"},
            description=description,
            freshness_policy=dg.FreshnessPolicy.time_window(
                fail_window=timedelta(minutes=12), warn_window=timedelta(minutes=8)
            ),
            skippable=True,
        )
        for name, description in DESCRIPTIONS.items()
    ],
)
def feed(
    context: dg.AssetExecutionContext, database: Database, exchange: Exchange
) -> Iterator[dg.MaterializeResult[None]]:
    """Lead a shard of the feed or stand by, until the window is over and a successor is ready."""
    shard = Shard.parse(context.run.tags.get(SHARD_TAG, "1 of 1"))
    window_s = context.run.tags.get(WINDOW_TAG)
    reporter = Reporter(context, SHOWN, STANDBY, {"shard": str(shard)} if shard.of > 1 else {})
    totals = LiveFeed(
        settings.get(),
        database.url,
        ExchangeClient(
            exchange.gamma_url, exchange.clob_url, exchange.clob_socket_url, exchange.data_api_url, exchange.source
        ),
        run_id=context.run.run_id,
        feed=FEED,
        shard=shard,
        window_s=float(window_s) if window_s else None,
        observe_s=OBSERVE_S,
    ).run(observe=reporter.observe)
    yield from reporter.results(totals)


job = dg.define_asset_job(
    "live",
    # Checks would run after the feed's end, in the middle of the hand-over.
    selection=dg.AssetSelection.assets(feed).without_checks(),
    description="One of the two long runs that hold the exchange's sockets: the leader writes, the standby takes over.",
    executor_def=dg.in_process_executor,
    tags={"dagster/max_retries": "0", "dagster/max_runtime": "7200", "dagster/priority": "10"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Keeps two live runs of each shard: counts them by their leases, which each renews every second, marks "
    "runs without a process as failed, and starts missing ones.",
)
def live_keeper(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult:
    """Start runs according to leases, never to the status of runs, which outlives their process."""
    configured = settings.get()
    with database.connection(autocommit=True, name="presage live_keeper") as conn:
        shards = int(tunables.value(conn, "live_shards")) or configured.usual_shards
        queries.want_shards(conn, shards=shards)
    return ensure_runs(
        context, database, feed=FEED, job=job.name, window_s=configured.live_window_s, shards=shards, hosted=True
    )
