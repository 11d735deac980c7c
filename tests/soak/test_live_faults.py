"""Twenty faults under load, in random order; then every row is compared with what the exchange says it sent."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from rich.table import Table

from cli.ports import choose
from tests.soak.running import Pulse, Running
from tests.soak.truth import compare, held, told

if TYPE_CHECKING:
    from collections.abc import Callable

SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
TIMES = int(os.environ.get("PRESAGE_SOAK_TIMES", "4"))  # of each of the five faults
RATE = os.environ.get("PRESAGE_SOAK_RATE", "300")
RECOVERY_S = 120.0

TERMINATE = """mutation($run: String!) { terminateRun(runId: $run, terminatePolicy: SAFE_TERMINATE) {
    __typename ... on TerminateRunFailure { message } ... on PythonError { message } } }"""
RUNS = (
    """{ runsOrError(filter: {pipelineName: "live"}) { ... on Runs { results { runId status startTime endTime } } } }"""
)


def kill_leader(demo: Running) -> None:
    os.kill(demo.lease("leader").pid, signal.SIGKILL)


def kill_standby(demo: Running) -> None:
    os.kill(demo.lease("standby").pid, signal.SIGKILL)


def kill_code_server(demo: Running) -> None:
    os.kill(demo.pid("code-server"), signal.SIGKILL)


def kill_database(demo: Running) -> None:
    os.kill(demo.pid("database"), signal.SIGKILL)


def hand_over(demo: Running) -> None:
    answer = demo.graphql(TERMINATE, run=demo.lease("leader").run_id)
    assert answer["terminateRun"]["__typename"] == "TerminateRunSuccess", answer


FAULTS: dict[str, Callable[[Running], None]] = {
    "kill -9 of the leader": kill_leader,
    "kill -9 of the standby": kill_standby,
    "kill -9 of the code server": kill_code_server,
    "kill -9 of the database": kill_database,
    "hand-over": hand_over,
}


@pytest.mark.soak
def test_nothing_is_lost_or_doubled_whatever_is_killed(tmp_path):
    order = [name for name in FAULTS for _ in range(TIMES)]
    random.Random(SEED).shuffle(order)
    base = choose(None).api
    demo = Running(tmp_path, "--rate", RATE, "--markets", "40", "--simulate", str(SEED), "--port-base", str(base))
    pulse = Pulse(demo)
    table = Table("fault", "no commit for", "whole again after", title=f"seed {SEED}, {RATE} messages a second")
    try:
        demo.wait_until(lambda: demo.told().get("time_to_first_price_s") is not None and demo.whole(), 120)
        began_ms = demo.exchange()["clock_ms"] + 1
        pulse.start()
        for name in order:
            time.sleep(random.Random().uniform(2, 5))
            before = {lease.run_id for lease in demo.leases()}
            struck = time.monotonic()
            FAULTS[name](demo)
            time.sleep(1.0)  # for the fault to show
            demo.wait_until(demo.whole, RECOVERY_S)
            if name in ("kill -9 of the leader", "kill -9 of the standby", "hand-over"):
                assert {lease.run_id for lease in demo.leases()} != before
            table.add_row(name, f"{pulse.longest_pause(struck):.2f} s", f"{time.monotonic() - struck:.1f} s")
            Console().print(table.rows[-1] and f"{name}: no commit for {pulse.longest_pause(struck):.2f} s")
        ended_ms = demo.exchange()["clock_ms"] - 1
        time.sleep(5)  # for the last of them to be committed

        runs = demo.graphql(RUNS)["runsOrError"]["results"]
        with demo.connect() as conn:
            found = held(conn, from_ms=began_ms, to_ms=ended_ms)
            gaps = conn.execute(
                "select kind, cause, from_ts, to_ts, filled_by from coverage_gaps order by gap_id"
            ).fetchall()
            quarantined = conn.execute("select count(*) from quarantine").fetchone()
        differences = compare(told(demo.truth, from_ms=began_ms, to_ms=ended_ms), found)
    finally:
        pulse.stop()
        demo.stop()

    report(table, differences, gaps, runs)
    for kind, difference in differences.items():
        assert difference.compared > 0, kind
        assert difference.lost.total() == 0, (kind, difference.lost.most_common(5))
        assert difference.doubled.total() == 0, (kind, difference.doubled.most_common(5))
    assert quarantined == (0,)
    assert not [gap for gap in gaps if gap[3] is None]
    # Dagster's own record: each killed run is marked as failed, each run that was told to end says so.
    statuses = [run["status"] for run in runs]
    killed = TIMES * 2
    assert statuses.count("FAILURE") >= killed, statuses
    assert statuses.count("STARTED") == 2, statuses


def report(table, differences, gaps, runs) -> None:
    console = Console(width=140)
    console.print(table)
    for kind, difference in differences.items():
        console.print(f"{kind}: {difference}")
    console.print(f"coverage gaps: {len(gaps)}")
    for gap in gaps:
        console.print(f"  {gap}")
    statuses = [run["status"] for run in runs]
    console.print("Dagster's runs:", {status: statuses.count(status) for status in sorted(set(statuses))})
