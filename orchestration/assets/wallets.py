"""Positions and leaderboards, updated from final settlements each minute."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import dagster as dg

from config import settings
from orchestration.feeds.keeper import Run
from orchestration.feeds.runs import REPEATED_TAG, unfinished
from orchestration.resources import Database
from orchestration.wallets import leaderboards, positions
from sql.queries import backfill as backfill_queries
from sql.queries import leaderboards as board_queries
from sql.queries import positions as queries

PAUSE_S = 55.0  # with the tick's own 5 s: each minute
FRESH = dg.FreshnessPolicy.time_window(fail_window=timedelta(minutes=15), warn_window=timedelta(minutes=5))
GROUP, KINDS = "wallets", {"timescaledb"}


@dg.multi_asset(
    name="positions_and_boards",
    specs=[
        dg.AssetSpec(
            "wallet_positions",
            deps=["settlements", "wallet_fills", "ledger_entries"],
            description="Each wallet's holding of each token, its average cost, and the realized profit. Each final "
            "row is added once; positions whose past has changed are recomputed.",
            group_name=GROUP,
            kinds=KINDS,
            freshness_policy=FRESH,
            skippable=True,
        ),
        dg.AssetSpec(
            "leaderboards",
            deps=["wallet_positions"],
            description="The hundred wallets that traded most in a day, 7 days, 30 days and overall, and those that "
            "earned most.",
            group_name=GROUP,
            kinds=KINDS,
            freshness_policy=FRESH,
            skippable=True,
        ),
    ],
)
def positions_and_boards(database: Database) -> Iterator[dg.MaterializeResult[None]]:
    """Update positions, then write the leaderboards."""
    began, now = time.monotonic(), datetime.now(UTC)
    kept = timedelta(days=settings.get().settlements_retention_days)
    with database.connection(autocommit=True, name="presage wallets") as conn:
        passed = positions.bring_up_to_date(conn, now, kept=kept)
        if passed.block is None:
            return
        yield dg.MaterializeResult(
            asset_key="wallet_positions",
            metadata={
                "through_block": passed.block,
                "written": passed.positions,
                "remade": passed.remade,
                "learnt": passed.learnt,
                "moved_to_bases": passed.based,
                "still_due": passed.due,
                "blocks_behind": passed.behind,
                "seconds": round(time.monotonic() - began, 3),
            },
        )
        began = time.monotonic()
        written = leaderboards.write(conn, now, asked=backfill_queries.asked(conn, job=job.name))
        head = list(board_queries.head(conn, span="7d", by="volume", most=10))
    yield dg.MaterializeResult(
        asset_key="leaderboards",
        metadata={
            "written": ", ".join(written),
            "seconds": round(time.monotonic() - began, 3),
            "7 days": dg.MetadataValue.md(_table(head)),
        },
    )


def _table(head: list[tuple[Any, ...]]) -> str:
    lines = ["| # | wallet | USD | trades | markets |", "| ---: | --- | ---: | ---: | ---: |"]
    lines += [
        f"| {rank} | {wallet} | {volume / 1e6:,.2f} | {trades} | {markets} |"
        for rank, wallet, volume, trades, markets in head
    ]
    return "\n".join(lines)


job = dg.define_asset_job(
    "wallets",
    selection=dg.AssetSelection.assets(positions_and_boards).without_checks(),
    description="Each minute: wallets' positions and leaderboards.",
    tags={"dagster/max_runtime": "300", "dagster/priority": "4", REPEATED_TAG: "yes"},
)


@dg.sensor(
    job=job,
    minimum_interval_seconds=5,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Starts a pass each minute, if a chain is followed.",
)
def wallets_due(context: dg.SensorEvaluationContext, database: Database) -> dg.RunRequest | dg.SkipReason:
    """Start one pass at a time, a minute apart."""
    now = datetime.now(UTC)
    with database.connection(autocommit=True, name="presage wallets_due") as conn:
        last, followed = queries.last_pass(conn)
        asked = backfill_queries.asked(conn, job=job.name)
    why = reason_to_wait(last, now, followed=followed, runs=unfinished(context.instance, job.name), asked=asked)
    if why is not None:
        return dg.SkipReason(why)
    return dg.RunRequest(run_key=f"wallets {now.isoformat(timespec='seconds')}")


def reason_to_wait(
    last: datetime | None, now: datetime, *, followed: bool, runs: Sequence[Run], asked: datetime | None = None
) -> str | None:
    """Return why no pass is due, or None."""
    if not followed:
        return "no chain is followed"
    if runs:
        return f"a pass is {runs[0].status.lower()}"
    if last is not None and asked is not None and asked > last:
        return None
    ago = None if last is None else (now - last).total_seconds()
    return f"the last pass ended {ago:.0f} s ago" if ago is not None and ago < PAUSE_S else None
