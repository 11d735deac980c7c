"""Answers and settings that are wrong, or meant to harm: errors of one kind, and no secret in them."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle

import httpx
import pytest

from presage_client import AsyncClient, Client, Lost, PresageError, Records, Refused, Stream, StreamGap, records
from presage_client import _endpoints as endpoints
from presage_client._transport import Transport
from tests.clients.python.conftest import answering

DEEP = b"[" * 100_000
TRADES = ("trades", "2026-11-20", "part-0.parquet")
CUT = {"Connection": "close", "Content-Length": "10"}


# --- Secrets


@pytest.mark.parametrize("setting", ["api_key", "debug_token"])
def test_secrets_are_stripped_and_never_quoted(setting):
    client = Client("http://x", **{setting: " secret\r\n"})
    call = client._transport.call(endpoints.STATS if setting == "api_key" else endpoints.DEBUG_MARKETS, {}, {}, None)
    assert "secret" in call.headers.values()
    assert "secret" not in repr(call)
    for wrong in ("sec\nret", "secrét", "sec\0ret"):
        with pytest.raises(ValueError, match="ASCII") as error:
            Client("http://x", **{setting: wrong})
        assert "sec" not in str(error.value)


@pytest.mark.parametrize("make", [Client, AsyncClient, lambda address: Stream(address, "key")])
@pytest.mark.parametrize(
    "address",
    [
        "user:password@host",
        "ftp://user:password@host",
        "http://user:pass/word@host",
        "http://user:password@",
        "http://user:password@host:99999",
        "http://user:password@host/?a=b",
        "http://user:password@host/#c",
    ],
)
def test_a_wrong_address_is_refused_without_being_shown(make, address):
    with pytest.raises(ValueError, match="address") as error:
        make(address)
    assert "pass" not in str(error.value)
    assert error.value.__suppress_context__ or error.value.__context__ is None


def test_a_user_in_the_address_is_sent_as_basic_auth(call):
    with answering((200, {}, b"[]")) as server:
        server.url = server.url.replace("http://", "http://us%40er:password@")
        answer, _ = call(server, "categories")

    assert answer == []
    assert server.asked[0][2]["Authorization"] == httpx.BasicAuth("us@er", "password")._auth_header
    client = Client(server.url)
    assert "@" not in client.base_url
    assert "us%40er:password@" in client._transport.websocket_url("/replay", {})


def test_secrets_of_records_are_not_in_their_repr():
    rotation = records.Rotation(key="psg_1", message="m")
    assert repr(rotation) == "Rotation(key='…', message='m')"
    assert "psg_1" not in str(rotation.__rich_repr__())
    assert rotation.to_dict()["key"] == "psg_1"
    without = records.SecretRotation(id="1", rotating=True, message="m")
    assert "secret=None" in repr(without)


@pytest.mark.parametrize("kind", [httpx.Client, httpx.AsyncClient])
def test_a_redirect_does_not_carry_the_key_elsewhere(kind):
    asked = []

    def answer(request):
        asked.append(request.url.host)
        return httpx.Response(307, headers={"Location": "http://other/v1/categories"})

    with pytest.raises(PresageError) as error:
        calling(kind(transport=httpx.MockTransport(answer), follow_redirects=True), "categories")
    assert (error.value.status, asked) == (307, ["x"])


def calling(http, name, **settings):
    if isinstance(http, httpx.Client):
        return getattr(Client("http://x", "key", http=http, **settings), name)()
    return asyncio.run(getattr(AsyncClient("http://x", "key", http=http, **settings), name)())


@pytest.mark.parametrize("kind", [httpx.Client, httpx.AsyncClient])
def test_the_client_goes_on_with_a_new_key(kind):
    asked = []

    def answer(request):
        asked.append(request.headers["X-API-Key"])
        return httpx.Response(200, content=b'{"key": "psg_2", "message": ""}')

    http = kind(transport=httpx.MockTransport(answer))
    if kind is httpx.Client:
        client = Client("http://x", "psg_1", http=http)
        rotations = [client.rotate_key() for _ in range(2)]
    else:

        async def run():
            client = AsyncClient("http://x", "psg_1", http=http)
            return [await client.rotate_key() for _ in range(2)]

        rotations = asyncio.run(run())
    assert asked == ["psg_1", "psg_2"]
    assert rotations[0].key == "psg_2"


def test_a_new_key_that_no_header_can_carry_is_an_error(call):
    with answering((200, {}, b'{"key": "psg\\n2", "message": ""}')) as server:
        error, _ = call(server, "rotate_key")

    assert error.code == "invalid_response"
    assert "psg" not in str(error)


# --- Answers


@pytest.mark.parametrize(
    ("headers", "body"),
    [({}, b'["\xff"]'), ({}, DEEP), ({"Content-Encoding": "gzip"}, b"no gzip"), ({}, b" " * 2000)],
    ids=["utf-8", "deep", "gzip", "large"],
)
@pytest.mark.parametrize("name", ["categories", "stats"])
def test_an_answer_that_cannot_be_read_is_an_error(call, name, headers, body):
    limit = 1000 if len(body) == 2000 else 1 << 20
    with answering((200, headers, body)) as server:
        error, waits = call(server, name, max_response_bytes=limit)

    assert (error.code, waits) == ("invalid_response", [])


@pytest.mark.parametrize(
    "body",
    [
        b"\xff",
        DEEP,
        b'{"code": 1, "detail": "d"}',
        b'{"code": "c", "detail": ["d"]}',
        b'{"code": "c", "detail": "d", "errors": 5}',
        b'{"code": "c", "detail": "d", "errors": ["e"]}',
        b'{"code": "c", "detail": "d", "hint": {}}',
        b'{"code": "c", "detail": "d", "request_id": 1}',
    ],
)
def test_a_problem_document_with_other_types_is_a_failure_by_its_status(call, body):
    headers = {"Content-Type": "application/json; charset=hex", "X-Request-Id": "r9"}
    with answering((500, headers, body)) as server:
        error, _ = call(server, "categories")

    assert (error.code, error.status, error.request_id, error.errors) == ("http_500", 500, "r9", [])
    assert len(error.detail) <= 500
    assert str(error)


def test_text_is_utf_8_whatever_its_charset(call):
    with answering((200, {"Content-Type": "text/plain; charset=base64"}, "é\n".encode() + b"\xff")) as server:
        answer, _ = call(server, "metrics")

    assert answer == "é\n\N{REPLACEMENT CHARACTER}"


def test_an_endless_address_is_a_value_error():
    with pytest.raises(ValueError, match="request"):
        Client("http://x").prices(["x" * 70_000])


@pytest.mark.parametrize("kind", [httpx.Client, httpx.AsyncClient])
def test_a_timeout_of_the_connection_is_not_retried(kind):
    def answer(request):
        raise httpx.ConnectTimeout("slow")

    with pytest.raises(PresageError) as error:
        calling(kind(transport=httpx.MockTransport(answer)), "categories", sleep=None)
    assert error.value.code == "timeout"


def test_a_cursor_that_does_not_advance_is_an_error():
    page = json.dumps({"data": [], "next_cursor": "same", "has_more": True}).encode()

    async def read(url):
        async with AsyncClient(url) as client:
            return [market async for market in client.iter_markets()]

    def read_by_threads(url):
        with Client(url) as client:
            return list(client.iter_markets())

    for listed in (read_by_threads, lambda url: asyncio.run(read(url))):
        with answering((200, {}, page), (200, {}, page)) as server, pytest.raises(PresageError) as error:
            listed(server.url)
        assert (error.value.code, len(server.asked)) == ("invalid_response", 2)


# --- Downloads


def test_a_download_resumes_where_it_was_cut(call, tmp_path):
    target = tmp_path / "a.parquet"
    target.write_bytes(b"old")
    with answering(
        (200, {**CUT, "ETag": '"v1"'}, b"01234"),
        (503, {}, b""),
        (206, {"Content-Range": "bytes 5-9/10"}, b"56789"),
    ) as server:
        answer, waits = call(server, "download_file", *TRADES, target)

    assert (answer, target.read_bytes(), len(waits)) == (target, b"0123456789", 2)
    assert [(each["Range"], each["If-Range"]) for _, _, each in server.asked] == [
        (None, None),
        ("bytes=5-", '"v1"'),
        ("bytes=5-", '"v1"'),
    ]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("tag", [{}, {"ETag": 'W/"v1"'}, {"ETag": '"v1"'}])
def test_a_download_starts_again_with_another_version(call, tmp_path, tag):
    with answering((200, {**CUT, **tag}, b"01234"), (200, {"ETag": '"v2"'}, b"abc")) as server:
        answer, _ = call(server, "download_file", *TRADES, tmp_path)

    assert answer == tmp_path / TRADES[2]
    assert answer.read_bytes() == b"abc"
    assert (server.asked[1][2]["Range"] is not None) == (tag.get("ETag") == '"v1"')


def test_a_download_goes_on_while_there_is_progress(call, tmp_path):
    parts = [
        (206, {**CUT, "Content-Length": str(10 - at), "Content-Range": f"bytes {at}-9/10"}, b"x") for at in range(10)
    ]
    with answering((200, {**CUT, "ETag": '"v1"'}, b"x"), *parts[1:]) as server:
        answer, _ = call(server, "download_file", *TRADES, tmp_path, max_retries=1)

    assert answer.read_bytes() == b"x" * 10


@pytest.mark.parametrize(
    ("answers", "code"),
    [
        ([(404, {}, b'{"code": "not_found", "detail": "d"}')], "not_found"),
        ([(200, CUT, b"01234")] * 5, "connection_failed"),
        (
            [(200, {**CUT, "ETag": '"v1"'}, b"01234"), (206, {"Content-Range": "bytes 4-9/10"}, b"456789")],
            "invalid_response",
        ),
        (
            [(200, {**CUT, "ETag": '"v1"'}, b"01234"), (206, {"Content-Range": "bytes 5-6/10"}, b"56")],
            "invalid_response",
        ),
    ],
)
def test_a_download_that_fails_leaves_nothing_behind(call, tmp_path, answers, code):
    with answering(*answers) as server:
        error, _ = call(server, "download_file", *TRADES, tmp_path / "a")

    assert error.code == code
    assert list(tmp_path.iterdir()) == []


# --- Values


def test_errors_of_the_stream_pickle():
    refused, lost = (pickle.loads(pickle.dumps(error)) for error in (Refused("c", "d"), Lost(StreamGap(1, 2))))
    assert (str(refused), refused.code, refused.detail) == ("c: d", "c", "d")
    assert (str(lost), lost.gap) == ("events after 1 and up to 2 may be missing", StreamGap(1, 2))


def test_lists_of_records_stay_such():
    one = Records([records.Removed(id="1", removed=True)], records.Removed)
    for many in (one + one, one.copy(), copy.copy(one), one[:1]):
        assert isinstance(many, Records)
        assert many._kind is records.Removed


def test_no_timeout_is_a_timeout():
    with Client("http://x", timeout=None) as client:
        assert client._http.timeout == httpx.Timeout(None)
    assert Transport("http://x/base/", None, debug_token=None, max_retries=0, max_wait_s=0).base_url == "http://x/base"
