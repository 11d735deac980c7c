"""The sandbox's market socket."""

import asyncio
import contextlib
import json

import pytest
import websockets
from websockets.sync.client import connect

from tests.patience import until
from tests.upstream.sandbox.conftest import follow, open_tokens, token_ids, walk
from upstream.sandbox.server import Sandbox


def test_books_come_first_in_an_array_then_the_messages(sandbox, http):
    tokens = open_tokens(http, sandbox)

    async def talk(follower):
        await follower.say(type="market", assets_ids=tokens)
        await follower.listen(lambda: len(follower.of("book")) > 2 and len(follower.messages) > 100)

    heard = follow(sandbox, talk)

    assert {book["asset_id"] for book in heard.books} == set(tokens)
    assert all(book["event_type"] == "book" for book in heard.books)
    assert {"price_change", "last_trade_price", "book"} <= {message["event_type"] for message in heard.messages}
    assert not heard.of("best_bid_ask"), "only for those who ask for custom features"


def test_a_price_change_has_the_shape_of_2025_and_both_outcomes(sandbox, http, recorded):
    shape = json.loads((recorded / "fixtures_edited/nautilus/ws/price_change_v2.json").read_bytes())
    tokens = open_tokens(http, sandbox)

    async def talk(follower):
        await follower.say(type="market", assets_ids=tokens)
        await follower.listen(lambda: len(follower.of("price_change")) > 50)

    changes = follow(sandbox, talk).of("price_change")

    for message in changes:
        assert message.keys() == shape.keys()
        assert all(entry.keys() == shape["price_changes"][0].keys() for entry in message["price_changes"])
        for first, second in zip(message["price_changes"][::2], message["price_changes"][1::2], strict=True):
            assert first["asset_id"] != second["asset_id"]
            assert {first["side"], second["side"]} == {"BUY", "SELL"}
            assert first["size"] == second["size"]
            for one, other in (("price", "price"), ("best_bid", "best_ask"), ("best_ask", "best_bid")):
                assert round(float(first[one]) + float(second[other]), 6) == 1


def test_numbers_and_times_are_text(sandbox, http):
    tokens = open_tokens(http, sandbox)

    async def talk(follower):
        await follower.say(type="market", assets_ids=tokens, custom_feature_enabled=True)
        await follower.listen(lambda: len(follower.of("last_trade_price")) > 3 and len(follower.of("best_bid_ask")) > 3)

    heard = follow(sandbox, talk)

    trade, best = heard.of("last_trade_price")[0], heard.of("best_bid_ask")[0]
    assert all(isinstance(value, str) for value in [*trade.values(), *best.values()])
    assert set(trade) == {
        "event_type", "market", "asset_id", "price", "size", "side", "timestamp", "transaction_hash", "fee_rate_bps",
    }  # fmt: skip
    assert set(best) == {"event_type", "market", "asset_id", "best_bid", "best_ask", "spread", "timestamp"}
    assert len(trade["transaction_hash"]) == 66
    assert abs(int(trade["timestamp"]) - sandbox.exchange.now_ms) < 60_000


def test_ping_is_answered_and_nonsense_too(sandbox):
    async def talk(follower):
        for text in ("PING", "{", '{"operation": "dance"}'):
            await follower.socket.send(text)
        await follower.listen(lambda: len(follower.texts) == 3)

    assert follow(sandbox, talk).texts == ["PONG", "INVALID OPERATION", "INVALID OPERATION"]


def test_subscribing_twice_sends_the_book_once_and_every_message_once(sandbox, http):
    tokens = open_tokens(http, sandbox)

    async def talk(follower):
        await follower.say(type="market", assets_ids=tokens)
        await follower.say(operation="subscribe", assets_ids=tokens)
        await follower.listen(lambda: len(follower.messages) > 60)

    heard = follow(sandbox, talk)

    assert len(heard.books) == len(tokens)
    assert len({json.dumps(message) for message in heard.messages}) == len(heard.messages)


def test_operations_change_what_is_followed(sandbox, http):
    busy = [market for market in walk(http, sandbox, closed="false") if "-updown-" in market["slug"]]
    first, second = token_ids(busy[0]), token_ids(busy[2])

    async def talk(follower):
        await follower.say(type="market", assets_ids=first)
        await follower.say(operation="subscribe", assets_ids=second)
        await follower.say(operation="unsubscribe", assets_ids=first)
        await follower.settle(sandbox)
        follower.messages.clear()
        await follower.listen(lambda: len(follower.messages) > 3)

    heard = follow(sandbox, talk)

    assert {book["asset_id"] for book in heard.books} == {*first, *second}
    assert {message["market"] for message in heard.messages} == {busy[2]["conditionId"]}


def test_one_outcome_alone_hears_of_its_own_books_and_of_shared_changes(sandbox, http):
    market = next(market for market in walk(http, sandbox, closed="false") if "-updown-" in market["slug"])
    token = token_ids(market)[1]

    async def talk(follower):
        await follower.say(type="market", assets_ids=[token])
        await follower.listen(lambda: bool(follower.of("book") and follower.of("price_change")))

    heard = follow(sandbox, talk)

    assert {message["asset_id"] for message in heard.of("book")} == {token}
    assert {entry["asset_id"] for message in heard.of("price_change") for entry in message["price_changes"]} == set(
        token_ids(market)
    )


def test_lists_and_resolutions_are_told_to_those_with_custom_features(http):
    start_ms = 1_795_000_199_000  # a second before a window of five minutes ends
    with Sandbox(simulate=4, rate=300, start_ms=start_ms, hold=True) as exchange:
        tokens = open_tokens(http, exchange)

        async def talk(follower):
            await follower.say(type="market", assets_ids=tokens, custom_feature_enabled=True)
            await follower.listen(lambda: bool(follower.books))
            exchange.call(lambda: exchange.source.advance(start_ms + 5_000))
            await follower.listen(lambda: len(follower.of("market_resolved")) >= 4)

        heard = follow(exchange, talk)
        resolved = heard.of("market_resolved")[0]
        market = walk(http, exchange, condition_ids=resolved["market"])[0]

    listed = heard.of("new_market")[0]
    assert listed["clob_token_ids"] == listed["assets_ids"]
    assert listed["market"] == listed["condition_id"]
    assert {"id", "question", "slug", "description", "outcomes", "event_message", "tags"} <= listed.keys()
    winner = resolved["assets_ids"].index(resolved["winning_asset_id"])
    assert resolved["winning_outcome"] == resolved["outcomes"][winner]
    assert json.loads(market["outcomePrices"]) == ["1" if outcome == winner else "0" for outcome in (0, 1)]
    assert (market["closed"], market["acceptingOrders"], market["umaResolutionStatus"]) == (True, False, "resolved")
    assert market["closedTime"].endswith("+00")


async def read_to_the_end(socket: websockets.ClientConnection) -> None:
    with contextlib.suppress(websockets.ConnectionClosed):
        async for _ in socket:
            pass


def test_a_connection_that_does_not_keep_up_is_let_go(http):
    with Sandbox(simulate=5, rate=3000, queue_size=200) as exchange:
        tokens = open_tokens(http, exchange)

        async def stall() -> int | None:
            async with websockets.connect(exchange.socket_url, max_size=1 << 25, max_queue=1, proxy=None) as socket:
                await socket.send(json.dumps({"type": "market", "assets_ids": tokens}))
                await asyncio.to_thread(until, lambda: exchange.hub.slow == 1)
                await read_to_the_end(socket)
                return socket.close_code

        assert asyncio.run(stall()) == 1013
        assert http.get(f"{exchange.url}/sandbox/status").json()["sockets"]["let_go_as_slow"] == 1


def test_a_connection_that_asks_for_nothing_is_closed(sandbox, monkeypatch):
    monkeypatch.setattr("upstream.sandbox.routes.market_channel.UNSUBSCRIBED_S", 0.1)

    async def wait() -> int | None:
        async with websockets.connect(sandbox.socket_url, proxy=None) as socket:
            with pytest.raises(websockets.ConnectionClosed):
                await asyncio.wait_for(socket.recv(), 60)
            return socket.close_code

    assert asyncio.run(wait()) == 1008


def test_the_sandbox_ends_although_a_client_that_has_closed_reads_nothing_more(http):
    with Sandbox(simulate=1, rate=5000, markets=50) as sandbox:
        tokens = open_tokens(http, sandbox)
        client = connect(sandbox.socket_url, max_queue=1, proxy=None, legacy=True)
        client.send(json.dumps({"type": "market", "assets_ids": tokens}))

        def server_side():
            return sandbox.call(lambda: next(iter(sandbox.hub.connections.values()))._socket)

        until(lambda: not server_side().is_writable())
        client.socket.sendall(b"\x88\x82" + bytes(4) + (1000).to_bytes(2))  # a close frame
        socket = server_side()
        until(lambda: socket.conn.state.name == "CLOSING")
        assert not socket.close_sent
    client.socket.close()
