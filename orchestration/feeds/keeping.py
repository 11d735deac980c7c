"""Keeps two long runs of a feed, or of each of its shards: shared by the keeper sensors of all feeds."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime, time
from typing import TYPE_CHECKING

import dagster as dg

from config import settings
from orchestration.feeds import keeper
from orchestration.feeds.hosts import RUNS_A_FEED
from orchestration.feeds.lease import MAX_OVERSTAY_WINDOWS, read_leases
from orchestration.feeds.runs import SHARD_TAG, finished, mark_failed, unfinished
from orchestration.feeds.shards import WHOLE, Shard
from sql.queries import checks
from sql.queries import feed as queries

if TYPE_CHECKING:
    from orchestration.feeds.lease import LeaseRow
    from orchestration.resources import Database

WINDOW_TAG = "presage/window_s"
CLOCKS_DIFFER_S = 1.0  # at most, beyond what a lease says
AWAY_S = 20.0
"""After so long without a tick, which needs the database, leases may be silent because it was away."""


def ensure_runs(
    context: dg.SensorEvaluationContext,
    database: Database,
    *,
    feed: str,
    job: str,
    window_s: float,
    shards: int = 1,
    hosted: bool = False,
) -> dg.SensorResult:
    """Start missing runs and mark dead ones failed: by leases, not by Dagster's status, which outlives processes.

    Runs of another number of shards are left alone while they live: they leave by themselves once these are ready.
    `hosted` feeds are run by hosts with the role `feed`, if there are any: of two such hosts each replaces its own run,
    and a run is started here only while there is none, and not before they have had time to show that they are alive.
    """
    now = datetime.now(UTC).timestamp()
    since = _answering_since(context.cursor, now)
    runs: dict[Shard, list[keeper.Run]] = {shard: [] for shard in Shard.all(shards)}
    for run in unfinished(context.instance, job):
        runs.setdefault(Shard.parse(run.shard) if run.shard else WHOLE, []).append(run)
    with database.connection(autocommit=True, name=f"presage keeper of {feed}") as conn:
        leases = {shard: read_leases(conn, shard.feed(feed)) for shard in runs}
        up_s = min(checks.up_s(conn), now - since)  # after a failover the server that answers may have been up for long
        others = len(list(queries.alive_hosts(conn))) if hosted else 0
        awaited = hosted and now - since < keeper.SETTLE_S and queries.has_hosts(conn)
        led = bool(fresh := [lease.run_id for held in leases.values() for lease in held if lease.fresh])
        led = led or queries.others_lead(conn, family=feed, shards=0)
    want = 0 if awaited else 1 if others >= RUNS_A_FEED else RUNS_A_FEED
    ended = finished(context.instance, fresh)
    decisions = {
        shard: keeper.decide(
            leases[shard],
            unended,
            now,
            want if shard.of == shards else 0,
            ended=ended,
            database_up_s=up_s,
            lives=_lives,
            led=led,
        )
        for shard, unended in runs.items()
    }
    for decision in decisions.values():
        for run_id, why in decision.dead:
            mark_failed(context.instance, run_id, why)
    cursor = f"{since:.3f} {now:.3f}"
    # One per tick: two runs importing at once would delay the first data. Shards that have none come first.
    shard = max(decisions, key=lambda each: (decisions[each].start, -each.number))
    decision = decisions[shard]
    if not decision.windows:
        return dg.SensorResult(skip_reason=decision.reason, cursor=cursor)
    share_s = decision.share * window_s
    tags = {
        WINDOW_TAG: f"{share_s:.0f}",
        **({SHARD_TAG: str(shard)} if shards > 1 else {}),
        "dagster/max_runtime": f"{share_s * MAX_OVERSTAY_WINDOWS + 300:.0f}",
        "presage/why": decision.reason,
    }
    request = dg.RunRequest(run_key=f"{shard.feed(feed)} {now:.3f}", tags=tags)
    return dg.SensorResult(run_requests=[request], cursor=cursor)


def _lives(lease: LeaseRow) -> bool | None:
    """Return whether the process of a lease runs; None: it is not known, as on another host.

    One that began after the lease was taken has only the same number, unless this host's clock was set meanwhile.
    """
    if lease.pid is None or lease.host != settings.get().host:
        return None
    try:
        fields = Path(f"/proc/{lease.pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False
    except OSError:
        return None
    if fields[0] == "Z":
        return False
    began_s = time() - clock_gettime(CLOCK_BOOTTIME) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    taken_s = lease.started_at + float(lease.detail.get("clock_ahead_ms") or 0) / 1000
    return True if began_s < taken_s + CLOCKS_DIFFER_S else None


def _answering_since(cursor: str | None, now: float) -> float:
    """Return since when the keeper has ticked without a break, by its cursor: "since last"; 0 at its first tick."""
    try:
        since, last = map(float, (cursor or "").split())
    except ValueError:
        return 0.0
    return since if now - last <= AWAY_S else now
