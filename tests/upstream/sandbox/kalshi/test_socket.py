"""The sandbox Kalshi's WebSocket: acknowledgements, numbers, books, both ways to give prices, and heartbeats."""

import asyncio
import json

import websockets

from tests.patience import PATIENCE_S
from tests.upstream.sandbox.kalshi.conftest import (
    MINUTE,
    SECOND,
    START_MS,
    Signer,
    converse,
    open_tickers,
    play,
    rest_books,
    truth,
)
from upstream.sandbox.kalshi.server import KalshiSandbox


def numbered(messages, sid):
    return [message["seq"] for message in messages if message.get("sid") == sid and "seq" in message]


def test_every_channel_is_acknowledged_before_data_and_numbered_without_gaps(sandbox, http):
    play(sandbox, 10 * SECOND)
    tickers = open_tickers(http, sandbox)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", "trade", "ticker", market_tickers=tickers, use_yes_price=False)
        await listener.play(MINUTE)

    heard = converse(sandbox, http, talk)

    first = heard.messages[:3]
    assert [one["msg"] for one in first] == [
        {"channel": "orderbook_delta", "sid": 1},
        {"channel": "trade", "sid": 2},
        {"channel": "ticker", "sid": 3},
    ]
    assert all("seq" not in one and one["type"] == "subscribed" for one in first)
    assert [one["msg"]["market_ticker"] for one in heard.messages[3:13]] == tickers
    for sid in (1, 2):
        assert numbered(heard.messages, sid) == list(range(1, len(numbered(heard.messages, sid)) + 1))
        assert len(numbered(heard.messages, sid)) > 20
    assert heard.of("ticker")
    assert numbered(heard.messages, 3) == [], "ticker is not numbered"
    assert all("sending_ts_ms" in one for one in heard.of("orderbook_delta", "trade", "ticker"))


def test_snapshot_and_changes_add_up_to_the_book_that_rest_shows(sandbox, http):
    play(sandbox, 10 * SECOND)
    tickers = open_tickers(http, sandbox)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers)
        await listener.play(2 * MINUTE)

    heard = converse(sandbox, http, talk)

    assert heard.books() == rest_books(http, sandbox, tickers)
    lines = [line for line in truth(http, sandbox) if line["kind"] == "orderbook_delta" and line.get("sent")]
    sent = [message["msg"] for message in heard.of("orderbook_delta")]
    assert len(sent) > 100
    assert [
        (line["msg"]["market_ticker"], line["msg"]["side"], line["msg"]["delta_fp"], line["msg"]["ts_ms"])
        for line in lines
    ] == [(msg["market_ticker"], msg["side"], msg["delta_fp"], msg["ts_ms"]) for msg in sent]


def test_prices_of_the_no_side_are_yes_prices_when_asked_for(sandbox, http):
    tickers = open_tickers(http, sandbox)

    async def both(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers, use_yes_price=False)
        await listener.play(20 * SECOND)

    async def yes(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers, use_yes_price=True)
        await listener.settle()

    own = converse(sandbox, http, both).books()
    as_yes = converse(sandbox, http, yes).books()

    for ticker in tickers:
        assert as_yes[ticker]["yes"] == own[ticker]["yes"]
        mirrored = {f"{1 - float(price):.4f}": size for price, size in own[ticker]["no"].items()}
        assert as_yes[ticker]["no"] == mirrored


def test_the_key_of_an_empty_side_is_left_out(sandbox, http):
    ticker = open_tickers(http, sandbox)[0]
    market = sandbox.exchange.markets[ticker]
    sandbox.call(lambda: sandbox.exchange.replace_book(market, START_MS, [], [(900_000, 1_000_000)]))

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_ticker=ticker)
        await listener.listen(lambda: listener.of("orderbook_snapshot"))
        await asyncio.to_thread(sandbox.call, lambda: sandbox.exchange.cancel_orders(market))
        await listener.ask("update_subscription", sids=[1], action="get_snapshot", market_tickers=[ticker])

    one_side, none = [one["msg"] for one in converse(sandbox, http, talk).of("orderbook_snapshot")]

    assert one_side["no_dollars_fp"] == [["0.1000", "1.00"]]
    assert "yes_dollars_fp" not in one_side
    assert set(none) == {"market_ticker", "market_id"}


def test_rest_and_socket_tell_of_the_same_trades(sandbox, http):
    async def talk(listener):
        await listener.subscribe("trade")
        await listener.play(20 * SECOND)

    trades = [message["msg"] for message in converse(sandbox, http, talk).of("trade")]
    page = http.get(f"{sandbox.rest_url}/markets/trades", params={"limit": len(trades)}).json()["trades"]

    assert len(trades) > 50
    assert [trade["trade_id"] for trade in page] == [trade["trade_id"] for trade in reversed(trades)]
    assert page[0].keys() - trades[-1].keys() == {"ticker", "created_time"}
    assert all(trade["taker_side"] == trade["taker_outcome_side"] for trade in trades)
    assert {(trade["taker_outcome_side"], trade["taker_book_side"]) for trade in trades} == {
        ("yes", "bid"),
        ("no", "ask"),
    }


def test_a_ticker_is_the_market_as_rest_shows_it(sandbox, http):
    ticker = open_tickers(http, sandbox)[0]

    async def talk(listener):
        await listener.subscribe("ticker", market_ids=[sandbox.exchange.markets[ticker].id], send_initial_snapshot=True)
        await listener.play(MINUTE)

    heard = converse(sandbox, http, talk).of("ticker")
    market = http.get(f"{sandbox.rest_url}/markets/{ticker}").json()["market"]

    assert {one["msg"]["market_ticker"] for one in heard} == {ticker}
    last = heard[-1]["msg"]
    assert last["price_dollars"] == market["last_price_dollars"]
    for name in ("yes_bid_dollars", "yes_ask_dollars", "yes_bid_size_fp", "yes_ask_size_fp", "volume_fp"):
        assert last[name] == market[name]
    assert isinstance(last["ts"], int)
    assert last["ts_ms"] // 1000 == last["ts"]


def test_snapshots_are_sent_again_without_leaving_the_numbers(sandbox, http):
    tickers = open_tickers(http, sandbox)

    async def talk(listener):
        await listener.subscribe("orderbook_delta", market_tickers=tickers)
        await listener.play(10 * SECOND)
        answer = await listener.ask("update_subscription", sid=1, action="get_snapshot", market_tickers=tickers)
        assert answer["type"] == "orderbook_snapshot"
        await listener.play(10 * SECOND)

    heard = converse(sandbox, http, talk)

    assert len(heard.of("orderbook_snapshot")) == 2 * len(tickers)
    assert numbered(heard.messages, 1) == list(range(1, len(numbered(heard.messages, 1)) + 1))


def test_heartbeats_come_as_pings_and_pings_are_answered(shared, http, monkeypatch):
    monkeypatch.setattr("upstream.sandbox.kalshi.sockets.hub.PING_S", 0.01)
    signer = Signer(shared, http)

    async def wait():
        async with websockets.connect(
            shared.socket_url, additional_headers=signer.headers("/trade-api/ws/v2"), proxy=None
        ) as socket:
            pinged = asyncio.Event()
            received = []
            original = socket.protocol.recv_frame

            def watch(frame):
                received.append((frame.opcode.name, bytes(frame.data)))
                if frame.opcode.name == "PING":
                    pinged.set()
                original(frame)

            socket.protocol.recv_frame = watch
            await asyncio.wait_for(pinged.wait(), PATIENCE_S)
            await asyncio.wait_for(await socket.ping(), PATIENCE_S)
            return received

    assert ("PING", b"heartbeat") in asyncio.run(wait())


def test_a_client_that_does_not_read_gets_error_25_and_may_subscribe_again(http):
    with KalshiSandbox(simulate=5, start_ms=START_MS, markets=40, rate=40, hold=True, queue_size=100) as exchange:

        async def talk(listener):
            await listener.subscribe("trade", "market_lifecycle_v2")
            await asyncio.to_thread(play, exchange, 5 * MINUTE)
            await listener.listen(lambda: len(listener.of("error")) == 2)
            assert (await listener.ask("list_subscriptions"))["msg"] == []
            again = await listener.subscribe("trade")
            assert again["msg"] == {"channel": "trade", "sid": 3}

        heard = converse(exchange, http, talk)

        errors = heard.of("error")
        assert [(one["msg"]["code"], one["sid"]) for one in errors] == [(25, 1), (25, 2)]
        assert all(one["seq"] > 1 for one in errors)
        assert http.get(f"{exchange.url}/sandbox/status").json()["sockets"]["overflows"] == 1


def test_commands_may_come_as_binary_frames(shared, http):
    async def talk(listener):
        await listener.socket.send(json.dumps({"id": 7, "cmd": "list_subscriptions"}).encode())
        await listener.listen(lambda: listener.messages)

    assert converse(shared, http, talk).messages == [{"id": 7, "type": "ok", "msg": []}]
