"""The live feeds: all data from the exchanges' sockets, received by two long runs of each, of which one writes."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

import dagster as dg
import psycopg

from config import exchanges, settings, tunables
from config.exchanges import KALSHI, POLYMARKET
from orchestration.feeds.keeping import WINDOW_TAG, ensure_runs
from orchestration.feeds.reporter import OBSERVE_S, Reporter
from orchestration.feeds.runs import SHARD_TAG, execute
from orchestration.feeds.shards import Shard
from orchestration.ingest.exchanges.opening import client_of, obstacle
from orchestration.ingest.feed import LiveFeed
from orchestration.resources import Database, Exchange
from sql.queries import feed as queries

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


class ExchangeFeed(NamedTuple):
    """What Dagster runs for the live feed of an exchange."""

    asset: dg.AssetsDefinition
    job: Any
    """What `dg.define_asset_job` returns; Dagster does not export its class."""
    keeper: dg.SensorDefinition


def feed_of(exchange_: exchanges.Exchange, prefix: str = "") -> ExchangeFeed:
    """Return an exchange's feed; the names of its assets begin with `prefix`."""

    @dg.multi_asset(
        name=f"{prefix}feed",
        specs=[
            dg.AssetSpec(
                f"{prefix}{name}",
                deps=[f"{prefix}markets"],
                group_name=exchange_.own("live"),
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
        shown = {f"{prefix}{name}": figures for name, figures in SHOWN.items()}
        standby, figures = STANDBY
        reporter = Reporter(
            context, shown, (f"{prefix}{standby}", figures), {"shard": str(shard)} if shard.of > 1 else {}
        )
        feed_ = LiveFeed(
            settings.get(),
            database.url,
            client_of(exchange_, exchange),
            run_id=context.run.run_id,
            feed=exchange_.name,
            shard=shard,
            window_s=float(window_s) if window_s else None,
            observe_s=OBSERVE_S,
        )
        yield from reporter.results(execute(context, feed_, reporter.observe))

    live = dg.define_asset_job(
        exchange_.own("live"),
        # Checks would run after the feed's end, in the middle of the hand-over.
        selection=dg.AssetSelection.assets(feed).without_checks(),
        description=f"One of the two long runs that hold {exchange_.title}'s sockets: the leader writes, the standby "
        "takes over.",
        executor_def=dg.in_process_executor,
        tags={"dagster/max_retries": "0", "dagster/max_runtime": "7200", "dagster/priority": "10"},
    )

    @dg.sensor(
        name=f"{live.name}_keeper",
        job=live,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Keeps two live runs of each shard of {exchange_.title}: counts them by their leases, which each "
        "renews every second, marks runs without a process as failed, and starts missing ones.",
    )
    def keeper(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult:
        """Start runs according to leases, never to the status of runs, which outlives their process."""
        configured = settings.get()
        why = obstacle(exchange_, configured)
        with database.connection(autocommit=True, name=f"presage {live.name}_keeper") as conn:
            if not exchange_.is_default:
                _switch(conn, exchange_.own("ingestion"), why)
            shards = int(tunables.value(conn, "live_shards")) or configured.usual_shards
            if exchange_.is_default:  # the others have as many
                queries.want_shards(conn, shards=shards)
        if why:
            return dg.SensorResult(skip_reason=why, cursor=context.cursor)
        return ensure_runs(
            context,
            database,
            feed=exchange_.name,
            job=live.name,
            window_s=configured.live_window_s,
            shards=shards,
            hosted=True,
        )

    return ExchangeFeed(feed, live, keeper)


def _switch(conn: psycopg.Connection, stage: str, why: str) -> None:
    if why:
        queries.switch_off(conn, stage=stage, why=why)
    else:
        queries.switch_on(conn, stage=stage)


feed, job, live_keeper = feed_of(POLYMARKET)
kalshi_feed, kalshi_job, live_kalshi_keeper = feed_of(KALSHI, prefix="kalshi_")
