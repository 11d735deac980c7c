"""Backfill of the days before the installation: one run in the background, if the settings ask for days."""

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
OFF = "no backfill is configured: set PRESAGE_BACKFILL_DAYS"
RUN_TIMEOUT_S = 180.0
MAX_READY_WAIT_S, POLL_S = 120.0, 0.5  # max wait for the feeds, which start beside the run


class BackfillConfig(dg.Config):
    """Configuration of a backfill run."""

    days: int


@dg.op(description="Backfills day after day, newest first; completed steps are skipped.")
def fill_in(context: dg.OpExecutionContext, database: Database, exchange: Exchange, config: BackfillConfig) -> None:
    """Continue the backfill where the last run stopped."""
    began, configured = time.monotonic(), settings.get()
    with ExitStack() as stack:
        conn = stack.enter_context(database.connection(autocommit=True, name="presage back-fill of days"))
        client = stack.enter_context(coverage.exchange_client(exchange))
        state = _begin(conn, config.days) if queries.try_alone(conn) else None
        if state is None:
            context.log.info("another run is backfilling, or the feeds have received nothing yet")
            return
        rpc, ranges = None, None
        if chain.urls(configured):
            contracts = chain.followed(configured)
            rpc, second = stack.enter_context(chain.open_clients(configured))
            # History is not published to the stream, however recent it is.
            ranges = Ranges(Writer(conn, contracts, publish_within_s=0), rpc, contracts, second=second)
        work = backfill.Backfill(
            conn,
            client,
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


def _begin(conn: psycopg.Connection[Any], days: int) -> backfill.BackfillState | None:
    """Wait for the feeds, then return the stored state, or start a new one; None if the feeds are not ready."""
    until = time.monotonic() + MAX_READY_WAIT_S
    while time.monotonic() < until:
        live = feed_queries.is_up(conn, family=LIVE)
        chained = not chain.urls(settings.get()) or settlement_queries.heads(conn, feed=FEED) is not None
        if live and chained and (state := backfill.begun(conn, days)) is not None:
            return state
        time.sleep(POLL_S)
    return None


@dg.job(
    name="backfill",
    description="Backfill of the days before the installation: trades from the exchange's list, settlements from the "
    "chain, signals from both; newest day first, in the time that the live feed leaves.",
    tags={"dagster/priority": "-2", "dagster/max_runtime": "604800"},
)
def job() -> None:
    """Backfill the remaining steps."""
    fill_in()


@dg.sensor(
    job_name=job.name,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts the backfill once a live run exists, if PRESAGE_BACKFILL_DAYS requests days that have not been "
    "backfilled.",
)
def backfill_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Start one backfill run at a time, until all steps are done."""
    configured = settings.get()
    if not configured.backfill_days:
        return dg.SkipReason(OFF)
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage backfill_due") as conn:
        state = backfill.BackfillState.read(conn)
        followed = feed_queries.has_begun(conn, family=LIVE)
        beat_at = queries.beat_at(conn)
    runs = unfinished(context.instance, job.name)
    why = reason_to_wait(state, configured.backfill_days, now, runs=runs, beat_at=beat_at, followed=followed)
    if why is not None:
        return dg.SkipReason(why)
    work = BackfillConfig(days=configured.backfill_days)
    return dg.RunRequest(
        run_key=f"backfill {now.isoformat(timespec='seconds')}",
        run_config=dg.RunConfig(ops={"fill_in": work}),
    )


def reason_to_wait(
    state: backfill.BackfillState | None,
    days: int,
    now: datetime,
    *,
    runs: Sequence[Run],
    beat_at: datetime | None,
    followed: bool,
) -> str | None:
    """Return why no run is due, or None. A run without a recent heartbeat does not count: its process may be gone."""
    if not followed:
        return "the live feed comes first"
    if state is not None and state.finished_at is not None and state.days >= days:
        return f"{state.days} days have been filled in"
    lately = [run for run in runs if now.timestamp() - run.since < RUN_TIMEOUT_S]
    if lately or (runs and beat_at is not None and (now - beat_at).total_seconds() < RUN_TIMEOUT_S):
        return f"a run is {runs[0].status.lower()}"
    return None
