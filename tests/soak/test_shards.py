"""The number of shards changes while runs are killed; then every row is compared with the exchange's log."""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from cli.stack.ports import choose
from cli.stack.processes import guard
from tests.soak.audit import audit
from tests.soak.running import RunningDemo

SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
RATE = os.environ.get("PRESAGE_SOAK_RATE", "300")
KILLS = int(os.environ.get("PRESAGE_SOAK_KILLS", "1"))  # at each number of shards
MARKETS = os.environ.get("PRESAGE_SOAK_MARKETS", "40")
NUMBERS = [int(number) for number in os.environ.get("PRESAGE_SOAK_SHARDS", "2 3 1 3 2 1").split()]
RECOVERY_S = 300.0


def living(demo):
    """Return the leases whose process was not killed yet."""
    return [lease for lease in demo.leases() if guard.alive(lease.pid)]


@pytest.mark.soak
def test_nothing_is_lost_without_a_record_while_shards_change_and_runs_are_killed(tmp_path):
    dice = random.Random(SEED)
    base = choose(None).api
    options = ("--rate", RATE, "--markets", MARKETS, "--simulate", str(SEED), "--port-base", str(base))
    demo = RunningDemo(tmp_path, *options)
    try:
        demo.wait_until(lambda: demo.output_json().get("time_to_first_price_s") is not None and demo.whole(), 120)
        began_ms = demo.exchange()["clock_ms"] + 1
        for shards in NUMBERS:
            demo.want_shards(shards)
            for nth in range(KILLS):
                time.sleep(dice.uniform(0, 20 if nth == 0 else 5))  # so that kills meet every phase of the change
                demo.wait_until(lambda: living(demo), RECOVERY_S)
                killed = dice.choice(living(demo))
                os.kill(killed.pid, signal.SIGKILL)
                print(f"{shards} shards, {killed.feed} {killed.role} killed", flush=True)
                if nth == KILLS - 1 or dice.random() < 0.5:  # otherwise the next one meets the recovery
                    took = demo.wait_until(demo.whole, RECOVERY_S)
                    print(f"{shards} shards: whole after {took:.1f} s", flush=True)
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
