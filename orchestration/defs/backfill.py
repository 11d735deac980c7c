"""The days before an installation's first: filled in by one run in the background, where days are asked for."""

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import dagster as dg

import settings
from orchestration import backfill
from orchestration.defs import coverage, markets
from orchestration.live.keeper import Run
from orchestration.resources import Database, Exchange
from orchestration.runs import unfinished
from orchestration.settlement import chain
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import FEED, Writer
from sql.queries import backfill as queries
from sql.queries import feed as feed_queries
from sql.queries import settlement as settlement_queries

LIVE = "polymarket"
OFF = "no days are asked for: set PRESAGE_BACKFILL_DAYS"
GIVEN_UP_S = 180.0


class Work(dg.Config):
    """How the run does it."""

    days: int
    nice: int = 0
    """By how much the process stands back behind others."""


@dg.op(description="Fills in day after day, the newest first; what is done already is left alone.")
def fill_in(context: dg.OpExecutionContext, database: Database, exchange: Exchange, config: Work) -> None:
    """Go on where the last run stopped."""
    began, configured = time.monotonic(), settings.get()
    if config.nice:
        os.nice(config.nice)
    with ExitStack() as stack:
        conn = stack.enter_context(database.connection(autocommit=True, name="presage back-fill of days"))
        speaking = stack.enter_context(coverage.asked(exchange))
        state = backfill.begun(conn, config.days) if queries.try_alone(conn) else None
        if state is None:
            context.log.info("another run is at it, or the live feed has brought nothing yet")
            return
        rpc, ranges = None, None
        if chain.urls(configured):
            contracts = chain.followed(configured)
            rpc, second = stack.enter_context(chain.reached(configured))
            # What is of the past is not told to the stream, however short ago it was.
            ranges = Ranges(Writer(conn, contracts, tell_within_s=0), rpc, contracts, second=second)
        work = backfill.Backfill(
            conn,
            speaking,
            state,
            books_kept=timedelta(days=configured.books_retention_days),
            rpc=rpc,
            ranges=ranges,
            report=context.log.info,
        )
        finished = work.run(lambda: markets.discovery(database, exchange))
    context.add_output_metadata(
        {
            "finished": finished,
            "trades": state.trades,
            "settlements": state.settlements,
            "signals": state.signals,
            "seconds": round(time.monotonic() - began, 1),
        }
    )


@dg.job(
    name="backfill",
    description="The days before the first: trades from the exchange's list, settlements from the chain, signals from "
    "both; the newest day first, with what the live feed leaves of the time.",
    tags={"dagster/priority": "-2", "dagster/max_runtime": "604800"},
)
def job() -> None:
    """Fill in what is left."""
    fill_in()


@dg.sensor(
    job_name=job.name,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts the back-fill once the live feed is up, where PRESAGE_BACKFILL_DAYS asks for days that have "
    "not been filled in.",
)
def backfill_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """One run at a time, until all is done."""
    configured = settings.get()
    if not configured.backfill_days:
        return dg.SkipReason(OFF)
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage backfill_due") as conn:
        state = backfill.begun(conn, configured.backfill_days)
        live = any(ready for _, _, ready, _, _, _ in feed_queries.leases(conn, feed=LIVE))
        chained = not chain.urls(configured) or settlement_queries.heads(conn, feed=FEED) is not None
        beat_at = queries.beat_at(conn)
    runs = unfinished(context.instance, job.name)
    why = wait(state, configured.backfill_days, now, runs=runs, beat_at=beat_at, ready=live and chained)
    if why is not None:
        return dg.SkipReason(why)
    work = Work(days=configured.backfill_days, nice=10)
    return dg.RunRequest(
        run_key=f"backfill {now.isoformat(timespec='seconds')}",
        run_config=dg.RunConfig(ops={"fill_in": work}),
    )


def wait(
    state: backfill.State | None,
    days: int,
    now: datetime,
    *,
    runs: Sequence[Run],
    beat_at: datetime | None,
    ready: bool,
) -> str | None:
    """Say why no run is due; a run without a sign of life for long is no reason, as its process may be gone."""
    if state is None or not ready:
        return "the feeds come first"
    if state.finished_at is not None and state.days >= days:
        return f"{state.days} days have been filled in"
    lately = [run for run in runs if now.timestamp() - run.since < GIVEN_UP_S]
    if lately or (runs and beat_at is not None and (now - beat_at).total_seconds() < GIVEN_UP_S):
        return f"a run is {runs[0].status.lower()}"
    return None
