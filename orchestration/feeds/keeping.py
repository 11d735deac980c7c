"""Two long runs of a feed, always: what the keepers' sensors do, whichever the feed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import dagster as dg

from orchestration.feeds import keeper
from orchestration.feeds.lease import OVERSTAY
from orchestration.feeds.runs import bury, finished, unfinished
from sql.queries import checks
from sql.queries import feed as queries

if TYPE_CHECKING:
    from orchestration.resources import Database

WINDOW_TAG = "presage/window_s"


def keep(
    context: dg.SensorEvaluationContext, database: Database, *, feed: str, job: str, window_s: float
) -> dg.SensorResult:
    """Start what is missing and bury what is gone: by leases, never by the status of runs, which outlives them."""
    now = datetime.now(UTC).timestamp()
    with database.connection(autocommit=True, name=f"presage keeper of {feed}") as conn:
        leases = [
            keeper.Lease(run_id, role, now - silent_s, ready=ready)
            for run_id, role, ready, _, silent_s, _ in queries.leases(conn, feed=feed)
        ]
        up_s = checks.up_s(conn)
    ended = finished(context.instance, [lease.run_id for lease in leases if now - lease.beat_at < keeper.ALIVE_S])
    decision = keeper.decide(leases, unfinished(context.instance, job), now, ended=ended, database_up_s=up_s)
    for run_id, why in decision.reap:
        bury(context.instance, run_id, why)
    if not decision.windows:
        return dg.SensorResult(skip_reason=decision.reason)
    # One a tick, the one that leaves first before the other: two that import at once would delay the first data.
    share_s = min(decision.windows) * window_s
    tags = {
        WINDOW_TAG: f"{share_s:.0f}",
        "dagster/max_runtime": f"{share_s * OVERSTAY + 300:.0f}",
        "presage/why": decision.reason,
    }
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{feed} {now:.3f}", tags=tags)])
