"""Each source of data has its own database."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from cli.stack import sources
from cli.stack.plan import Plan
from cli.stack.ports import Ports


def planned(tmp_path, **given) -> Plan:
    return Plan(ports=Ports.of(8080), data_dir=tmp_path, **given)


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"source": "simulated", "seed": 7}, "simulated-7"),
        ({"source": "tape", "tape": Path("/data/June 2025 (games)")}, "tape-june-2025-games"),
        ({"source": "tape", "tape": Path("/")}, "tape"),
        ({"source": "exchange"}, "exchange"),
        ({"source": "exchange", "stored_as": "Polymarket"}, "polymarket"),
        ({"source": "tape", "tape": Path("/") / ("x" * 200)}, "tape-" + "x" * 43),
    ],
)
def test_a_database_is_named_for_what_it_holds(tmp_path, given, name):
    made = planned(tmp_path, **given)

    assert made.database == name
    assert made.dagster_home == tmp_path / "dagster" / name
    assert made.key_file == tmp_path / "keys" / name
    assert len(sources.dagster_of(name)) < 64


def test_commands_work_on_the_database_that_was_started_last(tmp_path):
    (tmp_path / "database").mkdir()  # the embedded server's
    assert sources.current(tmp_path) == "presage"

    sources.remember(tmp_path, "simulated-1")
    sources.remember(tmp_path, "exchange")

    assert sources.current(tmp_path) == "exchange"
    assert {path.name for path in tmp_path.iterdir()} == {"database", sources.FILE}


@pytest.fixture
def earlier(cluster, named_databases):
    """The databases of release 0.1.0 with a simulated market; databases created from them are dropped."""
    names = ("presage", "dagster", "simulated-1", "simulated-1-dagster", "exchange", "exchange-dagster")

    def execute(name, *statements):
        with psycopg.connect(cluster.url(name), autocommit=True) as conn:
            return [conn.execute(statement) for statement in statements]

    def drop():
        execute("postgres", *(f'drop database if exists "{name}" with (force)' for name in names))

    drop()
    execute("postgres", "create database presage", "create database dagster")
    execute("presage", "create table markets (source text)", "insert into markets values ('simulated')")
    yield execute
    drop()


def databases(cluster):
    with psycopg.connect(cluster.url("postgres")) as conn:
        return {row[0] for row in conn.execute("select datname from pg_database")}


def test_the_database_of_release_0_1_0_is_adopted_by_its_source(cluster, earlier):
    said = []
    with psycopg.connect(cluster.url("presage")):  # as a worker of TimescaleDB may be
        sources.rename_legacy(cluster, "simulated-1", "simulated", said.append)

    assert said == ["the database presage is now simulated-1"]
    assert {"simulated-1", "simulated-1-dagster"} <= databases(cluster)
    assert not {"presage", "dagster"} & databases(cluster)
    with psycopg.connect(cluster.url("simulated-1")) as conn:
        assert conn.execute("select source from markets").fetchall() == [("simulated",)]
    sources.rename_legacy(cluster, "simulated-1", "simulated", said.append)
    assert len(said) == 1


def test_it_is_left_alone_by_another_source(cluster, earlier):
    sources.rename_legacy(cluster, "exchange", "exchange", pytest.fail)

    assert {"presage", "dagster"} <= databases(cluster)
    assert "exchange" not in databases(cluster)


def test_starting_over_erases_the_databases_of_one_source(cluster, earlier):
    earlier("postgres", 'create database "simulated-1"', 'create database "simulated-1-dagster"')
    earlier("postgres", 'create database "exchange"')

    sources.drop(cluster, "simulated-1")

    assert {"presage", "dagster", "exchange"} <= databases(cluster)
    assert not {"simulated-1", "simulated-1-dagster"} & databases(cluster)
