"""Keeps two long runs of a feed: shared by the keeper sensors of all feeds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from orchestration.feeds import keeper
from orchestration.feeds.lease import MAX_OVERSTAY_WINDOWS, read_leases
from orchestration.feeds.runs import finished, mark_failed, unfinished
from sql.queries import checks

if TYPE_CHECKING:
    from orchestration.resources import Database

WINDOW_TAG = "presage/window_s"


def ensure_runs(
    context: dg.SensorEvaluationContext, database: Database, *, feed: str, job: str, window_s: float
) -> dg.SensorResult:
    """Start missing runs and mark dead ones failed: by leases, not by Dagster's status, which outlives processes."""
    now = datetime.now(UTC).timestamp()
    with database.connection(autocommit=True, name=f"presage keeper of {feed}") as conn:
        leases = read_leases(conn, feed)
        up_s = checks.up_s(conn)
    ended = finished(context.instance, [lease.run_id for lease in leases if lease.fresh])
    decision = keeper.decide(leases, unfinished(context.instance, job), now, ended=ended, database_up_s=up_s)
    for run_id, why in decision.dead:
        mark_failed(context.instance, run_id, why)
    if not decision.windows:
        return dg.SensorResult(skip_reason=decision.reason)
    # One per tick, the shorter window first: two runs importing at once would delay the first data.
    share_s = min(decision.windows) * window_s
    tags = {
        WINDOW_TAG: f"{share_s:.0f}",
        "dagster/max_runtime": f"{share_s * MAX_OVERSTAY_WINDOWS + 300:.0f}",
        "presage/why": decision.reason,
    }
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{feed} {now:.3f}", tags=tags)])
