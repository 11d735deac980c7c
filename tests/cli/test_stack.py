"""What the programs of a stack are told, and what keeps kinds of data apart."""

from __future__ import annotations

import pytest

from cli.plan import Plan
from cli.ports import Ports
from cli.processes import StartError, Supervisor
from cli.stack import Stack, create_beside, refuse_other_schema, refuse_other_source


def stack(tmp_path, **given) -> Stack:
    plan = Plan(ports=Ports.of(8080), data_dir=tmp_path, **{"source": "simulated", **given})
    return Stack(plan, Supervisor(print), print, "postgresql:///presage", "postgresql:///dagster")


def test_a_simulation_is_asked_for_with_all_that_was_wished(tmp_path):
    wished = stack(tmp_path, seed=7, rate=500.0, markets=30, truth=tmp_path / "truth").sandbox()

    command = " ".join(wished.command)
    assert "--port 8081 --simulate 7 --rate 500.0 --markets 30" in command
    assert command.endswith(f"--log {tmp_path / 'truth'}")


def test_a_tape_is_played_at_its_speed(tmp_path):
    wished = stack(tmp_path, source="tape", tape=tmp_path, speed=4.0).sandbox()

    assert f"--tape {tmp_path} --speed 4.0" in " ".join(wished.command)


@pytest.mark.parametrize("source", ["simulated", "tape"])
def test_every_program_speaks_to_the_sandbox_and_labels_what_it_stores(tmp_path, source):
    told = stack(tmp_path, source=source).environment()

    assert told["PRESAGE_SOURCE"] == source
    names = ("GAMMA_URL", "CLOB_URL", "CLOB_SOCKET_URL", "DATA_API_URL", "CHAIN_RPC_URLS")
    addresses = [told[f"PRESAGE_{name}"] for name in names]
    assert all("127.0.0.1:8081" in address for address in addresses)


def test_the_real_exchange_is_left_to_the_settings(tmp_path):
    told = stack(tmp_path, source="exchange").environment()

    assert told["PRESAGE_SOURCE"] == "exchange"
    assert not [
        name for name in told if name.startswith(("PRESAGE_GAMMA", "PRESAGE_CLOB", "PRESAGE_DATA_API", "PRESAGE_CHAIN"))
    ]


def test_dagster_is_told_its_driver_and_its_own_database(tmp_path):
    told = stack(tmp_path).environment()

    assert told["DAGSTER_PG_URL"] == "postgresql+psycopg2:///dagster"
    assert told["DATABASE_URL"] == "postgresql:///presage"


def test_a_database_with_data_of_another_source_is_refused(conn, add_market, database_url):
    add_market("rain-tomorrow", source="simulated")

    refuse_other_source(database_url, "simulated")
    with pytest.raises(StartError, match=r"another source \(simulated\).*--fresh"):
        refuse_other_source(database_url, "exchange")


def test_tables_of_another_checkout_are_refused(conn, database_url):
    refuse_other_schema(database_url, made_now=False)  # made by hand: nothing is known of it
    refuse_other_schema(database_url, made_now=True)
    refuse_other_schema(database_url, made_now=False)

    conn.execute("update settings set value = '\"another\"' where name = 'schema'")

    with pytest.raises(StartError, match=r"another version of the schema.*--fresh"):
        refuse_other_schema(database_url, made_now=False)


def test_a_database_beside_another_is_made_once(cluster, database_url):
    create_beside(database_url, "presage_test_beside")
    create_beside(database_url, "presage_test_beside")

    import psycopg

    with psycopg.connect(cluster.url("postgres"), autocommit=True) as conn:
        query = "select count(*) from pg_database where datname = 'presage_test_beside'"
        assert conn.execute(query).fetchone() == (1,)
        conn.execute("drop database presage_test_beside")
