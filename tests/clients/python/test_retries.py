"""Retries, against a small server that gives prepared failures."""

from __future__ import annotations

import socket
from email.utils import formatdate
from types import SimpleNamespace

import pytest

from tests.clients.python.conftest import NOW, answering

PROBLEM = b'{"code": "burst_exceeded", "detail": "Too fast", "hint": "Slower", "errors": [], "request_id": "r1"}'
HANG_UP = (0, {}, b"")
FINE = (200, {}, b"[]")


def test_retry_after_is_waited_for(call):
    date = formatdate(NOW + 20, usegmt=True)
    with answering((429, {"Retry-After": "3"}, PROBLEM), (503, {"Retry-After": date}, b""), FINE) as server:
        answer, waits = call(server, "categories")

    assert answer == []
    assert 3 <= waits[0] <= 3.5
    assert 20 <= waits[1] <= 20.5
    assert [headers["X-API-Key"] for _, _, headers in server.asked] == ["key"] * 3
    assert server.asked[0][2]["User-Agent"].startswith("presage-client/")


def test_retries_are_bounded_and_back_off(call):
    with answering(*[(503, {}, b"")] * 4) as server:
        error, waits = call(server, "categories")

    assert (error.code, error.status, error.retry_after) == ("http_503", 503, None)
    assert [0.125 * 2**n <= wait <= 0.25 * 2**n for n, wait in enumerate(waits)] == [True] * 3


def test_none_are_made_when_none_are_wanted(call):
    with answering((429, {"Retry-After": "1"}, PROBLEM)) as server:
        error, waits = call(server, "categories", max_retries=0)

    assert (error.code, error.hint, error.retry_after, error.request_id) == ("burst_exceeded", "Slower", 1, "r1")
    assert str(error) == "burst_exceeded (429): Too fast Slower"
    assert waits == []


def test_a_wait_that_is_too_long_is_an_error(call):
    with answering((429, {"Retry-After": "86400"}, PROBLEM)) as server:
        error, waits = call(server, "categories")

    assert (error.retry_after, waits) == (86400, [])


@pytest.mark.parametrize("status", [400, 401, 402, 404, 500, 502, 504])
def test_other_failures_are_not_retried(call, status):
    with answering((status, {"Retry-After": "1"}, PROBLEM)) as server:
        error, waits = call(server, "categories")

    assert (error.status, waits) == (status, [])


def test_a_lost_connection_is_retried_for_reads_alone(call):
    with answering(HANG_UP, FINE) as server:
        answer, waits = call(server, "categories")
    assert (answer, len(waits)) == ([], 1)

    for failure, code in ((HANG_UP, "connection_failed"), ((503, {"Retry-After": "1"}, b""), "http_503")):
        with answering(failure) as server:
            error, waits = call(server, "rotate_key")
        assert (error.code, waits) == (code, [])


def test_a_refused_change_is_retried(call):
    with answering((429, {"Retry-After": "1"}, PROBLEM), (200, {}, b'{"key": "psg_2", "message": ""}')) as server:
        answer, waits = call(server, "rotate_key")

    assert (answer.key, len(waits)) == ("psg_2", 1)


def test_an_unreachable_service_is_an_error(call):
    with answering() as server:
        pass
    error, waits = call(server, "categories", max_retries=2)

    assert (error.code, error.status, len(waits)) == ("connection_failed", None, 2)
    assert error.__cause__ is not None


def test_a_timeout_is_an_error_at_once(call):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        server = SimpleNamespace(url=f"http://127.0.0.1:{silent.getsockname()[1]}")
        error, waits = call(server, "categories", timeout=0.2)

    assert (error.code, waits) == ("timeout", [])


def test_an_answer_that_is_not_understood_is_an_error(call):
    for body in (b"<html>", b'{"not": "a list"}'):
        with answering((200, {"X-Request-Id": "r2"}, body)) as server:
            error, _ = call(server, "categories")
        assert (error.code, error.request_id) == ("invalid_response", "r2")


def test_the_key_is_not_sent_where_none_is_needed(call):
    health = b'{"status": "ok", "service": "", "project": "", "instance": "", "timestamp": 1}'
    with answering((200, {}, health)) as server:
        call(server, "health")

    assert "X-API-Key" not in server.asked[0][2]


@pytest.mark.parametrize(
    "after", ["0", formatdate(0, usegmt=True), "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", "-1", "soon"]
)
def test_a_retry_after_that_is_no_wait_keeps_half_of_the_backoff(call, after):
    with answering(*[(429, {"Retry-After": after}, PROBLEM)] * 2, FINE) as server:
        answer, waits = call(server, "categories")

    assert answer == []
    assert [wait >= 0.125 * 2**n for n, wait in enumerate(waits)] == [True] * 2


def test_an_endless_retry_after_is_an_error(call):
    with answering((429, {"Retry-After": "9" * 500}, PROBLEM)) as server:
        error, waits = call(server, "categories")

    assert (error.code, waits) == ("burst_exceeded", [])
