"""The feed as a whole: leader and standby, clock and lease, and recovery from a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from config.settings import Settings
from orchestration.settlement.feed import SettlementFeed
from sql.roles.rights import PIPELINE
from tests.chain import Chain, FaultyRpc, events
from tests.orchestration.running import Running
from tests.orchestration.settlement import killing, truth
from tests.patience import until
from tests.roles import login_url
from upstream.chain.contracts import POLYGON
from upstream.chain.rpc import Rpc

ROOT = Path(__file__).parents[3]
CONDITION = events.word(77)


@pytest.fixture
def fresh(anvil):
    """A chain with current blocks."""
    made = Chain(anvil, genesis_s=int(time.time()) - 300)
    made.extend([[events.match_v2([events.fill_v2()])]] * 5)
    return made


@pytest.fixture
def start(database_url, fresh):
    running = []
    with ExitStack() as rpcs:

        def start(name, url=fresh.url, **given):
            settings = Settings(_env_file=None, settlement_poll_ms=50, chain_start_block=0)
            rpc = rpcs.enter_context(Rpc([url], read_s=2, total_s=2, rounds=1))
            terms = {"window_s": 600.0, "observe_s": 0.2, **given}
            running.append(Running(SettlementFeed(settings, database_url, rpc, POLYGON, run_id=name, **terms)))
            return running[-1]

        yield start
        for each in running:
            each.stop()


def roles(conn):
    rows = conn.execute("select run_id, role, ready from feed_leases where feed = 'settlement' order by 1").fetchall()
    return {run_id: (role, ready) for run_id, role, ready in rows}


def clock(conn):
    return conn.execute(
        "select status, detail, last_data_at from pipeline_status where stage = 'settlement'"
    ).fetchone()


def test_one_leads_and_the_other_takes_over(conn, fresh, start, database_url):
    first = start("a")
    until(lambda: roles(conn).get("a") == ("leader", True))
    second = start("b")
    until(lambda: roles(conn).get("b") == ("standby", True))

    first.stop()
    until(lambda: roles(conn)["b"] == ("leader", True))
    fresh.emit(events.fill_v2())
    killing.indexed(database_url, fresh)
    second.stop()

    assert roles(conn) == {"a": ("gone", False), "b": ("gone", False)}
    assert truth.compare(conn, fresh) == {}
    assert first.totals["settlements"] + second.totals["settlements"] == len(truth.settlements(conn))


def test_the_window_s_end_waits_for_a_successor(conn, start):
    first = start("a", window_s=1.5)
    until(lambda: roles(conn).get("a") == ("leader", True))
    second = start("b")

    first.thread.join(60)

    assert not first.thread.is_alive()
    until(lambda: roles(conn)["b"] == ("leader", True))
    assert first.totals["role"] == "standby"
    second.stop()


def test_the_stage_s_clock_says_how_far_it_is(conn, fresh, start, database_url):
    fresh.mine(3)
    start("a")
    killing.indexed(database_url, fresh)

    status, detail, last = until(lambda: clock(conn) if clock(conn)[1].get("indexed") == fresh.head else None)

    assert (detail["head"], detail["behind"], detail["refused"], detail["incidents_open"]) == (fresh.head, 0, 0, 0)
    assert "off" not in detail
    (endpoint,) = conn.execute("select detail -> 'endpoints' from chain_heads").fetchone()[0]
    assert (endpoint["head"], endpoint["failures"], endpoint["in_use"]) == (fresh.head, {}, True)
    assert last.timestamp() == fresh.blocks(fresh.head)[0].ts_s
    assert status == "stale"  # the test's blocks are some minutes old


def test_a_chain_that_cannot_be_reached_is_said_and_tried_again(conn, fresh, start, database_url):
    with FaultyRpc(fresh.url) as faulty_rpc:
        faulty_rpc.fail("http_503", times=None)
        start("a", faulty_rpc.url)
        until(lambda: "Unavailable" in (clock(conn)[1].get("fault") or ""))

        faulty_rpc.clear()
        killing.indexed(database_url, fresh)

        until(lambda: "fault" not in clock(conn)[1])
        assert truth.compare(conn, fresh) == {}


def test_markets_are_resolved_as_they_become_final(conn, fresh, start, add_market):
    add_market("rain", market_id="0x" + CONDITION.hex())
    fresh.emit(events.resolution(CONDITION, (0, 1)))
    start("a")
    fresh.mine(66)

    until(lambda: conn.execute("select status from markets").fetchone() == ("RESOLVED",))
    assert conn.execute("select cause from market_status_changes").fetchall() == [("chain_resolution",)]


def test_it_runs_by_itself_and_ends_when_told(conn, fresh, database_url):
    process = subprocess.Popen(
        [sys.executable, "-m", "orchestration.settlement", "--run-id", "alone", "--observe", "0.2"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "DATABASE_URL": login_url(database_url, PIPELINE),
            "PRESAGE_CHAIN_RPC_URLS": f"{fresh.url}, {fresh.url}",
            "PRESAGE_CHAIN_START_BLOCK": "0",
        },
    )
    killing.indexed(database_url, fresh)

    process.send_signal(signal.SIGTERM)
    said = [json.loads(line) for line in process.communicate(timeout=60)[0].splitlines()]

    assert process.returncode == 0
    assert (said[-1]["indexed"], said[-1]["settlements"]) == (fresh.head, len(truth.settlements(conn)))
    assert roles(conn)["alone"] == ("gone", False)


def test_ten_kills_lose_nothing_and_double_nothing(anvil, database_url):
    assert killing.kill_many(anvil, database_url, 10, seed=1) == {}
