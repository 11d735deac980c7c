"""What `presage up` creates beside a database, and what it refuses to write to."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from cli.stack.databases import create_beside, refuse_other_source, refuse_other_tape
from cli.stack.processes.program import StartError


def test_a_database_with_data_of_another_source_is_refused(conn, add_market, database_url):
    add_market("rain-tomorrow", source="simulated")

    refuse_other_source(database_url, "simulated")
    with pytest.raises(StartError, match=r"another source \(simulated\).*DATABASE_URL"):
        refuse_other_source(database_url, "exchange")


def test_recordings_of_another_folder_of_the_same_name_are_refused(conn, database_url, tmp_path):
    refuse_other_tape(database_url, None)
    refuse_other_tape(database_url, tmp_path / "june/recorded")
    refuse_other_tape(database_url, tmp_path / "june/recorded")

    with pytest.raises(StartError, match=r"holds recordings of .*june/recorded.*--fresh"):
        refuse_other_tape(database_url, tmp_path / "july/recorded")


def test_a_database_beside_another_is_made_once_also_by_hosts_that_start_together(cluster, database_url):
    with ThreadPoolExecutor(8) as hosts:
        for made in [hosts.submit(create_beside, database_url, "presage_test_beside") for _ in range(8)]:
            made.result()
    create_beside(database_url, "presage_test_beside")

    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        query = "select count(*) from pg_database where datname = 'presage_test_beside'"
        assert conn.execute(query).fetchone() == (1,)
        conn.execute("drop database presage_test_beside")
