"""Exports under Dagster: a partition per day, each night yesterday's."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import dagster as dg
import pytest
import yaml

from config import settings
from orchestration.assets import exports
from orchestration.exports import files
from orchestration.resources import Database
from sql.roles.rights import PIPELINE
from tests.factories import insert
from tests.roles import login_url

ROOT = Path(__file__).parents[3]
POLYMARKETS = [topic for topic in exports.TOPICS if topic.exchange.name == "polymarket"]
NIGHT = dt.datetime(2026, 11, 21, 0, 25, tzinfo=dt.UTC)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PRESAGE_EXPORTS_DIR", str(tmp_path))
    settings.get.cache_clear()
    yield tmp_path
    monkeypatch.undo()
    settings.get.cache_clear()


def test_a_partition_is_a_day_of_every_topic_and_running_it_again_changes_nothing(
    database_url, conn, add_market, add_trades, folder, monkeypatch
):
    monkeypatch.setenv("PRESAGE_EXPORTS_RETENTION_DAYS", "36500")  # otherwise the day is too old some day
    market = add_market("rain")
    add_trades(market, [{"ts": NIGHT - dt.timedelta(hours=3)}])
    database = {"database": Database(url=login_url(database_url, PIPELINE))}

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


def test_each_night_yesterday_is_asked_for_and_what_of_the_last_week_is_not_there_whole(
    tick, conn, folder, monkeypatch
):
    def night():
        return tick(exports.exports_each_night, NIGHT)

    assert night() == ["2026-11-20"], "nothing was recorded before"
    conn.execute("insert into settings (name, value) values ('recorded_since', to_jsonb(as_ms('2026-11-17T12:00Z')))")
    assert night() == ["2026-11-20", "2026-11-19", "2026-11-18", "2026-11-17"]
    conn.execute(
        """insert into exports (topic, day, part, format, file, rows, bytes, sha256, complete, created_at)
        select topic, day::date, part, format, concat_ws('/', topic, day::date, part, format), 0, 0, '',
            (topic, day::date) <> ('trades', '2026-11-18'), now()
        from unnest(%s::text[], %s::int[]) as t (topic, parts), generate_series(0, parts - 1) as part,
            unnest('{csv,parquet}'::text[]) as format,
            generate_series('2026-11-18'::date, '2026-11-20', '1 day') as day""",
        [[topic.name for topic in POLYMARKETS], [topic.parts for topic in POLYMARKETS]],
    )
    assert night() == ["2026-11-18", "2026-11-17"]
    conn.execute("delete from exports where topic = 'book_events' and day = '2026-11-20' and part = 23")
    monkeypatch.setenv("PRESAGE_EXPORTS_RETENTION_DAYS", "2")
    settings.get.cache_clear()
    assert night() == ["2026-11-20"], "a run would delete older ones"
    conn.execute("update settings set value = to_jsonb(as_ms('2026-01-01T00:00Z')) where name = 'recorded_since'")
    monkeypatch.setenv("PRESAGE_EXPORTS_RETENTION_DAYS", "30")
    settings.get.cache_clear()
    assert night() == ["2026-11-20", *(f"2026-11-{day}" for day in (18, 17, 16, 15, 14))]


def test_another_exchange_is_exported_since_it_is_recorded_and_while_it_is_read(conn, folder, monkeypatch):
    def due():
        found = exports.missing(conn, NIGHT)
        return {f"{day}": sorted(key.to_user_string() for key in keys) for day, keys in found.items()}

    ours = sorted(f"export_{topic.name}" for topic in POLYMARKETS)
    theirs = sorted(f"export_{topic.name}" for topic in exports.TOPICS if topic not in POLYMARKETS)
    since = "insert into settings (name, value) values (%s, to_jsonb(as_ms(%s::timestamptz)))"
    conn.execute(since, ["recorded_since", "2026-11-18T12:00Z"])
    assert due() == dict.fromkeys(("2026-11-20", "2026-11-19", "2026-11-18"), ours)

    monkeypatch.setenv("PRESAGE_EXCHANGES", "polymarket,kalshi")
    settings.get.cache_clear()

    assert len(theirs) == 4
    assert due()["2026-11-20"] == sorted([*ours, "export_markets_kalshi"]), "nothing is recorded yet"
    conn.execute(since, ["recorded_since_kalshi", "2026-11-19T12:00Z"])
    assert due() == {
        "2026-11-20": sorted([*ours, *theirs]),
        "2026-11-19": sorted([*ours, *theirs]),
        "2026-11-18": ours,
    }

    ended = "update stage_clocks set last_data_at = '2026-11-19T23:00Z', detail = %s where stage = 'ingestion_kalshi'"
    conn.execute(ended, ['{"off": "it has no key"}'])
    assert due()["2026-11-20"] == sorted([*ours, "export_markets_kalshi"]), "nothing was recorded on it"
    assert due()["2026-11-19"] == sorted([*ours, *theirs])
    conn.execute(ended, ["{}"])
    assert due()["2026-11-20"] == sorted([*ours, *theirs]), "one of its shards may have recorded"


def test_days_are_exported_one_at_a_time():
    limits = yaml.safe_load((ROOT / "dagster.yaml").read_text())["concurrency"]["runs"]["tag_concurrency_limits"]

    assert {"key": "presage/exports", "limit": 1} in limits
    assert "presage/exports" in exports.job.tags


def test_there_are_as_many_formats_as_are_written():
    assert len(files.SUFFIX) == exports.FORMATS


@pytest.mark.parametrize("topic", ["trades", "trades_kalshi"], ids=["its own", "of an exchange that is no longer read"])
def test_a_run_deletes_what_is_old_and_leaves_what_it_was_asked_for(database_url, conn, folder, topic):
    old = folder / topic / "2024-01-02" / f"{topic}-2024-01-02.parquet"
    old.parent.mkdir(parents=True)
    old.write_text("")
    row = {"topic": topic, "day": dt.date(2024, 1, 2), "part": 0, "format": "parquet", "rows": 0, "bytes": 0}
    file = str(old.relative_to(folder))
    insert(conn, "exports", {**row, "file": file, "sha256": b"", "complete": True, "created_at": NIGHT})

    run = dg.materialize(
        exports.exports,
        partition_key="2024-01-01",
        resources={"database": Database(url=login_url(database_url, PIPELINE))},
    )

    assert run.success
    assert not old.exists()
    assert conn.execute("select distinct day from exports").fetchall() == [(dt.date(2024, 1, 1),)]
    written = {name for (name,) in conn.execute("select distinct topic from exports")}
    assert written == {topic.name for topic in POLYMARKETS}, "nothing that was asked for is deleted"


def test_today_can_be_exported_by_hand():
    keys = exports.daily.get_partition_keys(current_time=NIGHT)

    assert keys[-1] == "2026-11-21"
