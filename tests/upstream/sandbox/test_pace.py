"""The simulation's clock is real time: nothing is sent late, and a rate that cannot be kept is reported."""

import json
import time

import pytest

from tests.patience import until
from tests.upstream.sandbox.conftest import START_MS, follow, open_tokens
from upstream.sandbox.common.pace import MAX_LATE_MS, Pace
from upstream.sandbox.common.truth_log import TruthLog
from upstream.sandbox.exchange.exchange import SandboxExchange
from upstream.sandbox.server import Sandbox
from upstream.sandbox.simulation.simulation import Burst, Simulation

STEP_MS = 50


def simulated(rate: float, bursts: tuple[Burst, ...] = ()) -> Simulation:
    exchange = SandboxExchange(TruthLog(kept=1_000_000))
    return Simulation(exchange, seed=2, start_ms=START_MS, markets=60, rate=rate, bursts=bursts)


def test_what_cannot_be_sent_in_time_is_skipped_and_reported():
    simulation, said = simulated(rate=1_000), []
    pace = Pace(simulation, said.append)
    logged = 0
    for step in range(400):
        clock_ms = START_MS + step * STEP_MS
        pace.keep(clock_ms, step * STEP_MS / 1000)
        simulation.advance(clock_ms, most=5)  # a tenth of what is due
        lines = [json.loads(line) for line in simulation.exchange.log.after(logged, 10_000).splitlines()]
        logged += len(lines)
        assert all(clock_ms - MAX_LATE_MS <= line["ts_ms"] <= clock_ms for line in lines if line["kind"] == "level")

    state = pace.state()
    assert logged > 2_000
    assert state["behind"]
    assert 50 < state["actual_rate"] < 200
    assert state["asked_rate"] == 1_000
    assert state["skipped_ms"] == pytest.approx(400 * STEP_MS * 0.9, rel=0.1)
    assert [line.split(" events")[0] for line in said] == ["cannot keep 1,000"]


def test_a_rate_that_is_kept_skips_nothing():
    simulation, said = simulated(rate=1_000), []
    pace = Pace(simulation, said.append)
    for step in range(200):
        clock_ms = START_MS + step * STEP_MS
        pace.keep(clock_ms, step * STEP_MS / 1000)
        assert simulation.advance(clock_ms)

    assert pace.state() | {"actual_rate": None} == {
        "asked_rate": 1_000,
        "actual_rate": None,
        "behind": False,
        "skipped_ms": 0,
    }
    assert pace.rate == pytest.approx(1_000, rel=0.1)
    assert said == []


def test_a_slow_start_is_nobodys_shortfall_and_leaves_no_old_stamps():
    simulation, said = simulated(rate=1_000), []
    pace = Pace(simulation, said.append)
    pace.keep(START_MS + 60_000, 0)
    simulation.advance(START_MS + 61_000)
    lines = [json.loads(line) for line in simulation.exchange.log.after(0, 100_000).splitlines()]

    assert lines
    assert all(line["ts_ms"] >= START_MS + 60_000 for line in lines)
    assert pace.state()["skipped_ms"] == 0


def test_windows_end_and_follow_each_other_across_a_long_pause():
    simulation = simulated(rate=200)
    pace = Pace(simulation, None)
    pace.keep(START_MS, 0)
    paused_ms = START_MS + 3 * 300_000
    pace.keep(paused_ms, 900)
    simulation.advance(paused_ms + 5_000)
    now_s = paused_ms // 1000
    windows = [market for market in simulation.exchange.catalogue if "-updown-5m-" in market.gamma["slug"]]
    running = {int(market.gamma["slug"].rpartition("-")[2]) for market in windows if not market.closed}

    assert running == {now_s // 300 * 300, now_s // 300 * 300 + 300}
    assert sum(market.closed for market in windows) >= 3 * 4
    lines = [json.loads(line) for line in simulation.exchange.log.after(0, 100_000).splitlines()]
    assert all(line["ts_ms"] >= paused_ms for line in lines)


def test_messages_of_a_live_sandbox_are_stamped_when_they_are_sent(http):
    with Sandbox(simulate=3, rate=300, hold=True) as sandbox:
        tokens = open_tokens(http, sandbox)
        heard = []

        async def talk(follower):
            await follower.say(type="market", assets_ids=tokens[:500], initial_dump=False)
            await follower.socket.send("PING")
            await follower.listen(lambda: bool(follower.texts))
            before_ms = time.time() * 1000
            sandbox.call(sandbox.play)
            await follower.listen(lambda: len(follower.messages) > 50)
            heard.append((before_ms, time.time() * 1000))

        messages = follow(sandbox, talk).messages
        until(lambda: sandbox.pace.rate > 0)
        state = http.get(f"{sandbox.url}/sandbox/status").json()

    [(before_ms, after_ms)] = heard
    assert all(before_ms - MAX_LATE_MS <= int(each["timestamp"]) <= after_ms for each in messages)
    assert state["pace"]["asked_rate"] == 300


def test_a_burst_multiplies_the_rate_in_a_few_sports_events():
    simulation = simulated(rate=100, bursts=(Burst(times=10, for_s=20, at_s=10),))
    made = []
    for second in (10, 30, 40):
        simulation.advance(START_MS + second * 1000)
        made.append(simulation.made)
    level = [json.loads(line) for line in simulation.exchange.log.after(0, 10**6).splitlines()]
    of_burst = [line for line in level if line["kind"] == "level" and 10_000 <= line["ts_ms"] - START_MS < 30_000]
    sports = {market.condition_id for market in simulation.exchange.catalogue if "sportsMarketType" in market.gamma}

    assert made[0] == pytest.approx(1_000, rel=0.2)
    assert made[1] - made[0] == pytest.approx(20_000, rel=0.1)
    assert made[2] - made[1] == pytest.approx(1_000, rel=0.2)
    assert sum(line["condition_id"] in sports for line in of_burst) > 0.8 * len(of_burst)


def test_a_burst_can_be_asked_for(http):
    with Sandbox(simulate=6, rate=50) as sandbox:
        url = f"{sandbox.url}/sandbox/burst"
        assert http.post(url, json={"times": 0.5}).status_code == 400
        assert http.post(url, json={"times": 8, "for_s": 3600}).json() == {"times": 8.0, "for_s": 3600.0, "at_s": 0.0}
        until(lambda: http.get(f"{sandbox.url}/sandbox/status").json()["pace"]["asked_rate"] == 400)


def test_a_connection_follows_no_more_tokens_than_the_limit(http):
    with Sandbox(simulate=6, max_tokens=10) as sandbox:
        tokens = open_tokens(http, sandbox)

        async def talk(follower):
            await follower.say(type="market", assets_ids=tokens[:7])
            await follower.say(operation="subscribe", assets_ids=tokens[:12])
            await follower.listen(lambda: len(follower.books) == 10 and bool(follower.texts))

        heard = follow(sandbox, talk)
        sockets = http.get(f"{sandbox.url}/sandbox/status").json()["sockets"]

    assert {book["asset_id"] for book in heard.books} == set(tokens[:10])
    assert heard.texts == ["INVALID OPERATION"]
    assert (sockets["max_tokens"], sockets["tokens_beyond_limit"]) == (10, 2)
