"""Faults happen when, where and as long as requested, and nowhere else."""

import asyncio
import json
import time
from collections import defaultdict

import httpx
import msgspec
import pytest
import websockets

from tests.patience import until
from tests.upstream.sandbox.conftest import fall_silent, follow, open_tokens, walk
from upstream.sandbox.common.faults import read_faults
from upstream.sandbox.common.pace import Pace
from upstream.sandbox.faults import Fault
from upstream.sandbox.server import Sandbox


@pytest.fixture
def faulty(sandbox, http):
    """Plan faults, and remove them all afterwards."""

    def plan(*faults: dict) -> list[dict]:
        return http.post(f"{sandbox.url}/sandbox/faults", json=list(faults)).json()

    yield plan
    http.delete(f"{sandbox.url}/sandbox/faults")


def truth(http, sandbox, kind: str) -> list[dict]:
    """Return the truth log's lines of one kind, up to now."""
    lines, after, last = [], 0, sandbox.log.n
    while after < last:
        body = http.get(f"{sandbox.url}/sandbox/log", params={"after": after}).text
        lines += [json.loads(line) for line in body.splitlines()]
        after = lines[-1]["n"]
    return [line for line in lines if line["kind"] == kind]


def test_errors_are_pages_of_a_cdn_and_strike_their_target_alone(sandbox, http, faulty):
    faulty({"kind": "error", "target": "/gamma/markets", "status": 502})

    struck = http.get(f"{sandbox.gamma_url}/markets")

    assert (struck.status_code, struck.headers["content-type"]) == (502, "text/html")
    assert http.get(f"{sandbox.gamma_url}/events").status_code == 200
    assert http.get(f"{sandbox.clob_url}/ok").status_code == 200
    assert http.get(f"{sandbox.url}/sandbox/status").status_code == 200


def test_too_many_requests_say_when_to_come_again(sandbox, http, faulty):
    faulty({"kind": "rate_limit", "target": "/clob", "retry_after_s": 7})

    answer = http.get(f"{sandbox.clob_url}/ok")

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert answer.json() == {"error": "Too Many Requests"}


def test_a_fault_begins_and_ends_by_itself(sandbox, http, faulty, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(sandbox.faults, "now", lambda: now)
    faulty({"kind": "error", "target": "/clob/ok", "at_s": 2, "for_s": 3})

    statuses = {}
    for now in (1000.0, 1001.9, 1002.0, 1004.9, 1005.0, 1006.0):
        statuses[now] = http.get(f"{sandbox.clob_url}/ok").status_code

    assert [now for now, status in statuses.items() if status == 503] == [1002.0, 1004.9]
    assert set(statuses.values()) == {200, 503}


def test_a_request_hangs_until_the_fault_is_over(sandbox, http, faulty):
    faulty({"kind": "hang", "target": "/data/trades", "for_s": 0.4})
    began = time.monotonic()

    assert http.get(f"{sandbox.data_api_url}/trades").status_code == 504
    assert time.monotonic() - began > 0.3
    assert http.get(f"{sandbox.data_api_url}/trades").status_code == 200

    faulty({"kind": "hang", "target": "/data/trades"})
    with pytest.raises(httpx.ReadTimeout):
        http.get(f"{sandbox.data_api_url}/trades", timeout=0.3)


def test_answers_come_slowly(sandbox, http, faulty):
    faulty({"kind": "slow", "target": "/clob/ok", "delay_s": 0.3})
    began = time.monotonic()

    assert http.get(f"{sandbox.clob_url}/ok").json() == "OK"
    assert time.monotonic() - began > 0.29


def test_json_is_cut_short_or_of_another_shape_or_no_json(sandbox, http, faulty):
    url = f"{sandbox.gamma_url}/markets"
    faulty({"kind": "truncate", "target": "/gamma"})
    with pytest.raises(json.JSONDecodeError):
        http.get(url).json()
    http.delete(f"{sandbox.url}/sandbox/faults")

    faulty({"kind": "cut", "target": "/gamma"})
    with pytest.raises(httpx.RemoteProtocolError):
        http.get(url)
    http.delete(f"{sandbox.url}/sandbox/faults")

    faulty({"kind": "wrong_json", "target": "/gamma"})
    assert isinstance(http.get(url).json(), dict)
    http.delete(f"{sandbox.url}/sandbox/faults")

    faulty({"kind": "html", "target": "/gamma"})
    page = http.get(url)
    assert page.status_code == 200
    assert page.text.startswith("<!DOCTYPE html>")


def test_the_first_page_comes_again_and_again(sandbox, http, faulty):
    first = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"limit": 5}).json()
    ask = {"limit": 5, "after_cursor": first["next_cursor"]}
    faulty({"kind": "repeat"})

    again = http.get(f"{sandbox.gamma_url}/markets/keyset", params=ask).json()
    trades = [
        http.get(f"{sandbox.data_api_url}/trades", params={"limit": 3, "offset": offset}).json()
        for offset in (0, 0, 50)
    ]

    assert [market["id"] for market in again["markets"]] == [market["id"] for market in first["markets"]]
    assert again["next_cursor"] == first["next_cursor"]
    assert trades[2][0]["timestamp"] >= trades[0][0]["timestamp"]


def test_a_share_of_the_requests_is_struck(sandbox, http, faulty):
    faulty({"kind": "error", "target": "/clob/ok", "probability": 0.5})

    statuses = [http.get(f"{sandbox.clob_url}/ok").status_code for _ in range(200)]

    assert 60 < statuses.count(503) < 140


def test_a_silent_socket_answers_ping_and_says_nothing_else(sandbox, http, faulty):
    tokens = open_tokens(http, sandbox)

    async def talk(follower):
        await follower.say(type="market", assets_ids=tokens)
        await follower.listen(lambda: len(follower.messages) > 10)
        faulty({"kind": "silent"})
        await follower.settle(sandbox)
        follower.messages.clear()
        said = sandbox.log.n
        await asyncio.to_thread(until, lambda: sandbox.log.n > said + 100)
        await follower.settle(sandbox)
        assert follower.texts == ["PONG"] * 4
        assert follower.messages == []
        http.delete(f"{sandbox.url}/sandbox/faults")
        await follower.listen(lambda: len(follower.messages) > 10)

    assert len(follow(sandbox, talk).messages) > 10


def test_sockets_are_closed_with_and_without_a_farewell_and_new_ones_refused(sandbox, faulty):
    async def last_code(fault: dict) -> int | None:
        async with websockets.connect(sandbox.socket_url, proxy=None) as socket:
            await asyncio.to_thread(faulty, fault)
            with pytest.raises(websockets.ConnectionClosed) as closed:
                await asyncio.wait_for(socket.recv(), 60)
            return closed.value.rcvd.code if closed.value.rcvd else None

    assert asyncio.run(last_code({"kind": "close", "status": 1001, "for_s": 0.1})) == 1001
    assert asyncio.run(last_code({"kind": "close", "for_s": 0.1})) is None

    faulty({"kind": "refuse", "status": 502})

    async def knock() -> int:
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(sandbox.socket_url, proxy=None)
        return refused.value.response.status_code

    assert asyncio.run(knock()) == 502


@pytest.mark.parametrize("kind", ["drop", "duplicate", "reorder"])
def test_messages_are_lost_doubled_and_swapped_and_the_log_says_which(kind):
    """A connection with the fault receives other messages than one without; the log explains the difference."""
    with (
        httpx.Client(trust_env=False) as http,
        Sandbox(simulate=21, rate=300, faults=[Fault(kind=kind, probability=0.2, target="/ws/market#2")]) as exchange,
    ):
        tokens = open_tokens(http, exchange)

        async def both() -> tuple[list[str], list[str]]:
            heard: list[list[str]] = [[], []]
            async with (
                websockets.connect(exchange.socket_url, max_size=1 << 25, proxy=None) as sound,
                websockets.connect(exchange.socket_url, max_size=1 << 25, proxy=None) as faulty,
            ):
                for socket in (sound, faulty):
                    await socket.send(json.dumps({"type": "market", "assets_ids": tokens, "initial_dump": False}))
                begun = exchange.log.n
                await asyncio.to_thread(until, lambda: exchange.log.n > begun + 400)
                await asyncio.to_thread(fall_silent, exchange)
                await asyncio.to_thread(until, lambda: exchange.call(exchange.hub.backlog) == 0)
                for socket, frames in zip((sound, faulty), heard, strict=True):
                    await socket.send("PING")
                    while (frame := str(await asyncio.wait_for(socket.recv(), 60))) != "PONG":
                        frames.append(frame)
            return heard[0], heard[1]

        sound, struck = asyncio.run(both())
        faults = [line["detail"] for line in truth(http, exchange, "fault") if "of" in line["detail"]]

    assert {fault["connection"] for fault in faults} == {2}
    assert {fault["fault"] for fault in faults} == {kind}
    common = [frame for frame in sound if frame in set(struck)]
    if kind == "drop":
        assert common == struck
        assert 0.1 < 1 - len(struck) / len(sound) < 0.35
    elif kind == "duplicate":
        assert [frame for at, frame in enumerate(struck) if at == 0 or frame != struck[at - 1]] == [
            frame for frame in sound if frame in set(struck)
        ]
        assert 1.1 < len(struck) / len(sound) < 1.35
    else:
        assert sorted(struck) == sorted(common)
        assert struck != common


@pytest.mark.parametrize(("kind", "field"), [("corrupt_hash", "hash"), ("corrupt_size", "size")])
def test_a_field_is_corrupted_and_nothing_else(sandbox, http, faulty, kind, field):
    tokens = open_tokens(http, sandbox)
    faulty({"kind": kind})

    async def talk(follower):
        await follower.say(type="market", assets_ids=tokens, initial_dump=False)
        await follower.listen(lambda: len(follower.of("price_change")) > 30)

    changes = follow(sandbox, talk).of("price_change")
    http.delete(f"{sandbox.url}/sandbox/faults")
    known = defaultdict(list)
    for line in truth(http, sandbox, "level"):
        known[line["token"], line["ts_ms"], line["price"]].append(line)

    def different(entry: dict, line: dict) -> list[str]:
        names = ("hash", "size", "side", "best_bid", "best_ask")
        return [name for name in names if entry[name] is not None and entry[name] != line[name]]

    differing = [
        name
        for message in changes
        for entry in message["price_changes"]
        # Of several in one millisecond, the one it is.
        for name in min(
            (different(entry, line) for line in known[entry["asset_id"], int(message["timestamp"]), entry["price"]]),
            key=len,
        )
    ]
    assert len(differing) >= len(changes) * 0.9
    assert set(differing) == {field}


def test_faults_are_listed_and_stopped_one_by_one(sandbox, http, faulty):
    first, second = faulty({"kind": "error", "at_s": 60}, {"kind": "silent", "at_s": 60})

    listed = http.get(f"{sandbox.url}/sandbox/faults").json()
    stopped = http.delete(f"{sandbox.url}/sandbox/faults/{first['id']}").json()

    assert [fault["kind"] for fault in listed] == ["error", "silent"]
    assert [fault["active"] for fault in listed] == [False, False]
    assert stopped == {"stopped": 1}
    assert [fault["id"] for fault in http.get(f"{sandbox.url}/sandbox/faults").json()] == [second["id"]]


@pytest.mark.parametrize(
    "script", ['{"kind": "quake"}', '[{"kind": "drop", "probability": 2}]', '{"kind": "drop", "often": 1}', "{"]
)
def test_a_script_that_makes_no_sense_is_refused(sandbox, http, script):
    with pytest.raises(msgspec.MsgspecError):
        read_faults(Fault, script)
    assert http.post(f"{sandbox.url}/sandbox/faults", content=script).status_code == 400


def test_faults_do_not_change_what_happens(monkeypatch):
    monkeypatch.setattr(Pace, "keep", lambda *_: None)  # a busy machine would skip what it cannot send in time
    lines = []
    for script in ("[]", '[{"kind":"drop","probability":0.5},{"kind":"error"}]'):
        with Sandbox(simulate=30, rate=300, start_ms=1_795_000_000_000, faults=read_faults(Fault, script)) as exchange:
            until(lambda exchange=exchange: exchange.log.n > 150)
            lines.append(exchange.call(lambda exchange=exchange: exchange.log.after(0, 150)))

    sound, struck = ([json.loads(line) for line in text.splitlines()] for text in lines)
    without = [{**line, "n": 0} for line in struck if line["kind"] != "fault"]
    assert len(without) > 100
    assert [{**line, "n": 0} for line in sound][: len(without)] == without


def test_a_walk_over_unreliable_pages_still_ends(sandbox, http):
    assert len(walk(http, sandbox)) >= 60
