"""Request limits of the sandbox: as the exchange publishes them, delayed first and then refused."""

from __future__ import annotations

import time

import httpx
import pytest

from upstream.polymarket.gamma.client import Gamma
from upstream.sandbox.routes.throttle import MAX_WAIT_S, PUBLISHED, WINDOW_S, RequestWindow, Throttle
from upstream.sandbox.server import Sandbox
from upstream.transport.http import Client


def test_a_window_never_holds_more_than_its_limit():
    window, answered = RequestWindow(3), []
    for now in (0.0, 0.0, 0.1, 0.2, 4.0, 9.0, 30.0):
        at = now + window.wait_s(now)
        window.take(at)
        answered.append(at)

    assert answered == [0.0, 0.0, 0.1, 10.0, 10.0, 10.1, 30.0]
    assert all(sum(at <= each < at + WINDOW_S for each in answered) <= 3 for at in answered)


@pytest.mark.parametrize(
    ("path", "limits"),
    [
        ("/gamma/markets/keyset", {"/gamma", "/gamma/markets"}),
        ("/clob/books", {"/clob", "/clob/books"}),
        ("/clob/books/", {"/clob", "/clob/books"}),
        ("/clob/last-trade-price", {"/clob"}),
        ("/data/trades", {"/data", "/data/trades"}),
        ("/rpc", set()),
        ("/sandbox/status", set()),
        ("/", set()),
    ],
)
def test_each_path_has_its_own_limit_and_that_of_its_service(path, limits):
    throttle = Throttle(None)

    throttle._wait_s({"path": path, "client": ("127.0.0.1", 1)})

    assert {name for name, _ in throttle._windows} == limits


def test_addresses_are_limited_apart():
    throttle = Throttle(None, {"/gamma": 1}, clock=lambda: 0.0)

    waits = [throttle._wait_s({"path": "/gamma/x", "client": (address, 1)}) for address in "aab"]

    assert waits == [0.0, WINDOW_S, 0.0]


@pytest.fixture
def exchange(monkeypatch):
    monkeypatch.setitem(PUBLISHED, "/gamma/markets", 4)
    with Sandbox(simulate=1, markets=10, limits=True) as sandbox:
        yield sandbox


def test_what_is_beyond_a_limit_is_delayed_and_then_refused(exchange, monkeypatch):
    monkeypatch.setattr("upstream.sandbox.routes.throttle.WINDOW_S", MAX_WAIT_S / 5)
    with httpx.Client(base_url=exchange.gamma_url) as http:
        began = time.monotonic()
        answers = [http.get("/markets/keyset").status_code for _ in range(9)]
        took_s = time.monotonic() - began
        monkeypatch.setattr("upstream.sandbox.routes.throttle.WINDOW_S", 2 * MAX_WAIT_S)
        refused = http.get("/markets/keyset")

    assert answers == [200] * 9
    assert took_s >= 2 * MAX_WAIT_S / 5
    assert (refused.status_code, refused.json()) == (429, {"error": "Too Many Requests"})
    assert 1 <= int(refused.headers["Retry-After"]) <= 2 * MAX_WAIT_S
    counts = httpx.get(f"{exchange.url}/sandbox/status").json()["requests"]
    assert counts["delayed"] >= 2
    assert counts["refused"] == 1


def test_our_client_keeps_the_limits_so_nothing_is_refused(exchange, monkeypatch):
    monkeypatch.setitem(PUBLISHED, "/gamma/markets", 300)
    with Client() as client:
        found = sum(len(list(Gamma(client, exchange.gamma_url).markets())) for _ in range(20))

    assert found >= 100
    assert exchange.throttle.counts == {"delayed": 0, "refused": 0}
