"""Connections, and conversion of incoming numbers."""

from __future__ import annotations

from decimal import Decimal

import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict

from sql import database


def test_a_connection_speaks_utc_and_keeps_the_urls_own_options(cluster):
    url = cluster.url("postgres")
    url += ("&" if "?" in url else "?") + "options=-c%20geqo%3Doff"

    with database.connect(url, name="a reader", statement_timeout=1234, DateStyle="ISO, DMY") as conn:
        shown = [conn.execute(f"show {name}").fetchone()[0] for name in ("timezone", "geqo", "statement_timeout")]

        assert shown == ["UTC", "off", "1234ms"]
        assert conn.execute("show datestyle").fetchone() == ("ISO, DMY",)
        assert conn.execute("show application_name").fetchone() == ("a reader",)


def test_the_licence_is_what_the_server_says(conn):
    assert database.license(conn) == conn.execute("show timescaledb.license").fetchone()[0]


def test_a_database_without_timescaledb_is_named_as_such(cluster):
    with database.connect(cluster.url("template1")) as conn, pytest.raises(LookupError, match="TimescaleDB"):
        database.license(conn)


@pytest.mark.parametrize(
    ("url", "driver", "expected"),
    [
        ("postgresql://u:p%40ss@host:5433/db?sslmode=require", "psycopg2", ("u", "p@ss", "host", 5433, "db")),
        ("postgresql:///db", "psycopg", (None, None, None, None, "db")),
        ("postgresql://u@/db?host=/run/a%20b&port=5433", "psycopg", ("u", None, None, None, "db")),
        ("postgresql://u@%2Frun%2Fa:5433/db", "psycopg", ("u", None, None, None, "db")),
    ],
)
def test_a_url_says_the_same_to_sqlalchemy(url, driver, expected):
    made = sqlalchemy.make_url(database.sqlalchemy_url(url, driver))

    assert made.drivername == f"postgresql+{driver}"
    assert (made.username, made.password, made.host, made.port, made.database) == expected
    given = conninfo_to_dict(url)
    _, arguments = made.get_dialect()().create_connect_args(made)
    assert {**arguments, "port": str(arguments.get("port", ""))} == {**given, "port": str(given.get("port", ""))}


def test_sqlalchemy_connects_over_the_socket(cluster):
    engine = sqlalchemy.create_engine(database.sqlalchemy_url(cluster.url("postgres")), poolclass=sqlalchemy.NullPool)

    with engine.connect() as connection:
        assert connection.scalar(sqlalchemy.text("select 1")) == 1


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("0.52", 520_000),
        (0.1, 100_000),
        (0.1 + 0.2, 300_000),
        (7, 7_000_000),
        (Decimal("-1.5"), -1_500_000),
        ("1.5e3", 1_500_000_000),
        ("0.0000005", 0),
        ("0.0000015", 2),
        ("9223372036854.775807", 2**63 - 1),
        ("0.1234564999999999999999999999999999999", 123_456),
    ],
)
def test_micro_units_are_exact_and_a_seventh_decimal_rounds_half_even(value, units):
    assert database.micro(value) == units


@pytest.mark.parametrize(
    "value", ["NaN", float("inf"), "-Infinity", "", "0,5", None, "9223372036854.775808", "1e999999"]
)
def test_what_is_no_number_or_too_large_is_refused(value):
    with pytest.raises(ValueError):
        database.micro(value)


def test_a_database_is_named_without_its_password():
    named = database.without_password("postgresql://me:s%20ecret@db.example:5433/presage?sslmode=require&sslpassword=x")

    assert conninfo_to_dict(named) == {
        "user": "me",
        "host": "db.example",
        "port": "5433",
        "dbname": "presage",
        "sslmode": "require",
    }
    assert database.without_password("") == ""
