import asyncio
import contextlib

import pytest
from websockets.exceptions import ConnectionClosed

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.conversations import acknowledge, books, collect, commands, exchange, of, place
from tests.upstream.kalshi.samples import DELTA, SNAPSHOT, TICKER, frame
from upstream.kalshi.socket import conversation as conversation_module
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    Connected,
    Disconnected,
    SequenceGap,
)


class SetClock:
    """A clock that the exchange's side of the test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def set_clock(monkeypatch):
    monkeypatch.setattr(conversation_module, "TICK_S", 0.02)
    return SetClock()


def until_lost(conversation, clock):
    async def listen():
        async with exchange(conversation) as url:
            feed = books(url, clock=clock)
            events = await collect(feed, of(Disconnected))
            await feed.close()
            return events

    return asyncio.run(listen())


def test_a_subscription_that_overflows_is_subscribed_to_again(set_clock):
    heard = []

    async def conversation(connection):
        async def pass_time():
            while len(heard) == 1:
                set_clock.now += 0.25
                await asyncio.sleep(0.01)

        async for command in commands(connection):
            heard.append(command["cmd"])
            await acknowledge(connection, command)
            await connection.send(place(SNAPSHOT, 1))
            if len(heard) == 2:
                await connection.close()
                return
            await connection.send(place(samples.OVERFLOW, 2))
            passing = asyncio.create_task(pass_time())
        await passing

    events = until_lost(conversation, set_clock)

    assert [type(event) for event in events] == [Connected, BookAnchored, SequenceGap, BookAnchored, Disconnected]
    assert events[2].reason == "error 25: Buffer overflow"
    assert heard == ["subscribe", "subscribe"]
    assert set_clock.now >= 1001


def test_an_exchange_that_acknowledges_nothing_is_left(set_clock):
    async def conversation(connection):
        async for _ in connection:
            set_clock.now += 10

    assert until_lost(conversation, set_clock)[-1].reason == "a command was not answered"


def test_a_busy_feed_looks_at_what_is_overdue_too(set_clock):
    async def conversation(connection):
        await connection.recv()
        with contextlib.suppress(ConnectionClosed):
            while True:
                set_clock.now += 0.5
                await connection.send(frame(samples.QUOTE).decode())
                await asyncio.sleep(0.002)

    events = until_lost(conversation, set_clock)

    assert events[-1].reason == "a command was not answered"
    assert {event.reason for event in events[1:-1]} == {"no such subscription"}


def test_an_answer_that_was_queued_while_the_caller_was_busy_is_not_overdue(set_clock):
    answered = asyncio.Event()

    async def conversation(connection):
        async for command in commands(connection):
            if command["cmd"] == "subscribe":
                await acknowledge(connection, command)
                await connection.send(place(SNAPSHOT, 1))
            else:
                await connection.send(place(DELTA, 2))
                listed = {"market_tickers": [TICKER, samples.OTHER]}
                await connection.send(place({"type": "ok", "id": command["id"], "msg": listed}, 3))
                await connection.send(place(SNAPSHOT, 4))
                answered.set()

    async def listen():
        async with exchange(conversation) as url:
            feed = books(url, clock=set_clock)
            events = await collect(feed, of(BookAnchored))
            await feed.follow([samples.OTHER])
            await answered.wait()
            set_clock.now += 3600
            events += await collect(feed, of(BookAnchored))
            await feed.close()
            return events

    events = asyncio.run(listen())
    assert [type(event) for event in events] == [Connected, BookAnchored, BookChange, BookAnchored]
