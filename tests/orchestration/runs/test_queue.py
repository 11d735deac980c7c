"""The queue in Dagster's database."""

from __future__ import annotations

import threading

import psycopg
import pytest

from orchestration.runs import hosts
from orchestration.runs.hosts import EXECUTES, TAKES
from sql.database import sqlalchemy_url
from tests import replicas
from tests.databases import new_database
from tests.patience import PATIENCE_S, until


def test_a_replica_is_no_place_for_a_host():
    with replicas.standby() as url:
        until(lambda: replicas.connected(url)).close()
        with pytest.raises(psycopg.Error, match="read-only"):
            hosts.connect(sqlalchemy_url(url, driver="psycopg2"), 1, EXECUTES)


def test_hosts_that_start_together_have_one_queue_and_each_message_is_taken_once(cluster):
    with new_database(cluster) as url:
        taken, faults = [[] for _ in range(4)], []
        gate = threading.Barrier(len(taken) + 1)

        def take(number, mine):
            try:
                with hosts.connect(sqlalchemy_url(url, driver="psycopg2"), number, TAKES) as conn:
                    gate.wait(PATIENCE_S)
                    gate.wait(PATIENCE_S)
                    while row := conn.execute(hosts.TAKE).fetchone():
                        mine.append(int(row[0]))
            except Exception as fault:  # noqa: BLE001
                faults.append(fault)
                gate.abort()

        threads = [threading.Thread(target=take, args=each) for each in enumerate(taken)]
        for thread in threads:
            thread.start()
        with psycopg.connect(url, autocommit=True) as conn:
            gate.wait(PATIENCE_S)
            conn.cursor().executemany(hosts.PUT, [{"run_id": str(number)} for number in range(200)])
            gate.wait(PATIENCE_S)
        for thread in threads:
            thread.join()

    assert faults == []
    assert sorted(number for mine in taken for number in mine) == list(range(200))
    assert all(mine == sorted(mine) for mine in taken)
