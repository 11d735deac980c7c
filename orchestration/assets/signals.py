"""Signals: computed each minute, and recomputed for past days."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from config import settings
from orchestration.candles import aggregates
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import REPEATED_TAG, unfinished
from orchestration.resources import Database
from orchestration.signals import again, definitions, passes
from sql.queries import signals as queries

FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=10), warn_window=timedelta(minutes=3))
LATELY = timedelta(days=1)


@dg.asset(
    deps=["trades", "quotes", "book_events", "candles_1h"],
    description="Notable market events: one row per signal, of a market, a type and a minute. Each minute is analysed "
    "once, five seconds after its end; missed minutes are caught up with. docs/signals.md defines each "
    "type.",
    group_name="analysis",
    kinds={"timescaledb"},
    freshness_policy=FRESH,
)
def signals(database: Database) -> dg.MaterializeResult[None]:
    """Analyse the minutes that have ended."""
    began, now = time.monotonic(), datetime.now(UTC)
    with database.connection(autocommit=True, name="presage analysis") as conn:
        passed = passes.analyse(conn, now)
        of_a_day = dict(queries.counts(conn, since=now - LATELY))
        strongest = list(queries.strongest(conn, since=now - LATELY, most=10))
    metadata: dict[str, Any] = {
        "dagster/row_count": sum(passed.found.values()),
        "minutes": passed.minutes,
        "behind_min": passed.behind,
        "markets": passed.markets,
        "slowest_minute_s": round(passed.slowest_s, 3),
        "seconds": round(time.monotonic() - began, 3),
        "last_24h": of_a_day,
        "strongest": dg.MetadataValue.md(_table(strongest)),
        **{type_: passed.found[type_] for type_ in definitions.DEFINITIONS},
    }
    if passed.until is not None:
        metadata["until"] = dg.MetadataValue.timestamp(passed.until)
    return dg.MaterializeResult(metadata=metadata)


job = dg.define_asset_job(
    "analysis",
    selection=dg.AssetSelection.assets(signals).without_checks(),
    description="Each minute: signals.",
    tags={"dagster/max_runtime": "300", "dagster/priority": "5", REPEATED_TAG: "yes"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a pass as soon as a minute has ended and its data is in.",
)
def analysis_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Start one pass at a time."""
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage analysis_due") as conn:
        until, looked = queries.clocks(conn)
        ingested = queries.ingested_until(conn)
    why = reason_to_wait(until, looked, ingested, now, runs=unfinished(context.instance, job.name))
    if why is not None:
        return dg.SkipReason(why)
    return dg.RunRequest(run_key=f"analysis {now.isoformat(timespec='seconds')}")


def reason_to_wait(
    until: datetime | None,
    looked: datetime | None,
    ingested: datetime | None,
    now: datetime,
    *,
    runs: Sequence[Run],
) -> str | None:
    """Return why no pass is due, or None."""
    if runs:
        return f"a pass is {runs[0].status.lower()}"
    if ingested is None:
        return "the feed has received nothing yet"
    if until is None or looked is None or now - looked >= aggregates.MINUTE:
        return None  # even if there is nothing new, to show that the stage is alive
    end = until + aggregates.MINUTE
    if now < end + passes.SETTLE:
        return f"the minute's end is {(end + passes.SETTLE - now).total_seconds():.0f} s away"
    return None if ingested >= end else "the feed has not received the whole minute yet"


class Day(dg.Config):
    """Configuration: how much of the day to recompute."""

    hours: float = 24.0


@dg.op(description="Recomputes the day's signals from the stored data, with the parameters in force then.")
def recompute(context: dg.OpExecutionContext, database: Database, config: Day) -> None:
    """Recompute the signals of a past day."""
    day = context.partition_time_window.start
    with database.connection(autocommit=True, name="presage analysis again") as conn:
        done = again.recompute(
            conn,
            day,
            span=timedelta(hours=config.hours),
            kept_since=datetime.now(UTC) - timedelta(days=settings.get().books_retention_days),
            report=lambda at: context.log.info("up to %s", at.isoformat(timespec="minutes")),
        )
    context.add_output_metadata(
        {
            "added": done.added,
            "taken_out": done.taken_out,
            "minutes_of_other_editions": done.other_editions,
            **done.found,
        }
    )


@dg.job(
    partitions_def=dg.DailyPartitionsDefinition(start_date="2024-01-01"),
    description="Signals of a past day, recomputed from stored data: includes late data and minutes that analysis "
    "missed. On the same data it changes nothing.",
    tags={"dagster/priority": "-5", "dagster/max_runtime": "14400"},
)
def signals_of_a_day() -> None:
    """Recompute the signals of the partition's day."""
    recompute()


def _table(rows: list[tuple[Any, ...]]) -> str:
    lines = ["| at | type | market | value | threshold | score |", "| --- | --- | --- | ---: | ---: | ---: |"]
    for ts, type_, question, value, threshold, score in rows:
        text = str(question).replace("|", "\\|").replace("\n", " ")
        lines.append(f"| {ts:%Y-%m-%d %H:%M} | {type_} | {text} | {value:g} | {threshold:g} | {score:.2f} |")
    return "\n".join(lines)
