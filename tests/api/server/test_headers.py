from __future__ import annotations

import io

import pytest

from api.server.handler import redacted
from api.server.headers import MAX_HEADER_BYTES, MAX_HEADER_FIELDS, BadRequest, Headers


def read(text: bytes) -> Headers:
    return Headers(io.BytesIO(text + b"\r\n"))


def test_fields_are_found_whatever_their_case():
    headers = read(b"Host: here\r\nx-API-key:  abc \t\r\n")

    assert headers.get("HOST") == "here"
    assert headers.get("X-Api-Key") == "abc"
    assert headers.get("missing", "none") == "none"


def test_repeated_fields_are_joined_as_wsgi_does():
    headers = read(b"Accept: a\r\nAccept: b\r\n")

    assert headers.get("accept") == "a,b"
    assert list(headers.environ()) == [("HTTP_ACCEPT", "a"), ("HTTP_ACCEPT", "b")]


def test_a_field_with_an_underscore_cannot_pose_as_another():
    assert list(read(b"X_API_Key: forged\r\nX-API-Key: real\r\n").environ()) == [("HTTP_X_API_KEY", "real")]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"Transfer-Encoding: chunked\r\n", 411),
        (b"Transfer-Encoding: xchunked\r\n", 411),
        (b"Content-Length: 3\r\nContent-Length: 3\r\n", 400),
        (b"Content-Length: +3\r\n", 400),
        (b"Content-Length: 3, 3\r\n", 400),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: 0x3\r\n", 400),
        (b"Host: a\r\nHost: b\r\n", 400),
        (b"Host : a\r\n", 400),
        (b" folded: a\r\n", 400),
        (b"Host: a\r\n continued\r\n", 400),
        (b"Host: a\n", 400),
        (b"Host: a\rb\r\n", 400),
        (b"Host: a\x00b\r\n", 400),
        (b"nonsense\r\n", 400),
        (b": empty\r\n", 400),
        (b"N\xe4me: a\r\n", 400),
        (b"A: " + b"x" * MAX_HEADER_BYTES + b"\r\n", 431),
        (b"".join(b"A%d: x\r\n" % number for number in range(MAX_HEADER_FIELDS + 1)), 431),
    ],
)
def test_what_two_servers_could_read_differently_is_refused(text, status):
    with pytest.raises(BadRequest) as refusal:
        read(text)

    assert refusal.value.status == status


def test_a_block_that_ends_early_is_refused():
    with pytest.raises(BadRequest):
        Headers(io.BytesIO(b"Host: a\r\n"))


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("api_key=secret", "api_key=REDACTED"),
        ("a=1&API%5fKEY=secret&b=2", "a=1&API%5fKEY=REDACTED&b=2"),
        ("key=secret&token=other", "key=REDACTED&token=REDACTED"),
        ("market=key", "market=key"),
    ],
)
def test_secrets_of_a_query_are_not_shown(query, shown):
    assert redacted(query) == shown
