import asyncio
import contextlib
import gc
import itertools
import json
import time
import weakref

import pytest
from websockets.asyncio.server import serve

from tests.upstream.polymarket.test_market_frames import BOOK, FIRST, PRICE_CHANGE, SECOND, TRADE, frame
from tests.upstream.servers import request, serving
from upstream.polymarket.market_channel.socket import (
    LARGE_FRAME,
    Book,
    LastTrade,
    MarketSocket,
    Pong,
    RefusedObject,
    SocketLost,
    backoff,
)
from upstream.transport.http import USER_AGENT


@contextlib.asynccontextmanager
async def exchange(conversation):
    """Run a market channel on loopback, with `conversation` as its side of each connection."""
    async with serve(conversation, "127.0.0.1", 0, close_timeout=0.2) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/ws/market"


async def abort(connection):
    connection.transport.abort()


async def lost(socket):
    """Listen until the connection ends; return everything received, and the reason."""
    said = []
    try:
        async for _, messages in socket:
            said += messages
    except SocketLost as end:
        return said, end.reason
    raise AssertionError("ended without SocketLost")


def test_a_connection_that_was_lost_needs_no_garbage_collection():
    ended = []

    async def listen():
        async with exchange(abort) as url:
            for _ in range(3):
                async with MarketSocket(url, ["11"]) as socket:
                    await lost(socket)
                ended.append(weakref.ref(socket))
                del socket

    gc.collect()
    gc.disable()  # a run of the feed does not look again at what has survived one collection
    try:
        asyncio.run(listen())
        assert [each() for each in ended] == [None, None, None]
    finally:
        gc.enable()


def test_a_frame_that_the_caller_keeps_is_counted_and_not_parsed():
    kept = []

    def keep(text, received):
        kept.append((text, received))
        return len(kept) < 3

    async def conversation(connection):
        await connection.recv()
        for each in (frame(TRADE), b"not even JSON", frame(TRADE)):
            await connection.send(each)
        await connection.close()

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["11"], keep=keep) as socket:
            return await lost(socket), socket.frames

    (said, _), frames = asyncio.run(listen())
    assert [type(each) for each in said] == [LastTrade]
    assert [text for text, _ in kept] == [frame(TRADE), b"not even JSON", frame(TRADE)]
    assert frames == 3


def test_what_the_exchange_says_arrives_in_order_with_the_time_it_came():
    heard = []

    async def conversation(connection):
        heard.append(connection.request.headers["User-Agent"])
        heard.append(json.loads(await connection.recv()))
        await connection.send(frame([BOOK]).decode())
        await connection.send("[]")
        await connection.send(frame(PRICE_CHANGE).decode())
        await connection.send(frame(TRADE))

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["11", "22", "11"]) as socket:
            before = time.monotonic()
            frames = [await anext(socket) for _ in range(4)]
            assert [before <= received <= time.monotonic() for received, _ in frames] == [True] * 4
            assert socket.frames == 4
            return [messages for _, messages in frames]

    book, nothing, changes, trade = asyncio.run(listen())

    assert heard == [
        USER_AGENT,
        {"type": "market", "assets_ids": ["11", "22"], "custom_feature_enabled": True},
    ]
    assert isinstance(book[0], Book)
    assert nothing == []
    assert changes == [FIRST, SECOND]
    assert isinstance(trade[0], LastTrade)


def test_tokens_are_added_and_taken_away_once_each():
    heard = []

    async def conversation(connection):
        heard.extend([json.loads(message) async for message in connection])

    async def change():
        async with exchange(conversation) as url, MarketSocket(url, ["1"]) as socket:
            await socket.subscribe(["1", "2", "3", "2"])
            await socket.subscribe(["2"])
            await socket.unsubscribe(["1", "9"])
            await socket.unsubscribe(["9"])
            await socket.subscribe(["1"])
            return socket.assets

    assert asyncio.run(change()) == ["2", "3", "1"]
    assert heard[1:] == [
        {"operation": "subscribe", "assets_ids": ["2", "3"], "custom_feature_enabled": True},
        {"operation": "unsubscribe", "assets_ids": ["1"], "custom_feature_enabled": True},
        {"operation": "subscribe", "assets_ids": ["1"], "custom_feature_enabled": True},
    ]


def test_ping_is_sent_as_text_and_its_answer_keeps_the_connection():
    pings = []

    async def conversation(connection):
        await connection.recv()
        async for message in connection:
            pings.append(message)
            await connection.send("PONG")

    async def listen():
        async with (
            exchange(conversation) as url,
            MarketSocket(url, ["1"], ping_every_s=0.05, stale_after_s=60) as socket,
        ):
            return [messages async for _, messages in _first(socket, 10)]

    assert asyncio.run(listen()) == [[Pong()]] * 10
    assert pings[:10] == ["PING"] * 10


async def _first(socket, count):
    for _ in range(count):
        yield await anext(socket)


def test_a_silent_exchange_is_noticed_even_if_it_reads_nothing():
    noticed = asyncio.Event()

    async def conversation(connection):
        await connection.recv()
        connection.transport.pause_reading()
        await noticed.wait()

    async def listen():
        async with (
            exchange(conversation) as url,
            MarketSocket(url, ["1"], ping_every_s=0.1, stale_after_s=0.3) as socket,
        ):
            started = time.monotonic()
            result = await lost(socket)
            noticed.set()
            return *result, time.monotonic() - started

    said, reason, took = asyncio.run(listen())

    assert said == []
    assert reason == "silent for 0.3 s"
    assert took > 0.25


def test_silence_is_noticed_by_those_who_listen_in_short_turns_too():
    async def conversation(connection):
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["1"], stale_after_s=0.3) as socket:
            for _ in range(100):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(anext(socket), 0.05)

    with pytest.raises(SocketLost, match="silent"):
        asyncio.run(listen())


def test_a_busy_listener_is_not_mistaken_for_a_silent_exchange():
    async def conversation(connection):
        await connection.recv()
        await connection.send("PONG")
        await asyncio.sleep(1.4)
        await connection.send("PONG")
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["1"], stale_after_s=1) as socket:
            await anext(socket)
            await asyncio.sleep(1.3)
            return await anext(socket)

    assert asyncio.run(listen())[1] == [Pong()]


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (lambda connection: connection.close(1001, "going away"), "closed by the exchange: 1001 going away"),
        (lambda connection: connection.close(), "closed by the exchange: 1000"),
        (abort, "connection broken off"),
    ],
)
def test_however_the_exchange_ends_it_what_was_said_before_is_heard(end, reason):
    async def conversation(connection):
        await connection.recv()
        await connection.send(frame(TRADE))
        await asyncio.sleep(0.05)
        await end(connection)

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["1"]) as socket:
            result = await lost(socket)
            with pytest.raises(SocketLost):
                await anext(socket)
            with pytest.raises(SocketLost):
                await socket.subscribe(["2"])
            return result

    said, why = asyncio.run(listen())

    assert [type(message) for message in said] == [LastTrade]
    assert why == reason


def test_a_frame_beyond_the_cap_ends_the_connection():
    async def conversation(connection):
        await connection.recv()
        await connection.send("[" + " " * 5000 + "]")

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["1"], max_frame=4000) as socket:
            return await lost(socket)

    assert asyncio.run(listen())[1].startswith("closed by us: 1009")


def test_what_cannot_be_read_does_not_end_the_connection():
    async def conversation(connection):
        await connection.recv()
        for sent in ("nonsense", b"\xff", frame([7, TRADE])):
            await connection.send(sent)
        await connection.recv()

    async def listen():
        async with exchange(conversation) as url, MarketSocket(url, ["1"]) as socket:
            return [type(each) for _ in range(3) for each in (await anext(socket))[1]]

    assert asyncio.run(listen()) == [RefusedObject, RefusedObject, RefusedObject, LastTrade]


def test_a_very_large_frame_does_not_hold_the_loop():
    levels = [{"price": f"0.{number:03}", "size": f"{number}.5"} for number in range(1, 500)]
    books = [BOOK | {"asset_id": str(number), "bids": levels, "asks": []} for number in range(400)]
    sent = frame(books)

    async def conversation(connection):
        await connection.recv()
        await connection.send(sent)
        await connection.recv()

    async def listen():
        gaps = []

        async def tick():
            while True:
                before = time.monotonic()
                await asyncio.sleep(0)
                gaps.append(time.monotonic() - before)

        async with exchange(conversation) as url, MarketSocket(url, ["1"]) as socket:
            ticking = asyncio.create_task(tick())
            _, messages = await anext(socket)
            ticking.cancel()
        return messages, len(gaps)

    messages, turns = asyncio.run(listen())

    assert len(sent) > LARGE_FRAME
    assert [(book.asset_id, len(book.bids)) for book in messages] == [(str(number), 499) for number in range(400)]
    assert turns >= 12  # one for each few dozen books, at least


def test_an_exchange_that_never_answers_the_opening_is_given_up():
    async def listen(url):
        async with MarketSocket(url.replace("http", "ws"), ["1"], open_timeout_s=0.2):
            raise AssertionError("opened")

    def hang(connection):
        request(connection)
        connection.recv(1)  # until it disconnects

    with serving(hang) as url, pytest.raises(SocketLost, match="not open within"):
        asyncio.run(listen(url))


def test_a_refused_opening_is_told():
    async def listen(url):
        async with MarketSocket(url, ["1"]):
            raise AssertionError("opened")

    def forbid(connection):
        request(connection)
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")

    with serving(forbid) as url, pytest.raises(SocketLost, match="403"):
        asyncio.run(listen(url.replace("http", "ws")))
    with pytest.raises(SocketLost, match="cannot be opened"):
        asyncio.run(listen(url.replace("http", "ws")))  # nothing listens there any more
    with pytest.raises(SocketLost, match="cannot be opened"):
        asyncio.run(listen("http://127.0.0.1/"))


def test_closing_is_prompt_and_may_be_repeated():
    async def conversation(connection):
        await connection.wait_closed()

    async def close():
        async with exchange(conversation) as url:
            socket = await MarketSocket(url, ["1"]).__aenter__()
            started = time.monotonic()
            await socket.close()
            await socket.close()
            with pytest.raises(SocketLost):
                await anext(socket)
            others = [task for task in asyncio.all_tasks() if "heartbeat" in task.get_name()]
            return time.monotonic() - started, others

    took, left = asyncio.run(close())

    assert took < 1.5
    assert left == []


def test_waits_double_up_to_their_most_with_full_jitter():
    ceilings = list(itertools.islice(backoff(first_s=1, most_s=10, uniform=lambda low, high: high), 6))
    drawn = list(itertools.islice(backoff(), 200))

    assert ceilings == [1, 2, 4, 8, 10, 10]
    assert all(0 <= wait <= 30 for wait in drawn)
    assert len(set(drawn)) > 100
