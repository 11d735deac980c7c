"""The days before an installation's first: filled in by one run in the background, where days are asked for."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg
import psycopg

from config import settings
from orchestration.assets import coverage, markets
from orchestration.coverage import backfill
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import unfinished
from orchestration.resources import Database, Exchange
from orchestration.settlement import chain
from orchestration.settlement.ranges import Ranges
from orchestration.settlement.writer import FEED, Writer
from sql.queries import backfill as queries
from sql.queries import feed as feed_queries
from sql.queries import settlement as settlement_queries

LIVE = "polymarket"
OFF = "no days are asked for: set PRESAGE_BACKFILL_DAYS"
GIVEN_UP_S = 180.0
READY_S, LOOK_S = 120.0, 0.5  # a run waits so long for the feeds, which begin beside it


class Work(dg.Config):
    """How the run does it."""

    days: int


@dg.op(description="Fills in day after day, the newest first; what is done already is left alone.")
def fill_in(context: dg.OpExecutionContext, database: Database, exchange: Exchange, config: Work) -> None:
    """Go on where the last run stopped."""
    began, configured = time.monotonic(), settings.get()
    with ExitStack() as stack:
        conn = stack.enter_context(database.connection(autocommit=True, name="presage back-fill of days"))
        speaking = stack.enter_context(coverage.asked(exchange))
        state = _begin(conn, config.days) if queries.try_alone(conn) else None
        if state is None:
            context.log.info("another run is at it, or the feeds have brought nothing yet")
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


def _begin(conn: psycopg.Connection[Any], days: int) -> backfill.State | None:
    """Wait for the feeds, then give what is remembered, or begin; None: they are not ready."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        live = any(ready for _, _, ready, _, _, _ in feed_queries.leases(conn, feed=LIVE))
        chained = not chain.urls(settings.get()) or settlement_queries.heads(conn, feed=FEED) is not None
        if live and chained and (state := backfill.begun(conn, days)) is not None:
            return state
        time.sleep(LOOK_S)
    return None


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
    description="Starts the back-fill once a live run is there, where PRESAGE_BACKFILL_DAYS asks for days that have "
    "not been filled in.",
)
def backfill_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """One run at a time, until all is done."""
    configured = settings.get()
    if not configured.backfill_days:
        return dg.SkipReason(OFF)
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage backfill_due") as conn:
        state = backfill.State.read(conn)
        followed = any(feed_queries.leases(conn, feed=LIVE))
        beat_at = queries.beat_at(conn)
    runs = unfinished(context.instance, job.name)
    why = wait(state, configured.backfill_days, now, runs=runs, beat_at=beat_at, followed=followed)
    if why is not None:
        return dg.SkipReason(why)
    work = Work(days=configured.backfill_days)
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
    followed: bool,
) -> str | None:
    """Say why no run is due; a run without a sign of life for long is no reason, as its process may be gone."""
    if not followed:
        return "the live feed comes first"
    if state is not None and state.finished_at is not None and state.days >= days:
        return f"{state.days} days have been filled in"
    lately = [run for run in runs if now.timestamp() - run.since < GIVEN_UP_S]
    if lately or (runs and beat_at is not None and (now - beat_at).total_seconds() < GIVEN_UP_S):
        return f"a run is {runs[0].status.lower()}"
    return None
