"""Two live runs, differing clocks, a long database outage; then every row is compared with the exchange's log."""

import os
import time
from contextlib import ExitStack, contextmanager
from itertools import cycle, islice
from pathlib import Path

import pytest

from orchestration.ingest.committer import MARGIN_MS
from sql import database
from tests.orchestration.ingest.live_world import World, disable_listings, now_ms, wait_until
from tests.soak.audit import audit
from upstream.sandbox.server import Sandbox

RATE = int(os.environ.get("PRESAGE_SOAK_RATE", "300"))
TAKEOVERS = int(os.environ.get("PRESAGE_SOAK_TAKEOVERS", "8"))
AWAY_S = float(os.environ.get("PRESAGE_SOAK_AWAY_S", "1200"))
BUFFER_MB = 4
MEMORY_MB = 250
TIMEOUT_S = 180.0


@pytest.fixture
def world(database_url, tmp_path, monkeypatch):
    disable_listings(monkeypatch)
    log = tmp_path / "truth.jsonl"
    with (
        Sandbox(simulate=11, rate=RATE, markets=40, log=log) as sandbox,
        World(sandbox, database_url, log) as made,
    ):
        yield made


def leading(world):
    """Return the process that leads, or None."""
    found = [run_id for run_id, (role, _, _) in world.leases().items() if role == "leader"]
    return next((feed for feed in world.feeds if feed.run_id in found and feed.process.poll() is None), None)


def until_both_ready(world, feeds):
    """Wait until both are ready, and the leader has committed what the other need not have received."""
    wait_until(lambda: leading(world) and all(world.ready(feed) for feed in feeds), TIMEOUT_S)
    return world.caught_up(MARGIN_MS)


def kill(world, feed):
    feed.kill()
    feed.process.stdout.close()
    world.feeds.remove(feed)


@pytest.mark.soak
def test_clocks_that_are_five_seconds_apart_lose_and_double_nothing(world):
    clocks = cycle([5.0, 0.0, -5.0, 0.0])  # of a leader and its standby one is always five seconds ahead of the other
    world.process(clock_ahead_s=next(clocks))
    wait_until(lambda: leading(world), TIMEOUT_S)
    began = None
    for clock_ahead_s in islice(clocks, TAKEOVERS):
        standby = world.process(clock_ahead_s=clock_ahead_s)
        caught_up = until_both_ready(world, world.feeds)
        began = began or caught_up
        skews = {run_id: detail["clock_ahead_ms"] for run_id, (_, _, detail) in world.leases().items()}
        struck = time.monotonic()
        kill(world, leading(world))
        wait_until(lambda standby=standby: leading(world) is standby, TIMEOUT_S)
        print(f"clocks {sorted(skews.values())} ms ahead: taken over in {time.monotonic() - struck:.2f} s", flush=True)
    until = world.caught_up(MARGIN_MS)

    report = audit(world.url, world.log, from_ms=began, to_ms=until)
    print(report, len(world.gaps()), "gaps")
    report.assert_clean()
    assert not report.missing
    assert world.gaps() == []


@contextmanager
def gap_writes_blocked(world):
    with database.connect(world.url) as conn:
        conn.execute("lock table coverage_gaps in share row exclusive mode")
        yield conn


def saving(world):
    """Return the sessions that wait to write a gap."""
    return world.conn.execute(
        "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%insert into coverage_gaps%'"
    ).fetchall()


def blocked_run(world, feeds):
    """Return the run without a heartbeat while it waits; None while that is not clear."""
    silent = [feed for feed in feeds if feed.run_id not in world.leases()]
    return silent[0] if len(silent) == 1 else None


@pytest.mark.soak
@pytest.mark.timeout(AWAY_S + 1200)
def test_a_database_that_is_long_away_and_a_leader_killed_while_it_saves_leave_no_gap_unrecorded(world):
    first = world.process(window_s=3 * AWAY_S + 3600, live_buffer_mb=BUFFER_MB)
    wait_until(lambda: leading(world) is first, TIMEOUT_S)
    second = world.process(window_s=3 * AWAY_S + 3600, live_buffer_mb=BUFFER_MB)
    began = until_both_ready(world, [first, second])

    with world.database_unavailable():
        left = now_ms()
        time.sleep(AWAY_S)
    with gap_writes_blocked(world) as conn, ExitStack() as stack:
        back = now_ms()
        wait_until(lambda: saving(world), TIMEOUT_S)
        leader = wait_until(lambda: blocked_run(world, [first, second]))
        memory = {feed.run_id: peak_mb(feed) for feed in (first, second)}
        kill(world, leader)
        for (pid,) in saving(world):  # they would go on without their client
            conn.execute("select pg_terminate_backend(%s, 5000)", [pid])
        stack.callback(conn.rollback)
    other = second if leader is first else first
    wait_until(lambda: leading(world) is other, TIMEOUT_S)
    third = world.process(live_buffer_mb=BUFFER_MB)
    until_both_ready(world, [other, third])
    wait_until(lambda: all(closed for _, _, _, closed, _ in world.gaps()), TIMEOUT_S)
    wait_until(lambda: "data_api" in world.filled("trades"), TIMEOUT_S)
    until = world.caught_up()

    report = audit(world.url, world.log, from_ms=began, to_ms=until)
    gaps = world.conn.execute(
        "select kind, cause, as_ms(from_ts) - %s, as_ms(to_ts) - %s, filled_by from coverage_gaps order by gap_id",
        [left, left],
    ).fetchall()
    print(report, f"away for {back - left} ms; peak memory {memory} MB; gaps:", *gaps, sep="\n")
    report.assert_clean()
    assert report.missing["level changes"] > 0, "the buffer held all of it: nothing is proven"
    assert len(gaps) < 20
    assert max(memory.values()) < MEMORY_MB


def peak_mb(feed):
    status = Path(f"/proc/{feed.process.pid}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) // 1024 for line in status.splitlines() if line.startswith("VmHWM"))
