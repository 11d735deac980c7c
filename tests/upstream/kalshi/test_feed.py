import asyncio
import itertools
import time
from email.utils import formatdate

import pytest

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.conversations import (
    CLOCK_WINDOW_S,
    PATH,
    acknowledge,
    books,
    collect,
    commands,
    exchange,
    of,
    place,
    refusing,
    signer,
)
from tests.upstream.kalshi.keys import private_key, verify
from tests.upstream.kalshi.samples import DELTA, SNAPSHOT, TICKER
from upstream.kalshi.socket import feed as feed_module
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    Connected,
    Disconnected,
    Dropped,
    SequenceGap,
    SnapshotsRequested,
)


def test_a_gap_is_reported_and_healed_over_the_socket():
    asked = []

    async def conversation(connection):
        async for command in commands(connection):
            asked.append(command)
            if command["cmd"] == "subscribe":
                await acknowledge(connection, command)
                for message, seq in ((SNAPSHOT, 1), (DELTA, 2), (DELTA, 2), (DELTA, 4)):
                    await connection.send(place(message, seq))
            else:
                await connection.send(place(SNAPSHOT, 5))
                await connection.send(place(DELTA, 6))

    async def listen():
        async with exchange(conversation) as url:
            feed = books(url)
            events = await collect(feed, of(BookChange, 2))
            book = feed.book(TICKER)
            await feed.close()
            return events, book, feed.book(TICKER)

    events, book, afterwards = asyncio.run(listen())

    assert [type(event) for event in events] == [
        Connected,
        BookAnchored,
        BookChange,
        Dropped,
        SequenceGap,
        Dropped,
        SnapshotsRequested,
        BookAnchored,
        BookChange,
    ]
    assert [command["params"].get("action") for command in asked] == [None, "get_snapshot"]
    assert book.yes == [(460_000, 1_500_000)]
    assert afterwards is None


def test_a_lost_connection_is_said_with_its_books_and_the_next_is_signed_anew():
    times, waits, draws = [], [], []

    async def conversation(connection):
        times.append(verify(private_key("ed25519"), connection.request.headers, "GET", PATH))
        async for command in commands(connection):
            await acknowledge(connection, command)
            await connection.send(place(SNAPSHOT, 1))
            await connection.close(1001, "maintenance")

    def uniform(low, high):
        draws.append((low, high))
        return high / 2

    async def listen():
        ticks = itertools.count()
        async with exchange(conversation) as url:
            key = signer(wall=lambda: time.time() + next(ticks) / 100)
            feed = books(url, waits=waits, signer=key, uniform=uniform)
            events = await collect(feed, of(Disconnected, 3))
            await feed.close()
            return events

    events = asyncio.run(listen())

    assert [type(event) for event in events] == [Connected, BookAnchored, Disconnected] * 3
    assert [event.connection for event in events if isinstance(event, Connected)] == [1, 2, 3]
    lost = [event for event in events if isinstance(event, Disconnected)]
    assert {event.reason for event in lost} == {"closed by the exchange: 1001 maintenance"}
    assert [event.tickers for event in lost] == [[TICKER]] * 3
    assert len(set(times)) == 3
    assert draws == [(0, 0.25), (0, 0.5)]
    assert waits == [0.125, 0.25]


def test_waits_begin_anew_after_a_connection_that_lasted(monkeypatch):
    waits = []
    monkeypatch.setattr(feed_module, "LASTING_S", 0.0)

    async def conversation(connection):
        await connection.close()

    async def listen():
        async with exchange(conversation) as url:
            feed = books(url, waits=waits, uniform=lambda low, high: high)
            await collect(feed, of(Disconnected, 4))
            await feed.close()

    asyncio.run(listen())

    assert waits == [0.25] * 3


@pytest.mark.parametrize("ahead_s", [300, -300])
def test_a_refused_clock_is_set_by_the_exchanges_and_the_next_connection_opens(ahead_s):
    refused = []

    def check(connection, upgrade):
        now = time.time() + ahead_s
        at = verify(private_key("rsa"), upgrade.headers, "GET", PATH) / 1000
        if abs(at - now) > CLOCK_WINDOW_S:
            refused.append(at)
            return refusing(401, samples.CLOCK_ERROR, Date=formatdate(now, usegmt=True))(connection, upgrade)
        return None

    async def conversation(connection):
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation, check) as url:
            feed = books(url, signer=signer("rsa"))
            events = await collect(feed, of(Connected))
            await feed.close()
            return events

    lost, connected = asyncio.run(listen())

    said, _, set_by = lost.reason.removesuffix(" s").rpartition(" ")
    assert said == "cannot be opened: 401 header_timestamp_expired; the clock is set"
    assert abs(int(set_by) - ahead_s) < CLOCK_WINDOW_S
    assert (lost.connection, connected.connection, len(refused)) == (1, 2, 1)


def test_a_refused_clock_without_the_exchanges_time_is_said_and_tried_again():
    async def listen():
        async with exchange(None, refusing(401, samples.CLOCK_ERROR, Date="soon")) as url:
            feed = books(url)
            events = await collect(feed, of(Disconnected, 2))
            await feed.close()
            return events

    for event in asyncio.run(listen()):
        assert event.reason.endswith("header_timestamp_expired; it does not say what time it is")


def test_markets_are_followed_and_unfollowed_on_the_open_connection_and_on_the_next():
    heard = []

    async def conversation(connection):
        async for command in commands(connection):
            heard.append(command)
            if command["cmd"] == "subscribe":
                await acknowledge(connection, command)
                await connection.send(place(SNAPSHOT, 1))
            elif command["params"]["action"] == "add_markets":
                listed = {"type": "ok", "id": command["id"], "msg": {"market_tickers": [TICKER, "B"]}}
                await connection.send(place(listed, 2))
                other = SNAPSHOT | {"msg": SNAPSHOT["msg"] | {"market_ticker": "B"}}
                await connection.send(place(other, 3))
            else:
                await connection.close()

    async def listen():
        async with exchange(conversation) as url:
            feed = books(url)
            await collect(feed, of(BookAnchored))
            await feed.follow([TICKER, "B"])
            await collect(feed, of(BookAnchored))
            assert feed.book("B").no == [(480_000, 2_000_000)]
            await feed.unfollow([TICKER, "C"])
            assert feed.book(TICKER) is None
            await collect(feed, of(Connected))
            await collect(feed, lambda event: True)
            await feed.close()
            await feed.follow(["D"])

    asyncio.run(listen())

    assert [(command["cmd"], command["params"]["market_tickers"]) for command in heard] == [
        ("subscribe", [TICKER]),
        ("update_subscription", ["B"]),
        ("update_subscription", [TICKER]),
        ("subscribe", ["B"]),
    ]
