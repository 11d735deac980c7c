"""The truth log: everything that happened, in order, and nothing else."""

import asyncio
import json

import pytest

from tests.upstream.sandbox.conftest import START_MS, fall_silent, follow, open_tokens
from upstream.sandbox.common.truth_log import LineGoneError, TruthLog
from upstream.sandbox.exchange.wire import Fact
from upstream.sandbox.server import Sandbox


def test_lines_are_what_a_socket_heard(http, tmp_path):
    file = tmp_path / "truth.jsonl"
    with Sandbox(simulate=17, rate=400, start_ms=START_MS, log=file, hold=True) as exchange:
        tokens = open_tokens(http, exchange)

        async def talk(follower):
            await follower.say(type="market", assets_ids=tokens, custom_feature_enabled=True, initial_dump=False)
            await follower.socket.send("PING")
            await follower.listen(lambda: bool(follower.texts))
            exchange.call(exchange.play)
            await follower.listen(lambda: len(follower.messages) > 200)
            await asyncio.to_thread(fall_silent, exchange)
            await follower.settle(exchange)

        heard = follow(exchange, talk)
        asked = http.get(f"{exchange.url}/sandbox/log", params={"after": 0}).text

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert [json.loads(line) for line in asked.splitlines()] == lines[:10_000]
    assert {line["sent"] for line in lines} == {1}
    trades = [
        (
            message["asset_id"],
            int(message["timestamp"]),
            message["side"],
            message["price"],
            message["size"],
            message["transaction_hash"],
        )
        for message in heard.of("last_trade_price")
    ]
    logged = [line for line in lines if line["kind"] == "trade"]
    assert [
        tuple(line[name] for name in ("token", "ts_ms", "side", "price", "size", "tx")) for line in logged
    ] == trades
    of_entry = ("side", "price", "size", "hash", "best_bid", "best_ask")
    levels = [
        (entry["asset_id"], message["market"], int(message["timestamp"]), *(entry[name] for name in of_entry))
        for message in heard.of("price_change")
        for entry in message["price_changes"]
    ]
    names = ("token", "condition_id", "ts_ms", *of_entry)
    assert [tuple(line[name] for name in names) for line in lines if line["kind"] == "level"] == levels
    assert [line["hash"] for line in lines if line["kind"] == "book"] == [
        message["hash"] for message in heard.of("book")
    ]


def test_lines_that_memory_forgot_are_read_from_the_file(tmp_path):
    with_file, without = TruthLog(tmp_path / "log", kept=5), TruthLog(kept=5)
    for log in (with_file, without):
        for _ in range(20):
            log.write(Fact(0, "level"))

    assert [json.loads(line)["n"] for line in with_file.after(3, 4).splitlines()] == [4, 5, 6, 7]
    assert [json.loads(line)["n"] for line in without.after(15, 9).splitlines()] == [16, 17, 18, 19, 20]
    assert without.after(20, 9) == b""
    with_file.close()
    with pytest.raises(LineGoneError):
        without.after(3, 4)
