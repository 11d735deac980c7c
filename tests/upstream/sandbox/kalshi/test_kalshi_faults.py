"""Planned faults of the sandbox Kalshi, each seen by a client, and in the truth log."""

import asyncio
import json
import time
from collections import Counter

import httpx
import pytest
import websockets

from tests.upstream.sandbox.kalshi.conftest import (
    MINUTE,
    SECOND,
    START_MS,
    Signer,
    converse,
    get,
    open_tickers,
    play,
    rest_books,
    truth,
)
from upstream.sandbox.kalshi.server import KalshiSandbox

SOCKET = "/trade-api/ws/v2"


@pytest.fixture
def faulty(sandbox, http):
    """Plan faults; none is left afterwards."""

    def plan(*faults):
        response = http.post(f"{sandbox.url}/sandbox/faults", json=list(faults))
        response.raise_for_status()
        return response.json()

    yield plan
    http.delete(f"{sandbox.url}/sandbox/faults")


def numbers(listener, sid=1):
    return [message["seq"] for message in listener.messages if message.get("sid") == sid and "seq" in message]


def followed(sandbox, http, during):
    """Return a listener of books that has played half a minute with a fault, and some seconds more without."""
    play(sandbox, 5 * SECOND)
    tickers = open_tickers(http, sandbox)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers)
        await listener.settle()
        during()
        await listener.play(30 * SECOND)

    return converse(sandbox, http, talk)


def test_a_withheld_message_leaves_a_gap_that_the_log_explains(sandbox, http, faulty):
    heard = followed(sandbox, http, lambda: faulty({"kind": "drop", "probability": 0.1}))

    seen = numbers(heard)
    missing = set(range(1, seen[-1] + 1)) - set(seen)
    lines = truth(http, sandbox)
    withheld = [line["msg"] for line in lines if line["kind"] == "fault" and "of" in line["msg"]]
    assert seen == sorted(seen)
    assert len(missing) > 10
    assert {one["fault"] for one in withheld} == {"drop"}
    of = {one["of"] for one in withheld}
    sent = [line for line in lines if line["kind"] == "orderbook_delta" and line.get("sent") and line["n"] not in of]
    received = heard.of("orderbook_delta")
    assert [line["msg"]["delta_fp"] for line in sent] == [one["msg"]["delta_fp"] for one in received]


def test_of_two_faults_of_a_kind_the_log_tells_each(sandbox, http, faulty):
    followed(sandbox, http, lambda: faulty(*[{"kind": "drop", "probability": 0.5}] * 2))

    planned = http.get(f"{sandbox.url}/sandbox/faults").json()
    told = Counter(line["msg"]["id"] for line in truth(http, sandbox) if "of" in line["msg"])
    assert told == {fault["id"]: fault["hits"] for fault in planned}


def test_a_message_comes_twice_with_the_same_number(sandbox, http, faulty):
    seen = numbers(followed(sandbox, http, lambda: faulty({"kind": "duplicate", "probability": 0.1})))

    assert len(seen) - len(set(seen)) > 10
    assert sorted(set(seen)) == list(range(1, seen[-1] + 1))


def test_two_messages_have_the_same_number(sandbox, http, faulty):
    heard = followed(sandbox, http, lambda: faulty({"kind": "repeat_seq", "probability": 0.1}))

    same = [
        (one, other)
        for one, other in zip(heard.of("orderbook_delta"), heard.of("orderbook_delta")[1:], strict=False)
        if one["seq"] == other["seq"]
    ]
    assert len(same) > 10
    assert any(one["msg"] != other["msg"] for one, other in same)
    assert heard.books() == rest_books(http, sandbox, list(heard.books())), "nothing is lost"


def test_a_number_is_left_out_though_nothing_is(sandbox, http, faulty):
    heard = followed(sandbox, http, lambda: faulty({"kind": "skip_seq", "probability": 0.1}))

    seen = numbers(heard)
    assert seen[-1] - len(seen) > 10
    assert heard.books() == rest_books(http, sandbox, list(heard.books()))


def test_messages_swap_their_places(sandbox, http, faulty):
    seen = numbers(followed(sandbox, http, lambda: faulty({"kind": "reorder", "probability": 0.1})))

    assert seen != sorted(seen)
    assert len(set(seen)) == len(seen)


def test_a_size_is_another_and_no_number_tells(sandbox, http, faulty):
    tickers = open_tickers(http, sandbox)
    faulty({"kind": "corrupt_size"})

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers)
        await listener.play(10 * SECOND)

    heard = converse(sandbox, http, talk)
    lines = [line for line in truth(http, sandbox) if line["kind"] == "orderbook_delta" and line.get("sent")]
    received = [one["msg"] for one in heard.of("orderbook_delta")]
    assert numbers(heard) == list(range(1, len(numbers(heard)) + 1))
    assert len(received) == len(lines) > 20
    assert all(one["delta_fp"] != line["msg"]["delta_fp"] for one, line in zip(received, lines, strict=True))


def test_a_silent_socket_stays_open_and_says_nothing(sandbox, http, faulty):
    async def talk(listener):
        await listener.subscribe("trade")
        await asyncio.to_thread(faulty, {"kind": "silent"})
        await listener.play(MINUTE)
        assert not listener.of("trade")
        await asyncio.to_thread(http.delete, f"{sandbox.url}/sandbox/faults")
        await listener.play(MINUTE)
        assert listener.of("trade")

    converse(sandbox, http, talk)


def test_messages_come_late(sandbox, http, faulty):
    faulty({"kind": "late", "delay_s": 0.3})

    async def talk(listener):
        await listener.subscribe("trade")
        began = time.monotonic()
        await asyncio.to_thread(play, sandbox, 10 * SECOND)
        await listener.listen(lambda: listener.of("trade"))
        assert time.monotonic() - began > 0.29

    converse(sandbox, http, talk)


def test_subscriptions_end_with_an_error_and_may_be_made_again(sandbox, http, faulty):
    async def talk(listener):
        await listener.subscribe("trade", "ticker")
        await asyncio.to_thread(faulty, {"kind": "end_subscription", "code": 10})
        await listener.listen(lambda: len(listener.of("error")) == 2)
        assert (await listener.subscribe("trade"))["msg"] == {"channel": "trade", "sid": 3}

    errors = converse(sandbox, http, talk).of("error")
    assert [(one["sid"], one["msg"]["code"]) for one in errors] == [(1, 10), (2, 10)]


@pytest.mark.parametrize("fault", [{"kind": "close"}, {"kind": "cut_frame"}, {"kind": "close", "status": 1001}])
def test_sockets_break_with_and_without_a_handshake_also_in_the_middle_of_a_frame(sandbox, http, faulty, fault):
    async def talk(listener):
        await listener.subscribe("trade")
        await asyncio.to_thread(faulty, fault)
        await asyncio.to_thread(play, sandbox, MINUTE)
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await listener.listen(lambda: False)
        received = closed.value.rcvd
        assert (received.code if received else None) == fault.get("status")

    heard = converse(sandbox, http, talk)
    assert len(heard.messages) <= 1 or fault["kind"] == "close"


def test_after_half_a_frame_nothing_comes(sandbox, http, faulty):
    """The client reads whole messages, then the connection's end, and no frame that two halves make up."""
    play(sandbox, 5 * SECOND)
    tickers = open_tickers(http, sandbox)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers)
        await asyncio.to_thread(faulty, {"kind": "cut_frame", "probability": 0.02})
        await asyncio.to_thread(play, sandbox, MINUTE)
        with pytest.raises(websockets.ConnectionClosed) as closed:
            await listener.listen(lambda: False)
        assert closed.value.sent is None, "the client found no fault with a frame"
        await listener.socket.wait_closed()

    heard = converse(sandbox, http, talk)
    lines = [line for line in truth(http, sandbox) if line["kind"] == "fault" and "of" in line["msg"]]
    assert [line["msg"]["fault"] for line in lines] == ["cut_frame"]
    assert heard.of("orderbook_delta")


def test_one_connection_alone_is_struck(sandbox, http, faulty):
    faulty({"kind": "drop", "target": f"{SOCKET}#2"})

    async def talk(listener):
        await listener.subscribe("trade")
        await listener.play(MINUTE)

    assert converse(sandbox, http, talk).of("trade")
    assert not converse(sandbox, http, talk).of("trade")
    assert converse(sandbox, http, talk).of("trade")


def test_new_sockets_are_refused(sandbox, http, faulty):
    faulty({"kind": "refuse", "status": 502})
    signer = Signer(sandbox, http)

    async def knock():
        with pytest.raises(websockets.InvalidStatus) as refused:
            await websockets.connect(sandbox.socket_url, additional_headers=signer.headers(SOCKET), proxy=None)
        return refused.value.response.status_code

    assert asyncio.run(knock()) == 502


def test_a_shard_pauses_alone_and_says_so(sandbox, http, faulty):
    faulty({"kind": "pause", "shard": 3})
    after = sandbox.log.n
    play(sandbox, MINUTE)

    status = get(http, sandbox, "/exchange/status")
    traded = {line["msg"]["market_ticker"] for line in truth(http, sandbox, after) if line["kind"] == "trade"}
    shards = {sandbox.exchange.markets[ticker].shard for ticker in traded}
    assert 0 in shards
    assert 3 not in shards
    assert status["trading_active"] is True
    active = {one["exchange_index"]: one["trading_active"] for one in status["exchange_index_statuses"]}
    assert active == {0: True, 1: True, 2: True, 3: False}

    faulty({"kind": "pause"})
    whole = http.get(f"{sandbox.rest_url}/exchange/status")
    assert (whole.status_code, whole.json()["trading_active"]) == (503, False)
    after = sandbox.log.n
    play(sandbox, 10 * SECOND)
    assert not [line for line in truth(http, sandbox, after) if line["kind"] == "trade"]


def test_http_fails_in_every_way(sandbox, http, faulty):
    url = f"{sandbox.rest_url}/markets"

    def struck(**fault):
        http.delete(f"{sandbox.url}/sandbox/faults")
        faulty({"target": "/trade-api/v2/markets", **fault})
        return http.get(url, timeout=0.3 if fault["kind"] == "hang" else 60)

    assert "cloudflare" in struck(kind="error", status=504).text
    limited = struck(kind="rate_limit")
    assert (limited.status_code, limited.json()) == (429, {"error": "too many requests"})
    assert "retry-after" not in limited.headers
    with pytest.raises(json.JSONDecodeError):
        struck(kind="truncate").json()
    with pytest.raises(httpx.RemoteProtocolError):
        struck(kind="cut")
    assert struck(kind="html").text.startswith("<!DOCTYPE html>")
    assert "markets" not in struck(kind="wrong_json").json()
    with pytest.raises(httpx.ReadTimeout):
        struck(kind="hang")
    began = time.monotonic()
    assert struck(kind="slow", delay_s=0.2).status_code == 200
    assert time.monotonic() - began > 0.19
    first = struck(kind="repeat").json()
    again = http.get(url, params={"cursor": first["cursor"]}).json()
    assert again["markets"] == first["markets"]
    assert get(http, sandbox, "/events")["events"], "another path is not struck"


@pytest.mark.parametrize(
    "script",
    ['{"kind": "reorg"}', '{"kind": "pause", "shard": 9}', '{"kind": "drop", "probability": 2}', '{"often": 1}', "{"],
)
def test_a_script_that_makes_no_sense_is_refused(shared, http, script):
    assert http.post(f"{shared.url}/sandbox/faults", content=script).status_code == 400


def test_faults_do_not_change_what_happens(http):
    logs = []
    for script in ([], [{"kind": "drop", "probability": 0.5}, {"kind": "error"}]):
        with KalshiSandbox(simulate=30, start_ms=START_MS, markets=40, rate=40, hold=True) as exchange:
            if script:
                http.post(f"{exchange.url}/sandbox/faults", json=script).raise_for_status()
            play(exchange, 10 * SECOND)
            logs.append([{**line, "n": 0} for line in truth(http, exchange) if line["kind"] != "fault"])

    assert len(logs[0]) > 400
    assert logs[0] == logs[1]
