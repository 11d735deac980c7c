"""Connections to Dagster's storage that are kept."""

from __future__ import annotations

import pytest
from dagster import DagsterInstance
from dagster._cli.utils import get_instance_for_cli
from sqlalchemy import text

from orchestration.storage_pools import STATEMENT_TIMEOUT_MS, SharedInstance, pooled
from sql.database import sqlalchemy_url
from tests.databases import new_database

CONFIG = "storage: {postgres: {postgres_url: {env: DAGSTER_PG_URL}}}"
PID, TIMEOUT = "select pg_backend_pid()", "select current_setting('statement_timeout')"


@pytest.fixture
def storage_url(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    (tmp_path / "dagster.yaml").write_text(CONFIG)
    with new_database(cluster) as url:
        monkeypatch.setenv("DAGSTER_PG_URL", sqlalchemy_url(url, driver="psycopg2"))
        yield url


def storages(instance):
    return instance.run_storage, instance.event_log_storage, instance.schedule_storage


def value(storage, query):
    connect = storage.index_connection if hasattr(storage, "index_connection") else storage.connect
    with connect() as conn:
        return conn.execute(text(query)).scalar()


def dispose(instance):
    for storage in storages(instance):
        storage._engine.dispose()


def test_connections_are_kept_and_replaced_when_the_server_has_ended_them(storage_url):
    with pooled(get_instance_for_cli)() as instance:
        kept = [{value(storage, PID) for _ in range(5)} for storage in storages(instance)]
        timeouts = {value(storage, TIMEOUT) for storage in storages(instance)}
        runs, others = storages(instance)[0], "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        value(runs, f"{others} where datname = current_database() and pid <> pg_backend_pid()")
        after = {value(storage, PID) for storage in storages(instance)}
        dispose(instance)

    assert [len(pids) for pids in kept] == [1, 1, 1]
    assert timeouts == {f"{STATEMENT_TIMEOUT_MS // 60_000}min"}
    assert len(after) == 3
    assert after & set.union(*kept) == kept[0]


def test_an_instance_is_opened_once_for_all_who_use_it(storage_url):
    opened = []

    def open_instance(ref):
        opened.append(ref)
        return DagsterInstance.from_ref(ref)

    with get_instance_for_cli() as instance:
        ref = instance.get_ref()
    shared = SharedInstance(open_instance)
    with shared(ref) as first:
        pid = value(first.run_storage, PID)
    with shared(ref) as again:
        assert value(again.run_storage, PID) == pid
    dispose(first)

    assert again is first
    assert opened == [ref]
