"""The lake under Dagster: written each night with the pipeline's rights, and checked."""

from __future__ import annotations

import datetime as dt

import dagster as dg
import pytest

from config import settings
from config.settings import Settings
from orchestration import checks
from orchestration.assets import lake
from orchestration.lake import writing
from orchestration.lake.tables import TABLES
from orchestration.resources import Database
from sql.roles.rights import PIPELINE
from tests.roles import login_url


@pytest.fixture
def run(database_url, tmp_path, monkeypatch):
    """Materialize and check, with a lake or without one; return the asset's metadata and the check's result."""

    def go(*, on=True):
        given = Settings(_env_file=None, lake=f"{tmp_path}/lake" if on else "")
        monkeypatch.setattr(settings, "get", lambda: given)
        database = {"database": Database(url=login_url(database_url, PIPELINE))}
        done = dg.materialize([lake.lake_days, lake.lake_current], resources=database)
        (written,) = done.get_asset_materialization_events()
        (check,) = done.get_asset_check_evaluations()
        return {name: value.value for name, value in written.materialization.metadata.items()}, check

    return go


def test_a_night_writes_every_day_that_is_over_and_the_next_one_nothing(run, conn, add_market, add_trades):
    now = dt.datetime.now(dt.UTC)
    market = add_market(created_at=now - dt.timedelta(days=4))
    add_trades(market, [{"ts": now - dt.timedelta(days=days)} for days in (2, 3)])

    first, check = run()
    again, _ = run()

    assert first["dagster/row_count"] == 2 + 2 + 1, "trades, their candles, and a market"
    assert check.passed
    assert (again["dagster/row_count"], again["days"]) == (0, 0)


def test_a_table_that_cannot_be_written_does_not_keep_the_others(run, conn, add_market, add_trades, monkeypatch):
    ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=3)
    add_trades(add_market(created_at=ago), [{"ts": ago}])
    as_it_is = writing.write

    def write(conn, lake, table, day):
        if table.name == "trades":
            raise OSError("the bucket is gone")
        return as_it_is(conn, lake, table, day)

    monkeypatch.setattr(writing, "write", write)

    with pytest.raises(dg.Failure, match="not every table"):
        run()

    written = {name for (name,) in conn.execute("select distinct name from lake_days")}
    assert written == {table.name for table in TABLES} - {"trades"}


def test_without_a_lake_nothing_is_written_and_the_check_says_so(run, add_market, add_trades):
    add_trades(add_market(), [{"ts": dt.datetime.now(dt.UTC) - dt.timedelta(days=3)}])

    metadata, check = run(on=False)

    assert metadata == {"off": "off: PRESAGE_LAKE is not set"}
    assert check.passed
    assert check.description == "off: PRESAGE_LAKE is not set"


def test_a_day_that_is_missing_fails_the_check():
    judged = checks.lake_current({"trades": dt.date(2026, 11, 19), "settlements": None})

    assert (judged.holds, judged.summary) == (False, "missing: trades since 2026-11-19")
