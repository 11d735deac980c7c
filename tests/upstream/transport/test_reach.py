"""An unreachable upstream is named, with what to check."""

import socket
import ssl

import httpx
import msgspec
import pytest

from upstream.transport.errors import Malformed, SocketLost, Unavailable
from upstream.transport.http import Client
from upstream.transport.reach import reach_failure

URL = "https://user:secret@gamma-api.polymarket.com/markets?key=secret"
ANY = msgspec.json.Decoder()


def behind(cause):
    """Return a client error with causes behind it, as libraries have them."""
    between, said = httpx.ConnectError(str(cause)), Unavailable(f"{URL}: ConnectError {cause}")
    said.__cause__, between.__cause__ = between, cause
    return said


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "name not known"),
        (ConnectionRefusedError(111, "Connection refused"), "connection refused"),
        (ssl.SSLCertVerificationError("self-signed certificate"), "no secure connection"),
        (httpx.ReadTimeout("timed out"), "no answer in time"),
        (OSError(101, "Network is unreachable"), "network is unreachable"),
    ],
)
def test_why_it_cannot_be_reached_is_said_in_words(cause, words):
    assert reach_failure(behind(cause)) == f"cannot reach gamma-api.polymarket.com: {words}"


def test_an_answer_that_is_none_is_told_as_it_is():
    assert reach_failure(Unavailable(f"{URL}: 503 closed")) == "cannot read gamma-api.polymarket.com: 503 closed"
    assert reach_failure(Malformed("rpc.example:8545: no JSON")).startswith("cannot read rpc.example")
    assert reach_failure(SocketLost("not open within 5 s"), "wss://socket.example/ws") == (
        "cannot read socket.example: not open within 5 s"
    )


def test_a_client_that_finds_nobody_says_so():
    with Client(attempts=1) as client, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        with pytest.raises(Unavailable) as raised:
            client.get(f"http://127.0.0.1:{port}/markets", ANY)

    assert reach_failure(raised.value) == f"cannot reach 127.0.0.1:{port}: connection refused"
