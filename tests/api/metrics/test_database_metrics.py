"""Metrics of the database server, its disk, its replica and its backups."""

from __future__ import annotations

import datetime as dt

import pytest
from psycopg.types.json import Jsonb

from api.app import create_app
from api.data.pool import Pool
from api.data.replica import ReplicaReads
from api.service import Service
from api.stream.hub import StreamHub
from sql import database, disk
from sql.queries import pipeline
from tests.api.conftest import Client, OneConnection
from tests.api.metrics.test_metrics import Read
from tests.factories import insert
from tests.patience import until
from tests.replicas import connected, standby

NOW = dt.datetime.now(dt.UTC)


def read(**service):
    pool = OneConnection(service.pop("conn"))
    made = Service(**{"reads": pool, "writes": pool, "hub": StreamHub(pool, lambda: 0), **service})
    return Read(Client(create_app(made)).simulate_get("/metrics").text)


def names(found):
    return {sample.name for sample in found.samples}


def test_the_server_says_how_many_connections_it_has_and_allows(database_url, conn):
    def age():
        return conn.execute(pipeline.server.sql).fetchone()[2]  # of the whole server: other tests raise it meanwhile

    before = age()
    with database.connect(database_url), database.connect(database_url):
        found = read(conn=conn)

    assert 3 <= found("presage_database_server_connections") < found("presage_database_server_connections_max")
    assert before <= found("presage_database_transaction_age") <= age()
    assert "presage_database_replica_lag_seconds" not in names(found)


def test_any_role_may_ask_for_the_servers_figures(conn):
    conn.execute("create role nobody_in_particular")
    conn.execute("set local role nobody_in_particular")

    connections, most, age = pipeline.server(conn)

    assert (connections >= 1, most > 1, age > 0) == (True, True, True)


def test_the_days_until_the_disk_is_full_are_those_that_doctor_forecasts(conn):
    insert(conn, "audit_log", {"ts": NOW - dt.timedelta(days=90), "action": "set", "result": "ok"})

    found = read(conn=conn, database_disk_gb=1000)

    free = found("presage_database_disk_free_bytes")
    assert free == 1000 * disk.GIB - found("presage_database_size_bytes")
    (growth,) = conn.execute("select sum(total_bytes) / 30.0 from chunks_detailed_size('audit_log')").fetchone()
    assert found("presage_database_disk_days_left") == pytest.approx(free / float(growth))


def test_what_is_not_known_is_absent(conn, monkeypatch):
    monkeypatch.setattr(disk, "LOCAL", ())
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda folder: (_ for _ in ()).throw(PermissionError(folder)))

    found = names(read(conn=conn))

    assert "presage_database_size_bytes" in found
    assert not found & {
        "presage_database_disk_free_bytes",
        "presage_database_disk_days_left",
        "presage_last_backup_timestamp_seconds",
    }


def test_a_backup_is_the_last_one_that_succeeded(conn):
    for days, action, result in (
        (9, "backup.file", "ok"),
        (3, "backup.file", "ok"),
        (2, "backup.file", "failed"),
        (1, "backup.file", "started"),
        (0, "set", "ok"),
    ):
        ts = NOW - dt.timedelta(days=days)
        insert(conn, "audit_log", {"ts": ts, "action": action, "result": result, "operator": "root@host"})

    assert read(conn=conn)("presage_last_backup_timestamp_seconds") == pytest.approx(NOW.timestamp() - 3 * 86_400)
    base = {"newest": {"ended": (NOW - dt.timedelta(days=1)).isoformat()}}
    conn.execute("insert into settings (name, value) values ('base_backups', %s)", [Jsonb(base)])
    assert read(conn=conn)("presage_last_backup_timestamp_seconds") == pytest.approx(NOW.timestamp() - 86_400)


def test_failed_keys_are_counted_by_result(conn, service, client):
    for key in ("wrong", "wrong", "x" * 300):
        client.ask("/v1/time", key=key)

    found = Read(client.simulate_get("/metrics").text)

    assert found("presage_failed_keys_total", result="unknown") == 3
    assert found("presage_failed_keys_total", result="revoked") == 0


def test_a_replica_says_how_old_its_newest_transaction_is(conn, database_url):
    with standby() as url, until(lambda: connected(url)) as replica:
        assert replica.execute("select pg_is_in_recovery()").fetchone() == (True,)
        first = read(conn=conn, reads=OneConnection(replica))("presage_database_replica_lag_seconds")
        until(lambda: pipeline.replica_lag(replica) > first)
        pools = Pool(url, 1), Pool(database_url, 1)
        given_up = ReplicaReads(*pools, max_lag_s=first / 2)
        given_up.read(lambda conn: None)
        while_the_primary_is_read = read(conn=conn, reads=given_up)("presage_database_replica_lag_seconds")
        given_up.close()

        assert 0 < first < 600
        assert while_the_primary_is_read > first
