"""`presage alert` sends a test alert to the configured receivers."""

from __future__ import annotations

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

from cli.diagnosis import exchange, host
from cli.main import app
from config import settings
from config.settings import Settings
from tests.orchestration.webhooks.receiving import receiving


@pytest.fixture
def receiver():
    with receiving() as made:
        yield made


def run(monkeypatch, *arguments, **given):
    monkeypatch.setattr(settings, "get", lambda: Settings(_env_file=None, **given))
    return CliRunner().invoke(app, ["alert", *arguments])


def test_a_receiver_that_accepts_is_told_what_was_said(receiver, monkeypatch):
    result = run(monkeypatch, "can you hear me", alert_webhook_url=SecretStr(receiver.url))

    assert (result.exit_code, result.stdout) == (0, "webhook: accepted\n")
    assert receiver.seen[0].event["alerts"][0]["said"] == "can you hear me"


def test_a_receiver_that_refuses_and_nobody_at_all_are_failures(receiver, monkeypatch):
    receiver.answer = lambda _number, _seen: 500

    refused = run(monkeypatch, alert_webhook_url=SecretStr(receiver.url))
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
