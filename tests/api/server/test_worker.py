"""The worker, over real sockets."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import struct
import time

import pytest

from api.server.handler import Handler
from tests.api.conftest import generous, serving
from tests.patience import PATIENCE_S, until


def ask(server, request: bytes, *, whole: bool = True) -> tuple[int, dict[str, str], bytes]:
    """Send bytes, and give status, headers and body of the answer."""
    with server.connect() as connection:
        connection.sendall(request)
        if whole:
            connection.shutdown(socket.SHUT_WR)
        return read_answer(connection)


def read_answer(connection) -> tuple[int, dict[str, str], bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return 0, {}, data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += connection.recv(65536)
    return int(first.split()[1]), headers, body


def upgrade(path: str, *lines: str, version: str = "HTTP/1.1", **changed: str) -> bytes:
    fields = {
        "Host": "localhost",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    } | {name.replace("_", "-"): value for name, value in changed.items()}
    said = [f"GET {path} {version}", *(f"{name}: {value}" for name, value in fields.items() if value), *lines]
    return ("\r\n".join(said) + "\r\n\r\n").encode()


def masked(payload: bytes, first: int = 0x81) -> bytes:
    """A client's frame."""
    size = len(payload)
    length = (
        bytes([0x80 | size])
        if size < 126
        else struct.pack("!BH", 0xFE, size)
        if size < 65536
        else struct.pack("!BQ", 0xFF, size)
    )
    return bytes([first]) + length + b"\0\0\0\0" + payload


def opened(server, key: str) -> socket.socket:
    """A stream, its greeting read."""
    connection = server.connect()
    try:
        connection.sendall(upgrade(f"/stream?api_key={key}"))
        head = b""
        while b"hello" not in head:
            more = connection.recv(65536)
            assert more, head
            head += more
            assert head.startswith(b"HTTP/1.1 101 "), head
    except BaseException:
        connection.close()
        raise
    return connection


def close_code(connection) -> int | None:
    """The code of the close frame that comes, other frames passed over."""
    data = b""
    while more := connection.recv(65536):
        data += more
    while data:
        size, at = data[1], 2
        if size == 126:
            size, at = struct.unpack("!H", data[2:4])[0], 4
        if data[0] == 0x88:
            return struct.unpack("!H", data[at : at + 2])[0]
        data = data[at + size :]
    return None


GET = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


def test_several_requests_go_over_one_connection(server):
    with server.connect() as connection:
        for _ in range(3):
            connection.sendall(GET)
            status, headers, body = read_answer(connection)
            assert (status, json.loads(body)["status"]) == (200, "ok")
            assert headers["date"].endswith("GMT")
            assert "connection" not in headers


def test_requests_may_be_sent_ahead(server):
    with server.connect() as connection:
        connection.sendall(GET * 3)
        connection.shutdown(socket.SHUT_WR)
        data = b""
        while more := connection.recv(65536):
            data += more

    assert data.count(b"HTTP/1.1 200 ") == 3


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /health\r\n\r\n", 400),
        (b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n", 400),
        (b"WEBSOCKET /health HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\n\r\n", 400),
        (b"GET /hea\x00lth HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 20_000 + b"\r\n\r\n", 431),
        (b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
        (b"POST /register HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 65537\r\n\r\n", 413),
        (b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}", 400),
        (b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", 400),
    ],
)
def test_what_is_no_request_is_refused_and_the_connection_closed(server, request_, status):
    found, headers, body = ask(server, request_)

    assert found == status
    assert headers["content-type"] == "application/problem+json"
    problem = json.loads(body)
    assert (problem["status"], problem["request_id"]) == (status, headers["x-request-id"])
    assert (headers["x-credits-limit"], headers["x-request-cost"]) == ("0", "0")
    assert int(headers["x-credits-reset"]) > time.time()


def test_a_body_is_announced_before_it_is_sent(server):
    with server.connect() as connection:
        connection.sendall(b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"{}")
        assert read_answer(connection)[0] == 400


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nHost: x\r\nA:",
        b"POST /register HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{",
    ],
    ids=["nothing", "line", "header", "body"],
)
def test_who_never_finishes_a_request_is_let_go(short_timeout_server, half):
    begun = time.monotonic()

    ask(short_timeout_server, half, whole=False)

    assert time.monotonic() - begun < Handler.request_s - 1  # sooner than from any other server


def test_who_sends_nothing_more_is_let_go(short_timeout_server):
    with short_timeout_server.connect() as connection:
        begun = time.monotonic()
        connection.sendall(GET)
        read_answer(connection)
        assert connection.recv(1) == b""
    assert 1.0 < time.monotonic() - begun < Handler.idle_s - 1


def test_many_who_dawdle_do_not_keep_others_out(short_timeout_server):
    with contextlib.ExitStack() as stack:
        dawdlers = [stack.enter_context(short_timeout_server.connect()) for _ in range(60)]
        for dawdler in dawdlers:
            dawdler.sendall(b"GET /health HTTP/1.1\r\nHost")

        assert ask(short_timeout_server, GET)[0] == 200

        for dawdler in dawdlers:
            while dawdler.recv(4096):
                pass


def test_a_wrong_key_is_refused_before_the_upgrade(server):
    status, headers, body = ask(server, upgrade("/stream?api_key=wrong"), whole=False)

    assert status == 403
    assert headers["content-type"] == "application/problem+json"
    assert json.loads(body)["code"] == "forbidden"


def test_the_answer_to_an_upgrade_carries_what_every_answer_does(server, server_key):
    with server.connect() as connection:
        connection.sendall(upgrade(f"/stream?api_key={server_key}"))
        status, headers, _ = read_answer(connection)

    assert status == 101
    assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert headers["x-credits-limit"] == "100000"
    assert "content-length" not in headers


@pytest.mark.parametrize(
    "changed",
    [
        {"Connection": "keep-alive"},
        {"Sec_WebSocket_Version": "8"},
        {"Sec_WebSocket_Version": ""},
        {"Sec_WebSocket_Key": ""},
        {"Sec_WebSocket_Key": "short"},
        {"Sec_WebSocket_Key": "!" * 24},
        {"Upgrade": "h2c"},
        {"version": "HTTP/1.0"},
    ],
)
def test_a_malformed_handshake_is_a_bad_request(server, server_key, changed):
    status, _, body = ask(server, upgrade(f"/stream?api_key={server_key}", **changed), whole=False)

    assert (status, json.loads(body)["code"]) == (400, "invalid_parameter")


def test_a_frame_beyond_the_limit_closes_its_connection_and_bothers_nobody(server, server_key):
    with opened(server, server_key) as large, opened(server, server_key) as other:
        large.sendall(masked(b"x" * 8_000_000)[:4_000_000])
        other.sendall(masked(b'{"action":"ping"}'))
        begun = time.monotonic()
        said = b""
        while b"pong" not in said:  # pings may come before it
            more = other.recv(65536)
            assert more, said
            said += more
        assert time.monotonic() - begun < 10
        assert close_code(large) == 1009


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (b"\x81\x02{}", 1002),  # not masked
        (masked(b"{}", 0xC1), 1002),  # a reserved bit
        (masked(b"{}", 0x83), 1002),  # an unknown kind
        (masked(b"{}", 0x80), 1002),  # goes on with nothing
        (masked(b"x" * 126, 0x89), 1002),  # a ping that is too long
        (masked(b"\xff\xfe"), 1007),  # not text
        (masked(b"{}", 0x82), 1003),  # binary
        (b"".join(masked(b"x" * 30_000, 0x01 if number == 0 else 0x00) for number in range(4)), 1009),
        (masked(struct.pack("!H", 1000), 0x88), 1000),
        (masked(b"", 0x88), 1000),
        (masked(struct.pack("!H", 1005), 0x88), 1002),
    ],
)
def test_a_frame_that_breaks_the_rules_closes_with_the_right_code(server, server_key, sent, code):
    with opened(server, server_key) as connection:
        connection.sendall(sent)

        assert close_code(connection) == code


def test_a_message_may_come_in_pieces_with_a_ping_between(server, server_key):
    with opened(server, server_key) as connection:
        connection.sendall(masked(b'{"action":', 0x01) + masked(b"are you there", 0x89) + masked(b'"ping"}', 0x80))
        data = b""
        while b'"pong"' not in data:
            data += connection.recv(65536)

    assert b"\x8a\x0dare you there" in data


def test_a_key_may_have_so_many_streams_and_no_more(server, server_conn, server_key):
    limited = generous(server_conn, "limited@example.com", max_connections=2)
    with opened(server, limited) as first, opened(server, limited):
        status, headers, body = ask(server, upgrade(f"/stream?api_key={limited}"), whole=False)

        assert (status, json.loads(body)["code"]) == (429, "burst_exceeded")
        assert headers["retry-after"]
        first.close()
        until(lambda: reopens(server, limited))


def test_secrets_are_not_logged(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url) as server:
        ask(server, upgrade("/stream?api_key=my-secret"), whole=False)
        ask(server, f"GET /v1/time?key=my-secret HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n\r\n".encode())
        ask(server, b"GET /stream?api_key=my-secret\r\n\r\n")
        log = server.stop()

    answered = [(line.get("path"), line.get("query"), line.get("status")) for line in map(json.loads, log.splitlines())]
    assert ("/stream", "api_key=REDACTED", 403) in answered
    assert ("/v1/time", "key=REDACTED", 400) in answered
    assert "my-secret" not in log
    assert key not in log


def test_a_worker_told_to_stop_says_goodbye_and_is_gone_in_a_moment(database_url, conn):
    key = generous(conn, "someone@example.com")
    patient = serving(database_url, workers=2, GUNICORN_CMD_ARGS=f"--graceful-timeout {10 * PATIENCE_S:.0f}")
    with patient as server, contextlib.ExitStack() as stack:
        streams = [stack.enter_context(opened(server, key)) for _ in range(4)]
        idle = stack.enter_context(server.connect())
        idle.sendall(GET)
        read_answer(idle)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)

        codes = [close_code(stream) for stream in streams]

        assert codes == [1012] * 4
        server.process.wait(timeout=PATIENCE_S)
        assert time.monotonic() - begun < Handler.idle_s - 1  # an idle connection is not left to its own timeout


def test_a_request_on_an_idle_connection_is_answered_although_the_worker_was_told_to_stop(database_url):
    patient = serving(database_url, worker="tests.api.patient_worker.Worker")
    with patient as server, server.connect() as idle:
        idle.sendall(GET)
        assert read_answer(idle)[0] == 200
        server.process.send_signal(signal.SIGTERM)
        until(lambda: not accepts(server))

        idle.sendall(GET.replace(b"/health", b"/openapi.json"))
        status, headers, _ = read_answer(idle)

        assert (status, headers.get("connection")) == (200, "close")
        assert idle.recv(1) == b""


def test_a_worker_told_to_stop_serves_on_for_as_long_as_a_load_balancer_needs(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url, PRESAGE_API_DRAIN_S="300") as server, opened(server, key) as stream:
        server.process.send_signal(signal.SIGTERM)
        until(lambda: ask(server, GET)[0] == 503)
        status, _, body = ask(server, GET)
        opened(server, key).close()

        assert (status, json.loads(body)["detail"]) == (503, "This process is about to stop")
        assert ask(server, GET.replace(b"/health", b"/openapi.json"))[0] == 200
        server.process.send_signal(signal.SIGQUIT)
        assert close_code(stream) == 1001


def test_streams_are_closed_when_the_time_for_a_load_balancer_is_over(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url, PRESAGE_API_DRAIN_S="1") as server, opened(server, key) as stream:
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)

        assert close_code(stream) == 1012
        assert time.monotonic() - begun >= 1


def accepts(server):
    """Whether the server takes new connections."""
    try:
        server.connect().close()
    except (ConnectionRefusedError, ConnectionResetError):  # reset: it was closing just then
        return False
    return True


def test_streams_of_a_killed_worker_no_longer_count(database_url, conn):
    key = generous(conn, "someone@example.com", max_connections=1)
    with serving(database_url) as server:
        (killed,) = server.workers()
        with opened(server, key):
            os.kill(killed, signal.SIGKILL)
        until(lambda: reopens(server, key))

        assert killed not in server.workers()


def reopens(server, key):
    """Whether the server gives a stream."""
    try:
        opened(server, key).close()
    except (OSError, AssertionError):
        return False
    return True
