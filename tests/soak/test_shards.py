"""The number of shards changes while runs are killed; then every row is compared with the exchange's log."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from cli.stack.ports import choose
from tests.soak.audit import audit
from tests.soak.running import RunningDemo

SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
RATE = os.environ.get("PRESAGE_SOAK_RATE", "300")
NUMBERS = [int(number) for number in os.environ.get("PRESAGE_SOAK_SHARDS", "2 3 1 3 2 1").split()]
RECOVERY_S = 300.0


@pytest.mark.soak
def test_nothing_is_lost_without_a_record_while_shards_change_and_runs_are_killed(tmp_path):
    dice = random.Random(SEED)
    base = choose(None).api
    options = ("--rate", RATE, "--markets", "40", "--simulate", str(SEED), "--port-base", str(base))
    demo = RunningDemo(tmp_path, *options)
    try:
        demo.wait_until(lambda: demo.output_json().get("time_to_first_price_s") is not None and demo.whole(), 120)
        began_ms = demo.exchange()["clock_ms"] + 1
        for shards in NUMBERS:
            demo.want_shards(shards)
            time.sleep(dice.uniform(0, 20))  # so that kills meet every phase of the change
            killed = dice.choice(demo.leases())
            os.kill(killed.pid, signal.SIGKILL)
            took = demo.wait_until(demo.whole, RECOVERY_S)
            print(f"{shards} shards, {killed.feed} {killed.role} killed: whole after {took:.1f} s", flush=True)
        ended_ms = demo.exchange()["clock_ms"] - 1
        demo.wait_until(lambda: demo.committed_ms() > ended_ms, RECOVERY_S)
        url = demo.running()["database_url"]
        missing = (
            "select count(*) from coverage_gaps where kind = 'trades' and filled_at is null"
            " and to_ts < now() - interval '2 s'"
        )
        with demo.connect() as conn:
            demo.wait_until(lambda: conn.execute(missing).fetchone() == (0,), RECOVERY_S)
            for row in conn.execute(
                "select kind, cause, market_key is null, shard, shards, filled_by from coverage_gaps"
            ):
                print("  gap:", row)
        report = audit(url, demo.truth, from_ms=began_ms, to_ms=ended_ms)
    finally:
        demo.stop()
    print(report)
    report.assert_clean()
    demo.erase()
