"""Aggregates computed from the trades each minute: candles, 24-hour statistics, the ranking."""

import json
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from config import settings
from orchestration.assets import backups, quality
from orchestration.candles import activity, aggregates
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import REPEATED_TAG, unfinished
from orchestration.maintenance import anchors
from orchestration.resources import Database
from sql.queries import aggregates as queries
from sql.queries import backfill as backfill_queries
from sql.queries import feed

PAUSE_S = 55.0  # with the tick's own 5 s: each minute
DUE_S = 60.0  # for hours with late trades; the next pass handles the rest
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=10), warn_window=timedelta(minutes=3))
GROUP, KINDS = "aggregates", {"timescaledb"}


@dg.multi_asset(
    name="candles",
    specs=[
        dg.AssetSpec(
            "candles_1m",
            deps=["trades"],
            description="Open, high, low, close and volume of each outcome and minute with trades. Kept for ever, and "
            "always complete: what is not materialised yet is computed when read.",
            group_name=GROUP,
            kinds=KINDS,
            freshness_policy=FRESH,
        ),
        dg.AssetSpec(
            "candles_1h",
            deps=["candles_1m"],
            description="The same per hour, computed from the minutes.",
            group_name=GROUP,
            kinds=KINDS,
            freshness_policy=FRESH,
        ),
    ],
)
def candles(database: Database) -> Iterator[dg.MaterializeResult[None]]:
    """Materialise candles that trades may have changed; on the Apache licence, triggers do so with each commit."""
    began, now = time.monotonic(), datetime.now(UTC)
    kept = timedelta(days=settings.get().trades_retention_days)
    with database.connection(autocommit=True, name="presage aggregates") as conn:
        refreshed = {name: (start, end) for name, start, end in aggregates.refresh_candles(conn, now, kept=kept)}
        due = aggregates.refresh_due(conn, now, kept=kept, should_stop=lambda: time.monotonic() - began > DUE_S)
        lately = queries.candles_lately(conn, minutes_since=now - aggregates.HOUR, hours_since=now - aggregates.DAY)
        newest = queries.newest_bucket(conn, since=now - aggregates.HOUR)
    for name, span, rows in zip(("candles_1m", "candles_1h"), ("last hour", "last 24 hours"), lately, strict=True):
        metadata: dict[str, Any] = {span: rows, "seconds": round(time.monotonic() - began, 3)}
        if newest is not None:
            metadata["newest_bucket"] = dg.MetadataValue.timestamp(newest)
        if name in refreshed:
            start, end = refreshed[name]
            metadata |= {
                "refreshed": f"{start:%Y-%m-%d %H:%M} … {end:%H:%M} UTC",
                "late_hours_refreshed": due.refreshed,
                "late_hours_left": due.left,
            }
        yield dg.MaterializeResult(asset_key=name, metadata=metadata)


@dg.asset(
    deps=["candles_1m", "candles_1h"],
    description="The last 24 hours of each outcome with trades, one row each: open, high, low, close, volume. "
    "`window_end` is the end of the window; unchanged rows are rewritten every five minutes only.",
    group_name=GROUP,
    kinds=KINDS,
    freshness_policy=FRESH,
)
def market_stats_24h(database: Database) -> dg.MaterializeResult[None]:
    """Compute the 24-hour window that ends with the running minute."""
    began, now = time.monotonic(), datetime.now(UTC)
    with database.connection(name="presage aggregates") as conn:
        stats = aggregates.compute_stats(conn, now)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": stats.outcomes,
            "written": stats.written,
            "gone": stats.gone,
            "seconds": round(time.monotonic() - began, 3),
        }
    )


@dg.asset(
    deps=[market_stats_24h, "trades", "quotes", "live_prices"],
    description="Each market's recent activity: USD and trades of an hour, a day and a week, how far the last hour "
    "stands out, how far the price has moved. The source of market lists; also counts the markets of each "
    "category, tag and series.",
    group_name=GROUP,
    kinds=KINDS,
    freshness_policy=FRESH,
)
def market_activity(database: Database) -> dg.MaterializeResult[None]:
    """Update each market's activity; names are counted only every few minutes."""
    began, now = time.monotonic(), datetime.now(UTC)
    with database.connection(name="presage aggregates") as conn:
        passed = activity.bring_up_to_date(conn, now)
    metadata: dict[str, Any] = {
        "dagster/row_count": passed.markets,
        "written": passed.written,
        "gone": passed.gone,
        "seconds": round(time.monotonic() - began, 3),
    }
    if passed.names is not None:
        metadata["names_counted"] = passed.names
    return dg.MaterializeResult(metadata=metadata)


@dg.asset(
    deps=[market_stats_24h, "live_prices"],
    description="Markets with activity in the last 24 hours, most traded first, then by the newest activity. Each pass "
    "writes a new generation, kept for an hour, so that a client's cursor paginates over a fixed order.",
    group_name=GROUP,
    kinds=KINDS,
    freshness_policy=FRESH,
)
def market_rankings(database: Database) -> dg.MaterializeResult[None]:
    """Write a new generation of the ranking, and touch the stage's clock."""
    began, now = time.monotonic(), datetime.now(UTC)
    with database.connection(name="presage aggregates") as conn:
        generation, ranked = aggregates.rank(conn, now)
        head = list(queries.top(conn, most=10))
        newest = queries.newest_bucket(conn, since=now - aggregates.HOUR)
        detail = {"generation": generation, "ranked": ranked, "newest_bucket": newest and newest.isoformat()}
        feed.beat(conn, stage="aggregates", last_data_at=now, detail=json.dumps(detail))
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": ranked,
            "generation": dg.MetadataValue.timestamp(now),
            "seconds": round(time.monotonic() - began, 3),
            "most_traded": dg.MetadataValue.md(_table(head)),
        }
    )


def _table(head: list[tuple[Any, ...]]) -> str:
    lines = ["| # | market | 24 h, USD | trades | last |", "| ---: | --- | ---: | ---: | ---: |"]
    for place, question, value, trades, close in head:
        text = str(question).replace("|", "\\|").replace("\n", " ")
        lines.append(
            f"| {place} | {text} | {(value or 0) / 1e6:,.2f} | {trades or 0} | {'' if close is None else close / 1e6} |"
        )
    return "\n".join(lines)


@dg.asset(
    deps=["live_books"],
    description="Snapshots of live books, each stored again after five minutes if it has changed: the book of any past "
    "moment is built from the last full one before it.",
    group_name=GROUP,
    kinds=KINDS,
    freshness_policy=FRESH,
)
def book_anchors(database: Database) -> dg.MaterializeResult[None]:
    """Store the book snapshots that are due."""
    began = time.monotonic()
    with database.connection(name="presage aggregates") as conn:
        kept = anchors.keep(conn)
    return dg.MaterializeResult(metadata={"kept": kept, "seconds": round(time.monotonic() - began, 3)})


# The checks of every stage run in the same job: starting a run costs more than all of them. Data-quality checks take
# longer and have their own job.
job = dg.define_asset_job(
    "aggregates",
    selection=(
        dg.AssetSelection.assets(candles, market_stats_24h, market_activity, market_rankings, book_anchors)
        | dg.AssetSelection.all_asset_checks()
    )
    - dg.AssetSelection.checks(quality.quality_checks, backups.restore_check),
    description="Each minute: candles, 24-hour statistics, activity, the ranking, and every stage's checks.",
    tags={"dagster/max_runtime": "300", "dagster/priority": "5", REPEATED_TAG: "yes"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a pass each minute, the first once there are prices; a schedule would wait for the clock.",
)
def aggregates_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Start one pass at a time, a minute apart."""
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage aggregates_due") as conn:
        last, prices = queries.last_pass(conn), queries.any_price(conn)
        asked = backfill_queries.asked(conn, job=job.name)
    why = reason_to_wait(last, now, prices=prices, runs=unfinished(context.instance, job.name), asked=asked)
    if why is not None:
        return dg.SkipReason(why)
    return dg.RunRequest(run_key=f"aggregates {now.isoformat(timespec='seconds')}")


def reason_to_wait(
    last: datetime | None, now: datetime, *, prices: bool, runs: Sequence[Run], asked: datetime | None = None
) -> str | None:
    """Return why no pass is due, or None."""
    if runs:
        return f"a pass is {runs[0].status.lower()}"
    if last is None:
        return None if prices else "no prices yet"
    if asked is not None and asked > last:
        return None
    ago = (now - last).total_seconds()
    return None if ago >= PAUSE_S else f"the last pass ended {ago:.0f} s ago"
