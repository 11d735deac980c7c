"""What was acknowledged, received and counted, compared with what the cluster has in the end."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING, Any

import psycopg

from api.metering.meter import MAX_LEASE
from tests import stream_rows
from tests.cluster import missing
from tests.cluster.cluster import RECOVERED_S
from tests.patience import until
from tests.soak.audit import audit
from tests.soak.test_stream_faults import difference

if TYPE_CHECKING:
    from tests.cluster import load
    from tests.cluster.cluster import Cluster
    from tests.soak.subscribers import Subscribers

# Of these, runs with a window are meant to last.
UNFINISHED = """
    select pipeline_name, status, run_id from runs
    where status not in ('SUCCESS', 'FAILURE', 'CANCELED') and create_timestamp < to_timestamp(%s) at time zone 'utc'
        and not exists (select from run_tags t where t.run_id = runs.run_id and t.key = 'presage/window_s')
        and exists (select from run_tags t where t.run_id = runs.run_id and t.key = 'presage/queued')
"""
RUNS = """
    with tagged as (
        select status, (select array_agg(key) from run_tags t where t.run_id = runs.run_id) as tags from runs
    )
    select case when 'presage/host' = any(tags) then 'of hosts' when 'presage/queued' = any(tags)
        then 'that no host took' else 'of the code server' end || ', ' || lower(status), count(*)
    from tagged group by 1 order by 1
"""
CREDITS = """
    with keys as (select key_id from api_keys join accounts using (account_id) where email = %(email)s)
    select (select coalesce(sum(used), 0) from credit_usage join keys using (key_id)),
        (select count(*) from credit_leases join keys using (key_id))
"""
GAPS = """
    select kind, cause, from_ts::time(1)::text, to_ts::time(1)::text, run_id, count(*), count(market_key)
    from coverage_gaps where filled_at is null group by kind, cause, from_ts, to_ts, run_id order by from_ts
"""
READER = "cluster@example.com"


def deviations(
    cluster: Cluster, writer: load.Writer, reader: load.Reader, streams: Subscribers
) -> tuple[list[str], dict[str, Any]]:
    """Compare what was acknowledged, received and counted with what is there; return deviations and figures."""
    found: list[str] = []
    with psycopg.connect(cluster.url, autocommit=True) as conn:
        numbers = {number for (number,) in conn.execute("select number from cluster_numbers")}
        if lost := set(range(1, writer.acknowledged + 1)) - numbers:
            found.append(f"{len(lost)} acknowledged writes lost: {sorted(lost)[:5]}")
        events = stream_rows.rows(conn)
        sent = [
            json.loads(row.message)["data"]["number"]
            for row in events
            if row.type == "signal" and '"number"' in row.message
        ]
        if sorted(sent) != sorted(numbers):
            found.append(f"{len(sent)} events of {len(numbers)} numbers, {len(sent) - len(set(sent))} doubled")
        expected = [row.seq for row in events if row.wallet is None]  # more is published meanwhile
        until(lambda: streams.failed or all(each.last >= expected[-1] for each in streams.subscribers))
        if streams.failed:
            found.append(f"a subscriber ended: {streams.failed!r}")
        for number, each in enumerate(streams.subscribers, start=1):
            received = [seq for seq in list(each.received) if seq <= expected[-1]]
            wanted = [seq for seq in expected if seq >= received[0]]
            if received != wanted or each.gaps:
                found.append(f"subscriber {number}: {difference(received, wanted)}, gaps {each.gaps}")
        used, leases = conn.execute(CREDITS, {"email": READER}).fetchone() or (0, 0)
        unfilled = conn.execute(GAPS).fetchall()
    report = audit(cluster.url, cluster.log)
    outside_starts, explanations = missing.explained(cluster.url, report)
    try:
        report.assert_clean()
    except AssertionError as failed:
        found.append(str(failed))
    if outside_starts:
        found.append(f"not stored, and not since before a market was followed: {outside_starts}")
    if not reader.paid <= used <= reader.paid + reader.unknown * reader.dearest + leases * MAX_LEASE:
        found.append(f"{used} credits charged, {leases} leases, for {reader.paid} paid and {reader.unknown} failures")
    found += [f"{worker!r}: {worker.fault!r}" for worker in (writer, reader) if worker.fault]
    found += unfinished_runs(cluster)
    return found, {
        "acknowledged writes": writer.acknowledged,
        "stream events": len(events),
        "events received": sum(len(each.received) for each in streams.subscribers),
        "reconnections": sum(each.connections - 1 for each in streams.subscribers),
        "answers": reader.answered,
        "credits paid for them": reader.paid,
        "requests without an answer": reader.unknown,
        "credits charged, what hosts hold included": int(used),
        "leases that hosts hold or lost": int(leases),
        "feed": str(report),
        **explanations,
        "gaps that are not filled": str([" ".join(map(str, gap)) for gap in unfilled]),
        **{f"Dagster's runs {how}": number for how, number in cluster.ask_dagster(RUNS)},
    }


def unfinished_runs(cluster: Cluster) -> list[str]:
    """Wait for the runs that hosts were to execute until now; return those that do not end.

    A lost code server's own runs are shown as started until their job's time limit (docs/deployment.md).
    """
    now = time.time()
    left: list[tuple[Any, ...]] = [("", "unknown: Dagster's database does not answer", "")]

    def ended() -> bool:
        with contextlib.suppress(psycopg.Error):
            left[:] = cluster.ask_dagster(UNFINISHED, now)
        time.sleep(1)
        return not left

    try:
        until(ended, within_s=RECOVERED_S)
    except AssertionError:
        return [f"a run of {job} has not ended, but is {status}: {run_id}" for job, status, run_id in left]
    return []
