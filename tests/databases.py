"""Databases of a test's own, dropped when it ends."""

from __future__ import annotations

import os
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import psycopg
from psycopg import sql

from sql import database

if TYPE_CHECKING:
    from collections.abc import Iterator


class Server(Protocol):
    def url(self, database: str = ...) -> str: ...


@contextmanager
def administering(server: Server) -> Iterator[psycopg.Connection]:
    """Connect to the server's own database, in autocommit."""
    with database.connect(server.url("postgres"), autocommit=True, name="presage test") as conn:
        yield conn


@contextmanager
def new_database(server: Server, template: str = "template0") -> Iterator[str]:
    """Create a copy of the template under a name that no other test has; yield its URL.

    `template0` has no connections, unlike `template1`, to which TimescaleDB's workers connect.
    """
    name = sql.Identifier(made := f"presage_test_{os.getpid()}_{secrets.token_hex(6)}")
    with administering(server) as admin:
        # file_copy is a little faster than wal_log, and much faster on a template with data.
        admin.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(name, sql.Identifier(template))
        )
        try:
            yield server.url(made)
        finally:
            admin.execute(sql.SQL("drop database {} with (force)").format(name))


def start_jobs(conn: psycopg.Connection[Any]) -> None:
    """Have the Community licence's jobs run in a copied database, which TimescaleDB would notice within a minute."""
    if database.license(conn) == "apache":
        return
    conn.execute("select _timescaledb_functions.start_background_workers()")
    scheduler = "select from pg_stat_activity where datname = %s and backend_type like 'TimescaleDB%%Scheduler'"
    began = time.monotonic()
    while not conn.execute(scheduler, [conn.info.dbname]).fetchall():
        assert time.monotonic() - began < 60, "TimescaleDB has started no scheduler"
        time.sleep(0.05)
