"""`presage set` and `presage get`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cli.main import app
from config import tunables as parameters


@pytest.fixture
def presage(database_url, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        return CliRunner().invoke(app, [*words, "--database-url", database_url])

    return run


def test_a_parameter_is_set_and_got(presage, conn):
    done = presage("set", "whale_alert_usd", "40000")

    assert done.exit_code == 0, done.output
    assert done.output == "whale_alert_usd is 40,000.0 USD now\n"
    assert parameters.value(conn, "whale_alert_usd") == 40_000
    assert presage("get", "whale_alert_usd").output == "40000.0\n"


def test_all_are_shown_with_what_they_mean(presage):
    presage("set", "whale_alert_usd", "40000")

    shown = presage("get").output

    for word in ("whale_alert_usd", "whale_alert signal", "USD", "0.01", "1,000,000,000.0", "25,000.0", "40,000.0"):
        assert word in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["set", "whale_alert_usd", "much"], "from 0.01 to 1,000,000,000.0 (USD)"),
        (["set", "whale", "1"], "there is no parameter whale"),
        (["get", "whale"], "there is no parameter whale"),
    ],
)
def test_what_cannot_be_done_is_said(presage, words, said):
    done = presage(*words)

    assert done.exit_code == 1
    assert said in done.output
