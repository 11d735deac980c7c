import asyncio
import contextlib
import time
from urllib.parse import urlsplit

import pytest

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.conversations import CLOCK_WINDOW_S, PATH, exchange, refusing, signer
from tests.upstream.kalshi.keys import KEY_ID, private_key, verify
from tests.upstream.kalshi.samples import DELTA, SNAPSHOT, TICKER, frame
from tests.upstream.servers import request, serving
from upstream.kalshi.socket import connection as connection_module
from upstream.kalshi.socket.connection import KalshiSocket
from upstream.kalshi.socket.feed import KalshiFeed
from upstream.kalshi.socket.messages import BookSnapshot
from upstream.transport.errors import RefusedObject, SocketLost, Unauthenticated
from upstream.transport.http import USER_AGENT


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
