"""Which markets of two exchanges ask the same question: judged once an hour."""

import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

import dagster as dg

from config import exchanges, settings
from orchestration.feeds.runs import unfinished
from orchestration.markets.discovery import DiscoveryState
from orchestration.resources import Database
from sql.queries import equivalents as queries

PAUSE, RETRY = timedelta(hours=1), timedelta(minutes=10)
OFF = "one exchange is configured alone: PRESAGE_EXCHANGES"


@dg.asset(
    name="equivalents",
    group_name="catalogue",
    kinds={"postgres"},
    deps=["markets", "kalshi_markets"],
    description="Open markets of both exchanges with similar titles, and whether they ask the same question: verdicts "
    "by the clauses of their texts, judged again when a text or the rules change.",
    freshness_policy=dg.FreshnessPolicy.time_window(fail_window=timedelta(hours=6), warn_window=timedelta(hours=3)),
)
def equivalents(context: dg.AssetExecutionContext, database: Database) -> dg.MaterializeResult[None]:
    """Pair open markets, and judge the pairs that are due."""
    from orchestration.equivalents import passes  # noqa: PLC0415 (brings rapidfuzz along)

    began = time.monotonic()
    with database.connection(autocommit=True, name="presage equivalents") as conn:
        report = passes.compare(conn)
        counts, lapsed = dict(queries.counts(conn)), queries.lapsed(conn)
    context.log.info("%s candidates, %s judged", report.candidates, report.judged)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(counts.values()),
            **asdict(report),
            "wait_for_an_operator": lapsed,
            **{f"pairs_{verdict}": number for verdict, number in counts.items()},
            "seconds": round(time.monotonic() - began, 1),
        }
    )


job = dg.define_asset_job(
    "comparison",
    selection=dg.AssetSelection.assets(equivalents).without_checks(),
    description="Each hour: compares the open markets of both exchanges.",
    tags={"dagster/max_runtime": "1800", "dagster/priority": "-1"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a pass each hour once both catalogues have been read, and at once while pairs are left.",
)
def equivalents_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Start one pass at a time."""
    configured = settings.get().exchange_names
    if len(configured) < 2:
        return dg.SkipReason(OFF)
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage equivalents_due") as conn:
        unread = [name for name in configured if DiscoveryState.read(conn, name).full_at is None]
        state = queries.state(conn)
    if unread:
        titles = ", ".join(exchanges.EXCHANGES[name].title for name in unread)
        return dg.SkipReason(f"the catalogue has not been read yet: {titles}")
    if unfinished(context.instance, job.name):
        return dg.SkipReason("a pass is under way")
    if state is not None:
        began, ended, left = state
        if ended is None or ended < began:
            if now - began < RETRY:
                return dg.SkipReason(f"the last pass failed, and began {(now - began).total_seconds():.0f} s ago")
        elif not left and now - ended < PAUSE:
            return dg.SkipReason(f"the last pass ended {(now - ended).total_seconds():.0f} s ago")
    return dg.RunRequest(run_key=f"equivalents {now.isoformat(timespec='seconds')}")
