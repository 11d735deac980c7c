"""Connections to Dagster's storage that are kept."""

from __future__ import annotations

import pytest
from dagster import DagsterInstance, SensorEvaluationContext
from dagster._cli.utils import get_instance_for_cli
from psycopg.conninfo import make_conninfo
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from orchestration import daemon
from orchestration.storage_pools import STATEMENT_TIMEOUT_MS, SharedInstance, keep_connections, pooled, share_instance
from sql.database import sqlalchemy_url
from tests.databases import new_database
from tests.patience import until
from tests.replicas import connected, standby

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


def test_options_of_the_url_are_kept(storage_url, monkeypatch):
    url = make_conninfo(storage_url, options="-c work_mem=5MB")
    monkeypatch.setenv("DAGSTER_PG_URL", sqlalchemy_url(url, driver="psycopg2"))

    with get_instance_for_cli() as instance:
        keep_connections(instance, 15_000)
        found = [value(instance.run_storage, query) for query in ("select current_setting('work_mem')", TIMEOUT)]
        dispose(instance)

    assert found == ["5MB", "15s"]


def test_a_replica_gets_no_connection(storage_url):
    with standby() as replica, get_instance_for_cli() as instance:
        until(lambda: connected(replica)).close()
        runs = instance.run_storage
        runs.postgres_url = sqlalchemy_url(replica, driver="psycopg2")
        keep_connections(instance)

        with pytest.raises(OperationalError, match="hot standby"), runs._engine.connect():
            pass


def test_ticks_share_an_instance(storage_url, monkeypatch):
    monkeypatch.setattr(DagsterInstance, "from_ref", DagsterInstance.from_ref)  # so that it is put back
    with get_instance_for_cli() as instance:
        ref = instance.get_ref()
    share_instance()

    seen = []
    for _ in range(2):
        with SensorEvaluationContext(ref, None, None, None, None) as tick:
            seen.append((tick.instance, value(tick.instance.run_storage, PID)))
    dispose(seen[0][0])

    assert seen[0] == seen[1]
    assert isinstance(DagsterInstance.from_ref, SharedInstance)


def test_another_configuration_gets_an_instance_of_its_own(storage_url):
    opened = []

    def open_instance(ref):
        opened.append(ref)
        return from_ref(ref)

    with get_instance_for_cli() as instance:
        ref = instance.get_ref()
    shared, from_ref = SharedInstance(open_instance), DagsterInstance.from_ref
    other = ref._replace(settings={**(ref.settings or {}), "nux": {"enabled": True}})
    for each in (ref, ref, other):
        with shared(each) as made:
            assert made.get_ref() == each

    assert opened == [ref, other]


def test_the_daemons_command_gets_an_instance_with_pools(storage_url, monkeypatch):
    seen = []

    def command():
        with daemon.cli.get_instance_for_cli() as instance:
            seen.extend(value(instance.run_storage, PID) for _ in range(3))
            dispose(instance)

    monkeypatch.setattr(daemon.cli, "get_instance_for_cli", daemon.cli.get_instance_for_cli)
    monkeypatch.setattr(daemon.cli, "main", command)

    daemon.run_pooled()

    assert len(seen) == 3
    assert len(set(seen)) == 1
