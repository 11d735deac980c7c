"""`presage export`."""

from __future__ import annotations

import datetime as dt

import pytest
from typer.testing import CliRunner

from cli.commands import export
from cli.main import app
from config import settings

TODAY = dt.datetime.now(dt.UTC)  # also when a test runs past midnight


@pytest.fixture
def presage(database_url, tmp_path, monkeypatch):
    monkeypatch.setenv("PRESAGE_EXPORTS_DIR", str(tmp_path))
    monkeypatch.setattr(export, "_now", lambda: TODAY)
    settings.get.cache_clear()

    def run(*words):
        return CliRunner().invoke(app, ["export", *words, "--database-url", database_url])

    yield run
    monkeypatch.undo()
    settings.get.cache_clear()


def test_a_day_is_written_and_what_is_there_is_left_alone(presage, conn, add_market, add_trades, tmp_path):
    yesterday = TODAY - dt.timedelta(days=1)
    add_trades(add_market("rain"), [{"ts": yesterday}])

    first, second = presage("trades"), presage("trades", "--day", f"{yesterday:%Y-%m-%d}")

    assert first.exit_code == second.exit_code == 0, first.output
    assert f"trades {yesterday:%Y-%m-%d}: 1 rows" in first.output
    assert "1 already existed" in second.output
    assert (
        len(list((tmp_path / "trades" / f"{yesterday:%Y-%m-%d}").glob(f"trades-{yesterday:%Y-%m-%d}.*.parquet"))) == 1
    )


def test_of_today_there_is_what_there_is_so_far(presage, conn, add_market, add_trades):
    add_trades(add_market("rain"), [{"ts": TODAY - dt.timedelta(microseconds=1)}])

    done = presage("trades", "--day", f"{TODAY:%Y-%m-%d}")

    assert "1 rows" in done.output
    assert conn.execute("select distinct complete from exports").fetchall() == [(False,)]


@pytest.mark.parametrize("words", [["books"], ["--day", "tomorrow"], ["--day", "2999-01-01"]])
def test_what_there_cannot_be_is_refused(presage, words):
    assert presage(*words).exit_code == 2
