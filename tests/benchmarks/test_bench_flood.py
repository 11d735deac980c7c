"""The flood's benchmark: what it floods with, and what it counts."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from benchmarks.api import flood
from benchmarks.api.load import request
from benchmarks.api.servers import MANY_REGISTRATIONS, NO_ADDRESS_BUDGET, OURS, servers
from benchmarks.database import Bench
from tests.patience import PATIENCE_S, until


class Answering(BaseHTTPRequestHandler):
    """Answers unknown keys with 401, registrations with 201, and customers in turn with 200 and 503."""

    protocol_version = "HTTP/1.1"
    turn = 0

    def do_GET(self):
        if self.headers["X-API-Key"] == "customer":
            Answering.turn += 1
            self.answer(200 if Answering.turn % 2 else 503)
        else:
            self.answer(401)

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(201)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        """Log nothing."""


class Server(ThreadingHTTPServer):
    """Expects that a flood ends amid its requests."""

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@pytest.fixture
def port():
    with Server(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_the_flooded_server_has_the_products_limits_unless_a_benchmark_changes_them(tmp_path):
    bench = Bench(tmp_path, "postgresql://127.0.0.1/presage", Path("psql"))

    assert not {*MANY_REGISTRATIONS, *NO_ADDRESS_BUDGET} & set(servers(bench)[OURS].program.environment)
    assert servers(bench, MANY_REGISTRATIONS)[OURS].program.environment.items() >= MANY_REGISTRATIONS.items()


def test_customers_requests_that_are_not_answered_are_counted_and_not_hidden(port, monkeypatch):
    monkeypatch.setattr(flood, "PHASE_S", 0.2)

    served = flood.serve(port, [request("GET", "/", {"X-API-Key": "customer"})])

    assert (len(served.ms), served.failed) == (10, 5)


def test_a_floods_answers_are_counted_by_status(port, monkeypatch):
    monkeypatch.setattr(flood, "CONNECTIONS", 4)
    stop, answered = threading.Event(), [0] * 600
    attacking = threading.Thread(target=flood.attack, args=[port, 2, stop, answered])
    attacking.start()
    try:
        until(lambda: answered[401] and answered[201])
    finally:
        stop.set()
        attacking.join(PATIENCE_S)

    assert sum(answered) == answered[401] + answered[201]
