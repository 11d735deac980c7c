"""Whoever is to be told of trouble can be tried before there is any."""

from __future__ import annotations

import http.server
import json
import threading

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

import settings
from cli.diagnosis import exchange, host
from cli.main import app
from settings import Settings


@pytest.fixture
def receiver():
    """A webhook's receiver, and what it got."""
    got = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200 if self.path == "/well" else 500)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", got
        server.shutdown()
        thread.join()


def run(monkeypatch, *arguments, **given):
    monkeypatch.setattr(settings, "get", lambda: Settings(_env_file=None, **given))
    return CliRunner().invoke(app, ["alert", *arguments])


def test_a_receiver_that_accepts_is_told_what_was_said(receiver, monkeypatch):
    url, got = receiver

    result = run(monkeypatch, "can you hear me", alert_webhook_url=SecretStr(f"{url}/well"))

    assert (result.exit_code, result.stdout) == (0, "webhook: accepted\n")
    assert got[0]["alerts"][0]["said"] == "can you hear me"


def test_a_receiver_that_refuses_and_nobody_at_all_are_failures(receiver, monkeypatch):
    url, _ = receiver

    refused = run(monkeypatch, alert_webhook_url=SecretStr(f"{url}/ill"))
    nobody = run(monkeypatch)

    assert (refused.exit_code, nobody.exit_code) == (1, 1)
    assert "not accepted" in refused.output
    assert "PRESAGE_ALERT_WEBHOOK_URL" in nobody.output


def test_doctor_says_whether_anybody_is_told():
    nobody = host.alerts(Settings(_env_file=None))
    somebody = host.alerts(Settings(_env_file=None, alert_webhook_url=SecretStr("http://127.0.0.1/secret")))

    assert (nobody.status, somebody.status) == ("warn", "ok")
    assert "secret" not in somebody.found


@pytest.mark.parametrize(("ahead_s", "status"), [(0, "ok"), (1, "ok"), (-30, "warn"), (30, "warn")])
def test_an_exchange_whose_clock_is_another_is_to_mind(monkeypatch, ahead_s, status):
    monkeypatch.setattr(exchange.time, "time", lambda: 1_700_000_000.5 + ahead_s)

    (found,) = exchange._clock("1700000000", 0.2)

    assert found.status == status
