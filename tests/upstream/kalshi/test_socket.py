import asyncio
import contextlib
import itertools
import json
import time
from email.utils import formatdate
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.keys import KEY_ID, private_key, verify
from tests.upstream.kalshi.samples import DELTA, SNAPSHOT, TICKER, frame
from tests.upstream.servers import request, serving
from upstream.kalshi.signing import Signer
from upstream.kalshi.socket import connection as connection_module
from upstream.kalshi.socket import feed as feed_module
from upstream.kalshi.socket.connection import KalshiSocket
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    Connected,
    Disconnected,
    Dropped,
    SequenceGap,
    SnapshotsRequested,
)
from upstream.kalshi.socket.feed import KalshiFeed
from upstream.kalshi.socket.messages import BookSnapshot
from upstream.transport.errors import RefusedObject, SocketLost, Unauthenticated
from upstream.transport.http import USER_AGENT

PATH = "/trade-api/ws/v2"
CLOCK_WINDOW_S = 20


def signer(kind="ed25519", **options):
    return Signer(KEY_ID, private_key(kind), **options)


@contextlib.asynccontextmanager
async def exchange(conversation, process_request=None):
    """Run the exchange's socket on loopback, with `conversation` as its side of each connection."""
    async with serve(
        conversation, "127.0.0.1", 0, close_timeout=0.2, ping_interval=None, process_request=process_request
    ) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"


def refusing(status, body, **headers):
    """Return a server's answer to an upgrade that it refuses."""

    def process(connection, _):
        response = connection.respond(status, json.dumps(body) if isinstance(body, dict) else body)
        for name, value in headers.items():
            del response.headers[name]
            response.headers[name] = value
        return response

    return process


async def commands(connection):
    async for command in connection:
        yield json.loads(command)


async def acknowledge(connection, command):
    """Acknowledge each channel of a subscription, with sids by the order of the channels."""
    for sid, channel in enumerate(command["params"]["channels"], start=1):
        body = {"type": "subscribed", "id": command["id"], "msg": {"channel": channel, "sid": sid}}
        await connection.send(frame(body).decode())


def place(message, seq, sid=1):
    return frame(message | {"sid": sid, "seq": seq}).decode()


async def collect(feed, until):
    """Return a feed's events up to the first for which `until` is true."""
    events = []
    async for _, some in feed:
        events += some
        if any(map(until, some)):
            return events
    raise AssertionError("ended")


def of(kind, count=1):
    """Return a condition: the count-th event of a kind."""
    seen = itertools.count(1)
    return lambda event: isinstance(event, kind) and next(seen) == count


def books(url, *, waits=None, **options):
    """Return a feed of one market's book."""

    async def sleep(seconds):
        if waits is not None:
            waits.append(seconds)

    options = {"channels": ["orderbook_delta"], "everywhere": [], "sleep": sleep, "signer": signer()} | options
    return KalshiFeed(options.pop("signer"), url, [TICKER], **options)


# --- One connection ---


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_the_upgrade_is_signed_and_neither_key_nor_signature_is_logged(kind, caplog):
    caplog.set_level(1)
    heard = []

    async def conversation(connection):
        heard.append(connection.request)
        await connection.send(frame(SNAPSHOT).decode())
        await connection.send(frame(DELTA))  # as a binary frame
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(kind), url) as socket:
            before = time.monotonic()
            read = [await socket.receive() for _ in range(2)]
            assert all(before - 1 <= received <= time.monotonic() for received, _ in read)
            return [message.message for _, message in read]

    snapshot, delta = asyncio.run(listen())
    [upgrade] = heard
    at = verify(private_key(kind), upgrade.headers, "GET", PATH)

    assert abs(at / 1000 - time.time()) < CLOCK_WINDOW_S
    assert upgrade.path == PATH
    assert upgrade.headers["User-Agent"] == USER_AGENT
    assert "Sec-WebSocket-Extensions" not in upgrade.headers
    assert (snapshot.ticker, delta.change) == (TICKER, -3_000_000)
    ours = "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("websockets"))
    assert ours
    assert KEY_ID not in ours
    assert upgrade.headers["KALSHI-ACCESS-SIGNATURE"] not in ours


def test_without_a_key_the_socket_says_what_is_missing():
    async def listen():
        async with KalshiSocket(None, "ws://127.0.0.1:9" + PATH):
            raise AssertionError("opened")

    with pytest.raises(Unauthenticated, match="PRESAGE_KALSHI_KEY_ID and PRESAGE_KALSHI_PRIVATE_KEY_FILE"):
        asyncio.run(listen())
    with pytest.raises(Unauthenticated):
        asyncio.run(anext(KalshiFeed(None, "ws://127.0.0.1:9" + PATH)))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (samples.NESTED_ERROR, "401 authentication_error: INCORRECT_API_KEY_SIGNATURE"),
        (samples.NO_HEADERS_ERROR, "401 token_authentication_failure"),
        (samples.FLAT_ERROR, "401 invalid_parameters: invalid parameters: limit"),
        (samples.BARE_ERROR, "401 Invalid format for parameter limit: …"),
        ("<html>", "401 Unauthorized"),
    ],
)
def test_a_refused_upgrade_is_told_by_the_exchanges_words(body, said):
    async def listen():
        async with exchange(None, refusing(401, body)) as url, KalshiSocket(signer(), url):
            raise AssertionError("opened")

    with pytest.raises(SocketLost) as caught:
        asyncio.run(listen())
    assert caught.value.reason == f"cannot be opened: {said}"


def test_a_redirect_is_not_followed_with_a_signature():
    async def listen(url):
        async with KalshiSocket(signer(), url.replace("http", "ws") + PATH):
            raise AssertionError("opened")

    def redirect(connection):
        request(connection)
        connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n".encode())

    asked = []
    with (
        serving(lambda connection: asked.append(request(connection))) as elsewhere,
        serving(redirect) as url,
        pytest.raises(SocketLost, match="cannot be opened: 302"),
    ):
        asyncio.run(listen(url))
    assert asked == []


def test_the_way_leads_by_the_environments_proxy(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "inside.test")

    assert connection_module._proxy(urlsplit("wss://exchange.test/x")) == "http://proxy.test:3128"
    assert connection_module._proxy(urlsplit("wss://inside.test/x")) is None
    assert connection_module._proxy(urlsplit("ws://exchange.test/x")) is None


def test_nobody_listening_is_a_lost_socket():
    async def listen(url):
        async with KalshiSocket(signer(), url, open_timeout_s=0.2):
            raise AssertionError("opened")

    def hang(connection):
        request(connection)
        connection.recv(1)  # until it disconnects

    with serving(hang) as url, pytest.raises(SocketLost, match=r"timeout|not open within"):
        asyncio.run(listen(url.replace("http", "ws") + PATH))
    with pytest.raises(SocketLost, match="cannot be opened"):
        asyncio.run(listen(url.replace("http", "ws") + PATH))  # nothing listens there any more


def test_pings_are_answered_and_keep_a_quiet_connection():
    async def conversation(connection):
        for _ in range(10):
            await (await connection.ping(b"heartbeat"))
            await asyncio.sleep(0.25)
        await connection.send(frame(SNAPSHOT).decode())
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(), url, stale_after_s=2) as socket:
            _, read = await socket.receive()
            return read.message

    assert isinstance(asyncio.run(listen()), BookSnapshot)


def test_silence_without_pings_ends_the_connection_even_for_those_who_listen_in_short_turns():
    async def conversation(connection):
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(), url, stale_after_s=0.3) as socket:
            for _ in range(100):
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(socket.receive(), 0.05)

    with pytest.raises(SocketLost, match=r"silent for 0\.3 s"):
        asyncio.run(listen())


def test_a_busy_listener_is_not_mistaken_for_a_silent_exchange():
    async def conversation(connection):
        await connection.send(frame(SNAPSHOT).decode())
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(), url, stale_after_s=0.5) as socket:
            await asyncio.sleep(0.9)
            return (await socket.receive())[1].seq

    assert asyncio.run(listen()) == 1


def test_an_exchange_that_reads_no_commands_is_left():
    async def conversation(connection):
        connection.transport.pause_reading()
        await connection.send(frame(SNAPSHOT).decode())
        await left.wait()
        connection.transport.abort()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(), url, stale_after_s=2) as socket:
            await socket.receive()
            try:
                for _ in range(100):
                    await socket.command({"cmd": "x" * 1_000_000})
            finally:
                left.set()

    left = asyncio.Event()
    with pytest.raises(SocketLost, match=r"could not be sent within 2 s"):
        asyncio.run(listen())


def test_a_frame_beyond_the_cap_ends_the_connection():
    async def conversation(connection):
        await connection.send("[" + " " * 5000 + "]")
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(), url, max_frame=4000) as socket:
            await socket.receive()

    with pytest.raises(SocketLost, match="1009"):
        asyncio.run(listen())


def test_what_cannot_be_read_does_not_end_the_connection():
    async def conversation(connection):
        for sent in ("nonsense", b"\xff", frame(SNAPSHOT)):
            await connection.send(sent)
        await connection.wait_closed()

    async def listen():
        async with exchange(conversation) as url, KalshiSocket(signer(), url) as socket:
            return [type((await socket.receive())[1].message) for _ in range(3)]

    assert asyncio.run(listen()) == [RefusedObject, RefusedObject, BookSnapshot]


# --- A feed ---


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


class SetClock:
    """A clock that the exchange's side of the test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def set_clock(monkeypatch):
    monkeypatch.setattr(feed_module, "TICK_S", 0.02)
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
