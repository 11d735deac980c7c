"""Exports under Dagster: a partition a day, each night yesterday's."""

from __future__ import annotations

import datetime as dt

import dagster as dg
import pytest

import settings
from orchestration.defs import exports
from orchestration.resources import Database
from tests.factories import insert

NIGHT = dt.datetime(2026, 11, 21, 0, 25, tzinfo=dt.UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESAGE_EXPORTS_DIR", str(tmp_path))
    settings.get.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    settings.get.cache_clear()


def test_a_partition_is_a_day_of_every_topic_and_running_it_again_changes_nothing(
    database_url, conn, add_market, add_trades, folder
):
    market = add_market("rain")
    add_trades(market, [{"ts": NIGHT - dt.timedelta(hours=3)}])
    database = {"database": Database(url=database_url)}

    runs = [dg.materialize(exports.exports, partition_key="2026-11-20", resources=database) for _ in range(2)]

    assert [run.success for run in runs] == [True, True]
    made = [
        {
            event.asset_key.to_user_string(): event.materialization.metadata
            for event in run.get_asset_materialization_events()
        }
        for run in runs
    ]
    trades = [metadata["export_trades"] for metadata in made]
    assert [
        (each["dagster/row_count"].value, each["parts_written"].value, each["parts_kept"].value) for each in trades
    ] == [
        (1, 1, 0),
        (0, 0, 1),
    ]
    assert made[0]["export_book_events"]["parts_written"].value == 24
    assert len(list(folder.glob("*/2026-11-20/*.parquet"))) == 4 + 24


def test_each_night_yesterday_is_asked_for_and_what_is_old_deleted(database_url, conn, folder):
    old = folder / "trades" / "2026-10-01" / "trades-2026-10-01.parquet"
    old.parent.mkdir(parents=True)
    old.write_text("")
    row = {"topic": "trades", "day": dt.date(2026, 10, 1), "part": 0, "format": "parquet", "rows": 0, "bytes": 0}
    file = str(old.relative_to(folder))
    insert(conn, "exports", {**row, "file": file, "sha256": b"", "complete": True, "created_at": NIGHT})
    context = dg.build_schedule_context(scheduled_execution_time=NIGHT)

    asked = exports.exports_each_night(context, database=Database(url=database_url))

    assert asked.partition_key == "2026-11-20"
    assert not old.exists()
    assert conn.execute("select count(*) from exports").fetchone() == (0,)


def test_today_can_be_exported_by_hand():
    keys = exports.daily.get_partition_keys(current_time=NIGHT)

    assert keys[-1] == "2026-11-21"
