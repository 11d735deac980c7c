"""Markets: which ones an exchange lists, which it has closed, and what changed; assets, a job and a sensor for each."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import dagster as dg
import psycopg

from config import exchanges, settings
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import mark_failed, unfinished
from orchestration.markets.discovery import Discovery, DiscoveryState, due, quarantine, stage_of
from orchestration.resources import Database, Exchange
from sql.queries import catalogue as queries
from sql.queries import feed
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.polymarket.gamma.client import Gamma
from upstream.polymarket.gamma.listings import GammaListings
from upstream.transport.errors import RefusedObject, UpstreamError
from upstream.transport.http import Client
from upstream.transport.listings import Listings
from upstream.transport.reach import reach_failure

GRACE_S = 60.0  # max start-up time of a process on a busy machine
SILENT_S = 15.0  # max time without the lock: between two assets of a run, and at its end
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=30), warn_window=timedelta(minutes=15))

Open = Callable[[Exchange, Client, Callable[[RefusedObject], None]], Listings]


def polymarket(exchange: Exchange, client: Client, on_refused: Callable[[RefusedObject], None]) -> Listings:
    """Open Polymarket's listing."""
    return GammaListings(Gamma(client, exchange.gamma_url, on_refused=on_refused))


def kalshi(exchange: Exchange, client: Client, on_refused: Callable[[RefusedObject], None]) -> Listings:
    """Open Kalshi's listing, which needs no key."""
    return KalshiListings(Kalshi(client, exchange.kalshi_url, on_refused=on_refused))


@contextmanager
def discovery(database: Database, exchange: Exchange, listings: Open = polymarket) -> Iterator[Discovery]:
    """Open a discovery's connections for a block, and hold the lock that shows that a scan is under way."""
    with database.connection(autocommit=True, name="presage discovery") as conn, Client(total_s=30.0) as client:
        listed = listings(exchange, client, partial(quarantine, conn))
        stage = stage_of(listed.exchange)
        queries.begin_walk(conn, name=stage)
        try:
            yield Discovery(conn, listed, settings.get())
        except UpstreamError as fault:
            feed.hinder(conn, stage=stage, reason=reach_failure(fault))
            raise


def scan_metadata(walks: Discovery, walk: str, seconds: float) -> dict[str, dg.MetadataValue]:
    """Return what a run has done, as metadata for its page and for the asset's plots."""
    report, counts = walks.report, walks.listings.client.counts
    active, closed, resolved = queries.counts(walks.conn, exchange=walks.listings.exchange)
    return {
        "dagster/row_count": dg.MetadataValue.int(active + closed + resolved),
        "walk": dg.MetadataValue.text(walk),
        "rows": dg.MetadataValue.int(report.rows),
        "inserted": dg.MetadataValue.int(report.stored.inserted),
        "changed": dg.MetadataValue.int(report.stored.changed),
        "status_changes": dg.MetadataValue.int(report.stored.status_changes),
        "refused": dg.MetadataValue.int(report.stored.refused),
        "active": dg.MetadataValue.int(active),
        "closed": dg.MetadataValue.int(closed),
        "resolved": dg.MetadataValue.int(resolved),
        "pages": dg.MetadataValue.int(report.pages),
        "requests": dg.MetadataValue.int(counts.requests),
        "retries": dg.MetadataValue.int(counts.retries),
        "seconds": dg.MetadataValue.float(round(seconds, 3)),
        "source": dg.MetadataValue.text(walks.settings.source),
        "samples": dg.MetadataValue.md(_samples(walks)),
    }


def _samples(walks: Discovery) -> str:
    lines = ["| market | state | price | volume, USD | ends |", "| --- | --- | ---: | ---: | --- |"]
    for market in walks.report.head:
        row = market.row()
        price = f"{row['outcome_prices'][0] / 1e6:.3f}" if row["outcome_prices"] else ""
        volume = f"{row['volume_usd'] / 1e6:,.0f}" if row["volume_usd"] is not None else ""
        question = str(row["question"]).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {question} | {row['status']} | {price} | {volume} | {row['end_time'] or ''} |")
    return "\n".join(lines)


class ExchangeCatalogue(NamedTuple):
    """What Dagster runs for an exchange's catalogue."""

    markets: dg.AssetsDefinition
    closed_markets: dg.AssetsDefinition
    job: Any
    """What `dg.define_asset_job` returns; Dagster does not export its class."""
    sensor: dg.SensorDefinition


def catalogue_of(exchange_: exchanges.Exchange, listings: Open, prefix: str = "") -> ExchangeCatalogue:
    """Return an exchange's assets, their job and its sensor; `prefix` is that of the assets' names."""
    stage, name = stage_of(exchange_.name), exchange_.title
    kinds = {exchange_.name, "postgres"}

    def opened(database: Database, exchange: Exchange) -> AbstractContextManager[Discovery]:
        return discovery(database, exchange, listings)

    @dg.asset(
        name=f"{prefix}markets",
        group_name="catalogue",
        kinds=kinds,
        description=f"Every market of {name}, one row each: question, outcomes, tokens, state. All open ones are "
        "scanned every ten minutes, new and ended ones checked each minute; a page is served as soon as it has "
        "arrived.",
        freshness_policy=FRESH,
    )
    def markets_(
        context: dg.AssetExecutionContext, database: Database, exchange: Exchange
    ) -> dg.MaterializeResult[None]:
        """Run the scan that is due; if none is due (a run started by hand), check for changes."""
        began = time.monotonic()
        with opened(database, exchange) as walks:
            walk = due(walks.state, datetime.now(UTC), settings.get()) or "changes"
            context.log.info("walk: %s", walk)
            if walk == "full":
                walks.scan_open()
            else:
                walks.look()
            return dg.MaterializeResult(metadata=scan_metadata(walks, walk, time.monotonic() - began))

    @dg.asset(
        name=f"{prefix}closed_markets",
        group_name="catalogue",
        kinds=kinds,
        deps=[markets_],
        freshness_policy=FRESH,
        description=f"Markets that {name} has closed, in the same table: what it keeps of its history is scanned once, "
        "some seconds per run, then the markets closed since the last check.",
    )
    def closed_markets_(
        context: dg.AssetExecutionContext, database: Database, exchange: Exchange
    ) -> dg.MaterializeResult[None]:
        """Continue the scan of closed markets where the last run stopped."""
        began = time.monotonic()
        with opened(database, exchange) as walks:
            walk = "history" if walks.state.history_until is None else "closed since"
            walks.scan_closed()
            context.log.info("walk: %s", walk)
            return dg.MaterializeResult(metadata=scan_metadata(walks, walk, time.monotonic() - began))

    job_ = dg.define_asset_job(
        stage,
        selection=dg.AssetSelection.assets(markets_, closed_markets_).without_checks(),
        description=f"Scans {name}'s catalogue: open markets, changes, and a further part of its history.",
        tags={"dagster/max_runtime": "1800", "dagster/priority": "5"},
    )

    @dg.sensor(
        name=f"{stage}_due",
        job=job_,
        minimum_interval_seconds=5,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Starts a scan as soon as one is due: at once on an empty database, later by the settings' "
        "intervals. A run whose process is gone holds no lock in the database; it is marked as failed and replaced.",
    )
    def due_(context: dg.SensorEvaluationContext, database: Database) -> dg.SensorResult | dg.SkipReason:
        """Start one scan at a time."""
        now, configured = datetime.now(UTC), settings.get()
        with database.connection(autocommit=True, name=f"presage {stage}_due") as conn:
            if not _is_on(conn, exchange_, configured.exchange_names):
                return dg.SkipReason(off(exchange_))
            state, walking = DiscoveryState.read(conn, exchange_.name), queries.walking(conn, name=stage)
        suspects: dict[str, float] = json.loads(context.cursor) if context.cursor else {}
        runs = unfinished(context.instance, stage)
        dead, suspects = dead_runs(runs, suspects, now.timestamp(), walking=walking)
        for run_id in dead:
            mark_failed(context.instance, run_id, f"no scan under way for {SILENT_S:.0f} s")
        coming = [run for run in runs if run.run_id not in dead]
        walk = due(state, now, configured)
        summary = (
            f"full scan {_ago(state.full_at, now)}, changes {_ago(state.looked_at, now)}, marked failed {len(dead)}"
        )
        if coming:
            return dg.SensorResult(skip_reason=f"{coming[0].status.lower()}: {summary}", cursor=json.dumps(suspects))
        if walk is None:
            return dg.SensorResult(skip_reason=f"nothing due: {summary}", cursor=json.dumps(suspects))
        request = dg.RunRequest(run_key=f"{walk} {now.isoformat(timespec='seconds')}", tags={"presage/walk": walk})
        return dg.SensorResult(run_requests=[request], cursor=json.dumps(suspects))

    return ExchangeCatalogue(markets_, closed_markets_, job_, due_)


def _is_on(conn: psycopg.Connection, exchange: exchanges.Exchange, names: Sequence[str]) -> bool:
    """Return whether an exchange is configured; its stage says so if it is not."""
    is_on = exchange.name in names
    if is_on:
        feed.switch_on(conn, stage=stage_of(exchange.name))
    else:
        feed.switch_off(conn, stage=stage_of(exchange.name), why=off(exchange))
    return is_on


def off(exchange: exchanges.Exchange) -> str:
    """Return why an exchange's catalogue is not read."""
    return f"{exchange.title} is not configured: add {exchange.name} to PRESAGE_EXCHANGES"


def dead_runs(
    runs: Sequence[Run], suspects: Mapping[str, float], now: float, *, walking: bool
) -> tuple[set[str], dict[str, float]]:
    """Return dead runs and suspects: a started run that stays without the scan's lock has no process any more."""
    suspected = {
        run.run_id: suspects.get(run.run_id, now)
        for run in runs
        if not walking and run.status != "QUEUED" and now - run.since > GRACE_S
    }
    dead = {run_id for run_id, since in suspected.items() if now - since >= SILENT_S}
    return dead, {run_id: since for run_id, since in suspected.items() if run_id not in dead}


def _ago(instant: datetime | None, now: datetime) -> str:
    return "never" if instant is None else f"{(now - instant).total_seconds():.0f} s ago"


markets, closed_markets, job, discovery_due = catalogue_of(exchanges.POLYMARKET, polymarket)
kalshi_markets, kalshi_closed_markets, kalshi_job, kalshi_discovery_due = catalogue_of(
    exchanges.KALSHI, kalshi, prefix="kalshi_"
)
