"""Databases of the embedded server: one for each source of data, and a Dagster database for each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sql.embedded import Cluster

FIRST = "presage"  # release 0.1.0's only database, and the default before anything was started
FIRST_DAGSTER = "dagster"
MAX_NAME = 48  # of PostgreSQL's 63 bytes; Dagster's name is longer
FILE = "started"  # file in the data folder with the name of the database started last


def named(source: str, of: str = "") -> str:
    """Return the database name of a source: `simulated-1`, `tape-recorded`, `exchange`."""
    name = "-".join(filter(None, (source, of))).lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:MAX_NAME].rstrip("-") or "exchange"


def dagster_of(name: str) -> str:
    """Return the name of Dagster's database for a source's."""
    return FIRST_DAGSTER if name == FIRST else f"{name}-{FIRST_DAGSTER}"


def current(data_dir: Path) -> str:
    """Return the name of the database started last in a data folder."""
    try:
        return (data_dir / FILE).read_text().strip() or FIRST
    except OSError:
        return FIRST


def remember(data_dir: Path, name: str) -> None:
    """Record which database is started, as the default of other commands."""
    temporary = data_dir / f".{FILE}.new"
    temporary.write_text(f"{name}\n")
    temporary.replace(data_dir / FILE)


def rename_legacy(cluster: Cluster, name: str, source: str, report: Callable[[str], None]) -> None:
    """Rename release 0.1.0's database to its source's name, if it has no data of another source."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True, connect_timeout=10) as conn:
        there = _databases(conn)
        if name in there or FIRST not in there or _sources(cluster) - {source}:
            return
        for old, new in ((FIRST, name), (FIRST_DAGSTER, dagster_of(name))):
            if old in there and new not in there:
                _rename(conn, old, new)
    report(f"the database {FIRST} is now {name}")


def drop(cluster: Cluster, name: str) -> None:
    """Drop a source's databases."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True, connect_timeout=10) as conn:
        for each in (name, dagster_of(name)):
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(each)))


def _databases(conn: psycopg.Connection) -> set[str]:
    return {row[0] for row in conn.execute("select datname from pg_database where not datistemplate")}


def _sources(cluster: Cluster) -> set[str]:
    with psycopg.connect(cluster.url(FIRST), autocommit=True, connect_timeout=10) as conn:
        if conn.execute("select to_regclass('markets') is null").fetchone() == (True,):
            return set()
        return {row[0] for row in conn.execute("select distinct source from markets")}


def _rename(conn: psycopg.Connection, old: str, new: str) -> None:
    """Rename a database; its TimescaleDB workers are terminated and kept from reconnecting meanwhile."""
    before, after = sql.Identifier(old), sql.Identifier(new)
    conn.execute(sql.SQL("alter database {} allow_connections false").format(before))
    try:
        conn.execute("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", [old])
        conn.execute(sql.SQL("alter database {} rename to {}").format(before, after))
    except psycopg.Error:
        conn.execute(sql.SQL("alter database {} allow_connections true").format(before))
        raise
    conn.execute(sql.SQL("alter database {} allow_connections true").format(after))
