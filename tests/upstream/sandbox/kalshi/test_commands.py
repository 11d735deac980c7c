"""Commands to the sandbox Kalshi, and the errors that answer those that make no sense."""

import json

import pytest

from tests.upstream.sandbox.kalshi.conftest import SECOND, converse, open_tickers
from upstream.sandbox.kalshi.server import KalshiSandbox

SUBSCRIBED = {"cmd": "subscribe", "params": {"channels": ["trade"], "market_tickers": ["A"]}}


@pytest.mark.parametrize(
    ("code", "command"),
    [
        (1, "{"),
        (1, "[]"),
        (1, "[" * 50_000),
        (1, '{"cmd": "subscribe", "params": ' + "[" * 50_000),
        (2, {"cmd": "subscribe"}),
        (2, {"cmd": "unsubscribe", "params": []}),
        (3, {"cmd": "subscribe", "params": {}}),
        (3, {"cmd": "subscribe", "params": {"channels": [1]}}),
        (4, {"cmd": "unsubscribe", "params": {"sids": []}}),
        (4, {"cmd": "update_subscription", "params": {"action": "add_markets", "market_tickers": ["B"]}}),
        (5, {"cmd": "dance"}),
        (5, {"cmd": {}, "params": {}}),
        (7, {"cmd": "unsubscribe", "params": {"sids": [9]}}),
        (7, {"cmd": "unsubscribe", "params": {"sids": [{}]}}),
        (8, {"cmd": "subscribe", "params": {"channels": ["fill"]}}),
        (11, {"cmd": "subscribe", "params": {"channels": ["trade"], "market_ticker": "A", "market_tickers": ["A"]}}),
        (11, {"cmd": "subscribe", "params": {"channels": ["trade"], "market_tickers": "A"}}),
        (11, {"cmd": "subscribe", "params": {"channels": ["trade"], "market_ids": ["A"]}}),
        (12, {"cmd": "update_subscription", "params": {"sids": [1, 2], "action": "add_markets"}}),
        (13, {"cmd": "update_subscription", "params": {"sids": [1], "action": "dance", "market_tickers": ["A"]}}),
        (13, {"cmd": "update_subscription", "params": {"sid": 1, "action": "get_snapshot", "market_tickers": ["A"]}}),
        (14, {"cmd": "subscribe", "params": {"channels": ["orderbook_delta"]}}),
        (14, {"cmd": "update_subscription", "params": {"sid": 1, "action": "add_markets"}}),
        (15, {"cmd": "update_subscription", "params": {"sid": 1, "market_tickers": ["A"]}}),
    ],
)
def test_a_command_that_makes_no_sense_is_answered_with_its_code(shared, http, code, command):
    async def talk(listener):
        await listener.socket.send(json.dumps(SUBSCRIBED))
        await listener.socket.send(command if isinstance(command, str) else json.dumps({"id": 5, **command}))
        await listener.listen(lambda: listener.of("error"))

    (error,) = converse(shared, http, talk).of("error")

    assert error["msg"]["code"] == code
    assert error["msg"]["msg"]
    assert error.get("id") == (None if code == 1 else 5)


def test_id_0_counts_as_none(shared, http):
    async def talk(listener):
        await listener.say("subscribe", 0, channels=["trade"])
        await listener.listen(lambda: listener.messages)

    assert "id" not in converse(shared, http, talk).messages[0]


def test_ids_of_no_market_follow_nothing(sandbox, http):
    async def talk(listener):
        await listener.subscribe("ticker", market_ids=["none"])
        await listener.play(10 * SECOND)
        assert not listener.of("ticker")
        await listener.ask("unsubscribe", sids=[1])
        await listener.subscribe("ticker", market_ids=[next(iter(sandbox.exchange.by_id))])

    converse(sandbox, http, talk)


def test_a_repeated_subscribe_adds_markets_and_the_answer_is_numbered(sandbox, http):
    first, second = open_tickers(http, sandbox, 2)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_ticker=first)
        again = await listener.subscribe("orderbook_delta", market_tickers=[first, second])
        assert again == {
            "id": again["id"],
            "sid": 1,
            "seq": 2,
            "type": "ok",
            "msg": {"market_tickers": [first, second]},
        }
        await listener.settle()

    heard = converse(sandbox, http, talk)

    assert [one["msg"]["market_ticker"] for one in heard.of("orderbook_snapshot")] == [first, second]
    assert [one["seq"] for one in heard.of("orderbook_snapshot")] == [1, 3]


def test_markets_are_added_and_removed_and_a_channel_is_left(sandbox, http):
    first, second = open_tickers(http, sandbox, 2)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_ticker=first)
        await listener.ask("update_subscription", sids=[1], action="add_markets", market_tickers=[second])
        gone = await listener.ask("update_subscription", sids=[1], action="delete_markets", market_tickers=[first])
        assert gone["msg"] == {"market_tickers": [second]}
        listener.messages.clear()
        await listener.play(60 * SECOND)
        assert {one["msg"]["market_ticker"] for one in listener.of("orderbook_delta")} == {second}
        left = await listener.ask("unsubscribe", sids=[1])
        assert left == {"id": left["id"], "sid": 1, "seq": left["seq"], "type": "unsubscribed"}
        assert left["seq"] == listener.of("orderbook_delta")[-1]["seq"] + 1
        listener.messages.clear()
        await listener.play(60 * SECOND)
        assert not listener.of("orderbook_delta")
        assert sandbox.hub.state()["connections"][0]["subscriptions"] == []

    converse(sandbox, http, talk)


def test_markets_beyond_the_limit_are_refused(http):
    with KalshiSandbox(simulate=3, markets=20, hold=True, max_markets=3) as exchange:

        async def talk(listener):
            assert (await listener.subscribe("trade", market_tickers=["A", "B"]))["type"] == "subscribed"
            refused = await listener.subscribe("ticker", market_tickers=["A", "B"])
            assert refused["msg"]["code"] == 26
            refused = await listener.ask("update_subscription", sid=1, action="add_markets", market_tickers=["C", "D"])
            assert refused["msg"]["code"] == 26

        converse(exchange, http, talk)


def test_commands_beyond_the_rate_are_refused(shared, http, monkeypatch):
    monkeypatch.setattr("upstream.sandbox.kalshi.sockets.commands.MAX_COMMANDS_A_SECOND", 0)

    async def talk(listener):
        await listener.say("list_subscriptions", 1)
        await listener.listen(lambda: listener.messages)

    assert converse(shared, http, talk).messages[0]["msg"]["code"] == 27


def test_lists_of_markets_are_left_out_of_answers_when_asked_for(shared, http):
    async def talk(listener):
        await listener.subscribe("ticker", market_tickers=["A"], skip_ticker_ack=True)
        added = await listener.ask("update_subscription", sid=1, action="add_markets", market_tickers=["B"])
        assert added["msg"] == {}

    converse(shared, http, talk)
