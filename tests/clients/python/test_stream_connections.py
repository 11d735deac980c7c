"""The stream client's connections: unreachable addresses, redirects, proxies and certificates."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
import threading
import time
import traceback

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

from presage_client import AsyncClient, AsyncStream, Client, Refused, Stream, Unavailable
from tests.clients.python.stream_servers import EITHER, KEY, by_asyncio, by_threads, greet_and_send, serving_sockets


def replay_by_threads(url, **options):
    with Client(url, KEY) as client, client.market_channel_replay(1, **options):
        pass


def replay_by_asyncio(url, **options):
    async def read():
        async with AsyncClient(url, KEY) as client, client.market_channel_replay(1, **options):
            pass

    asyncio.run(read())


EVERY = pytest.mark.parametrize("read", [by_threads, by_asyncio, replay_by_threads, replay_by_asyncio])


def test_an_unreachable_service_is_given_up_after_the_patience():
    began = time.monotonic()
    with Stream("http://127.0.0.1:9", "key", patience_s=0.5) as events, pytest.raises(Unavailable):
        next(events)

    async def read():
        async with AsyncStream("http://127.0.0.1:9", "key", patience_s=0.5) as events:
            await anext(events)

    with pytest.raises(Unavailable):
        asyncio.run(read())
    assert time.monotonic() - began < 30


@EVERY
@pytest.mark.parametrize("to", ["https://other{}", "ftp://other{}", "ws://other:port{}", "ws://[{}", "{}#a", "{}"])
def test_a_redirect_is_refused_without_showing_the_key(read, to):
    def redirect(connection, request):
        return Response(302, "Found", Headers(Location=to.format(request.path)), b"")

    with serving_sockets(None, process_request=redirect) as port, pytest.raises(Refused) as refused:
        read(f"http://127.0.0.1:{port}")
    assert (refused.value.code, refused.value.detail) == (
        "invalid_address",
        f"127.0.0.1:{port} redirects or is not a valid address",
    )
    assert "psg_secret" not in "".join(traceback.format_exception(refused.value))


@EVERY
def test_a_wrong_proxy_is_refused_without_being_shown(read):
    with pytest.raises(Refused) as refused:
        read("http://127.0.0.1:9", proxy="gopher://user:password@proxy")
    assert refused.value.code == "invalid_address"
    assert "password" not in str(refused.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate of 127.0.0.1."""
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -days 2 -subj /CN=x -addext"
    subprocess.run([*command.split(), "subjectAltName=IP:127.0.0.1"], cwd=folder, check=True, capture_output=True)
    return folder


@EITHER
def test_a_certificate_is_final_and_can_be_handed_in(read, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert", certificate / "key")
    with serving_sockets(greet_and_send, ssl=context) as port:
        with pytest.raises(Refused) as refused:
            read(f"https://127.0.0.1:{port}")
        assert refused.value.code == "invalid_certificate"
        known = ssl.create_default_context(cafile=certificate / "cert")
        assert read(f"https://127.0.0.1:{port}", ssl=known, resume_from=4) == [5]


@EITHER
def test_a_proxy_can_be_handed_in(read):
    asked = []

    def refuse():
        client, _ = proxy.accept()
        with client:
            asked.append(client.recv(4096))
            client.sendall(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as proxy:
        thread = threading.Thread(target=refuse)
        thread.start()
        with pytest.raises(Unavailable):
            read("http://127.0.0.1:9", proxy=f"http://127.0.0.1:{proxy.getsockname()[1]}", patience_s=-1)
        thread.join()
    assert asked[0].startswith(b"CONNECT 127.0.0.1:9 ")
