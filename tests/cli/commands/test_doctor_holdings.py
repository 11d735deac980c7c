"""Findings of `presage doctor` on a late pipeline, the database's contents, and Dagster."""

from __future__ import annotations

import datetime as dt
import re
import shutil

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pydantic import SecretStr

import sql.embedded.configuration as machine
from api.metering import keys
from cli.diagnosis import dagster, holdings, pipeline
from config.settings import Settings
from sql import database, disk
from sql.queries import diagnosis as queries
from sql.roles import logins
from sql.roles.rights import PIPELINE
from tests.factories import insert
from tests.roles import login_url

STAGES = (
    "discovery",
    "discovery_kalshi",
    "ingestion",
    "ingestion_kalshi",
    "settlement",
    "analysis",
    "aggregates",
    "delivery",
)


def worst(findings):
    return [(finding.status, finding.found) for finding in findings if finding.status != "ok"]


def touch(conn, stage, seconds):
    conn.execute(
        "update stage_clocks set last_data_at = now() - %(ago)s, beat_at = now() - %(ago)s where stage = %(stage)s",
        {"ago": dt.timedelta(seconds=seconds), "stage": stage},
    )


def test_a_pipeline_that_never_ran_is_to_be_started(conn):
    (found,) = pipeline.lag(conn)

    assert (found.status, found.found) == ("warn", "no stage has run yet")
    assert "presage up" in found.remedy


def test_each_late_stage_has_its_own_remedy(conn):
    for stage in STAGES:
        touch(conn, stage, 0)
    touch(conn, "ingestion", 20)
    touch(conn, "aggregates", 700)
    reason = "shard 2 of 4: 18 s behind, at 7,213 messages a second"
    hindered = {"reason": reason, "since": 1_790_000_000}
    conn.execute("update stage_clocks set detail = %s where stage = 'ingestion'", [Jsonb(hindered)])

    found = {finding.found.partition(":")[0]: finding for finding in pipeline.lag(conn)}

    assert set(found) == set(STAGES)
    assert {name: each.status for name, each in found.items() if each.status != "ok"} == {
        "ingestion": "warn",
        "aggregates": "fail",
    }
    assert found["ingestion"].found.endswith(f" s behind ({reason}, since 2026-09-21 14:13 UTC)")
    assert "live_keeper" in found["ingestion"].remedy
    assert "aggregates_due" in found["aggregates"].remedy
    assert "off (no RPC is configured" in found["settlement"].found
    assert found["discovery"].remedy == ""


def test_a_pipeline_that_stands_still_is_one_failure_and_not_six(conn):
    for stage in STAGES:
        touch(conn, stage, 3 * 3600)

    assert worst(pipeline.lag(conn)) == [("fail", "nothing runs: no stage has reported for 3.0 hours")]


def test_what_is_missing_and_what_was_refused_is_told(conn):
    assert worst(pipeline.losses(conn)) == []
    now = dt.datetime.now(dt.UTC)
    gap = {"kind": "books", "from_ts": now - dt.timedelta(hours=1), "cause": "socket"}

    insert(conn, "coverage_gaps", gap | {"to_ts": now})
    insert(conn, "quarantine", {"source": "gamma", "reason": "not a price", "payload": "{}"})
    assert worst(pipeline.losses(conn)) == [
        ("warn", "1 coverage gaps of the last day are not filled"),
        ("warn", "1 payloads were quarantined within the hour"),
    ]

    insert(conn, "coverage_gaps", gap)
    assert worst(pipeline.losses(conn))[0] == ("fail", "1 coverage gaps are open")


def trade(conn, days_ago, number=1):
    at = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
    conn.execute("insert into trades values (%s, 1, 0, %s, %s, 1, 1, 1, 1)", [at, number, number])


def test_hosts_whose_clocks_are_wrong_are_named(conn):
    for host, role, ahead_ms in (("right", "leader", 12), ("wrong", "standby", -5_000), ("left", "gone", 9_000)):
        row = {"run_id": host, "feed": "polymarket", "role": role, "host": host, "detail": {"clock_ahead_ms": ahead_ms}}
        insert(conn, "feed_leases", {**row, "window_ends_at": dt.datetime.now(dt.UTC)})

    right, wrong = pipeline.clocks(conn)

    assert (right.status, right.found) == ("ok", "right: 0.012 s ahead of the database")
    assert (wrong.status, wrong.found) == ("warn", "wrong: 5.000 s behind the database")
    assert "synchronise" in wrong.remedy


def test_chunks_are_counted_and_a_time_to_come_is_told(conn):
    given = Settings(_env_file=None)
    assert [finding.found for finding in holdings.chunks(conn, given)] == ["none yet"]

    trade(conn, 0)
    (found,) = holdings.chunks(conn, given)
    assert found.status == "ok"
    assert found.found.startswith("1 chunks, ")
    assert "trades" in found.found

    trade(conn, -400)
    assert worst(holdings.chunks(conn, given)) == [("warn", "chunks start days in the future: trades (1)")]


def test_chunks_beyond_their_time_say_that_maintenance_does_not_run(conn):
    trade(conn, 300)

    assert worst(holdings.chunks(conn, Settings(_env_file=None, trades_retention_days=3650))) == []
    (found,) = [
        finding
        for finding in holdings.chunks(conn, Settings(_env_file=None, trades_retention_days=100))
        if finding.status != "ok"
    ]
    assert found.found == "chunks past their retention still exist in: trades"
    assert "maintenance_each_hour" in found.remedy


def test_a_chunk_that_does_not_fit_into_memory_is_to_be_cut_shorter(conn, monkeypatch):
    trade(conn, 0)
    monkeypatch.setattr(machine, "memory_bytes", lambda: 1000)

    (found,) = holdings.chunks(conn, Settings(_env_file=None))

    assert found.status == "warn"
    assert "set_chunk_time_interval('trades'" in found.remedy


@pytest.mark.parametrize(("free_days", "status"), [(1, "fail"), (10, "warn"), (100, "ok")])
def test_room_is_told_in_days(conn, monkeypatch, free_days, status):
    trade(conn, 30)
    growth = holdings.queries.growth(conn)
    usage = shutil._ntuple_diskusage(10**15, 0, int(growth * free_days) + 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)

    (found,) = holdings.disk(conn, Settings(_env_file=None, database_url=None))

    assert growth > 0
    assert (found.status, found.found.rpartition(": ")[2]) == (status, f"space for {free_days} days")


@pytest.mark.parametrize(("disk_gb", "status"), [(10**9, "ok"), (0.000_001, "fail")])
def test_the_room_of_a_server_by_its_url_is_told_from_the_size_of_its_disk(conn, disk_gb, status):
    trade(conn, 30)
    known = Settings(_env_file=None, database_url=SecretStr("postgresql://elsewhere/presage"), database_disk_gb=disk_gb)

    (found,) = holdings.disk(conn, known)

    assert found.status == status
    assert re.search(r": space for \d+ days$", found.found)


def test_of_a_server_on_this_machine_the_disk_is_looked_at(conn, monkeypatch):
    trade(conn, 30)
    looked_at = []
    usage = shutil._ntuple_diskusage(1 << 60, 0, 1 << 60)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: looked_at.append(folder) or usage)

    (found,) = holdings.disk(conn, Settings(_env_file=None, database_url=SecretStr("postgresql:///presage")))

    assert looked_at == [holdings.queries.data_directory(conn)]
    assert "space for" in found.found


def test_of_a_server_elsewhere_the_room_is_not_known(conn, monkeypatch):
    monkeypatch.setattr(disk, "queries", Elsewhere())

    (found,) = holdings.disk(conn, Settings(_env_file=None, database_url=SecretStr("postgresql://elsewhere/presage")))

    assert found.status == "ok"
    assert "space for" not in found.found
    assert "PRESAGE_DATABASE_DISK_GB" in found.found


class Elsewhere:
    """The queries, of a server that does not show its folder."""

    def __getattr__(self, name):
        return (lambda _: None) if name == "data_directory" else getattr(queries, name)


def test_keys_are_counted_and_those_about_to_be_refused(conn):
    assert worst(holdings.keys(conn)) == [("warn", "none is valid (0 revoked)")]
    for name, tier in (("a", "free"), ("b", "free"), ("c", "pro"), ("d", "pro")):
        keys.create(conn, f"{name}@example.com", "tests", tier)
    conn.execute("update api_keys set revoked_at = now() where key_id = (select max(key_id) from api_keys)")
    assert [finding.found for finding in holdings.keys(conn)] == ["3 valid (2 free, 1 pro), 1 revoked"]

    conn.execute(
        "insert into credit_usage (key_id, month, used)"
        " select min(key_id), date_trunc('month', now(), 'UTC'), 4500 from api_keys"
    )
    assert worst(holdings.keys(conn)) == [
        ("warn", "3 valid (2 free, 1 pro), 1 revoked; 1 have used 90 % of their monthly credits")
    ]


@pytest.fixture
def beside(cluster, conn, named_databases):
    """Dagster's database beside ours, with the two tables that the checks read."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True) as admin:
        admin.execute("create database dagster")
        try:
            with psycopg.connect(cluster.url("dagster"), autocommit=True) as made:
                made.execute("create table daemon_heartbeats (daemon_type text, timestamp timestamp)")
                made.execute(
                    "create table runs"
                    " (pipeline_name text, status text, create_timestamp timestamp, update_timestamp timestamp)"
                )
                yield made
        finally:
            admin.execute("drop database dagster with (force)")


def beats(made, seconds):
    made.execute("delete from daemon_heartbeats")
    for daemon in dagster.NEEDED:
        made.execute(
            "insert into daemon_heartbeats values (%s, localtimestamp - %s)", [daemon, dt.timedelta(seconds=seconds)]
        )


def test_dagster_that_never_ran_is_to_be_started(conn, named_databases):
    (found,) = dagster.dagster(conn, Settings(_env_file=None))

    assert (found.status, found.remedy) == ("warn", "start it with `presage up`")


def test_a_daemon_that_does_not_report_is_a_failure(conn, beside):
    beats(beside, 20)
    assert worst(dagster.dagster(conn, Settings(_env_file=None))) == []

    beats(beside, 300)
    ((status, found),) = worst(dagster.dagster(conn, Settings(_env_file=None)))
    assert (status, found) == (
        "fail",
        "its daemon does not report: QUEUED_RUN_COORDINATOR, SCHEDULER, SENSOR",
    )


def test_runs_that_failed_and_runs_that_wait_are_told(conn, beside):
    beats(beside, 1)
    now = "localtimestamp"
    for job in ("live", "live", "analysis"):
        beside.execute(f"insert into runs values (%s, 'FAILURE', {now}, {now})", [job])
    beside.execute(f"insert into runs values ('old', 'FAILURE', {now}, {now} - interval '3 days')")
    for minutes in range(1, 20):
        beside.execute(
            f"insert into runs values ('signals', 'QUEUED', {now} - make_interval(mins => %s), {now})", [minutes]
        )

    assert worst(dagster.dagster(conn, Settings(_env_file=None))) == [
        ("warn", "failed within a day: live 2 times, analysis 1 times"),
        ("warn", "15 runs have waited for more than five minutes"),
    ]


def test_what_belongs_to_the_pipeline_is_read_by_its_login_only(conn, cluster, database_url, beside):
    beats(beside, 1)
    logins.give_dagster(cluster.url("dagster"))
    with database.connect(login_url(cluster.url("dagster"), PIPELINE), autocommit=True) as trap:
        trap.execute("create table readers (name text)")
        # Cheap: it is called before other conditions are checked.
        trap.execute(
            "create function note() returns bool language sql cost 0.01 as"
            " 'insert into readers values (session_user) returning true'"
        )
        trap.execute("alter table runs rename to kept")
        trap.execute("create view runs as select * from kept where note()")
        trap.execute("insert into kept values ('live', 'SUCCESS', localtimestamp, localtimestamp)")
        login = login_url(database_url, PIPELINE)

        known = dagster.dagster(conn, Settings(_env_file=None, pipeline_database_url=login))
        assert worst(known) == []
        unknown = dagster.dagster(conn, Settings(_env_file=None, database_url=database_url))
        assert worst(unknown) == [
            ("warn", "its database belongs to presage_pipeline, whose login is not known here"),
        ]

        assert {name for (name,) in trap.execute("select name from readers")} == {f"{PIPELINE}_login"}
