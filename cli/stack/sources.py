"""Databases of the embedded server: each source of data has its own, and one of Dagster's beside it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from sql.embedded import Cluster

FIRST = "presage"  # the only one that release 0.1.0 had, and the one that commands use before anything was started
FIRST_DAGSTER = "dagster"
MAX_NAME = 48  # of PostgreSQL's 63 bytes; Dagster's name is longer
FILE = "started"  # in the data folder: the name of the database that was started last


def named(source: str, of: str = "") -> str:
    """Name the database of a source: `simulated-1`, `tape-recorded`, `exchange`."""
    name = "-".join(filter(None, (source, of))).lower()
    return re.sub(r"[^a-z0-9]+", "-", name).strip("-")[:MAX_NAME].rstrip("-") or "exchange"


def dagster_of(name: str) -> str:
    """Name Dagster's database beside a source's."""
    return FIRST_DAGSTER if name == FIRST else f"{name}-{FIRST_DAGSTER}"


def current(data_dir: Path) -> str:
    """Name the database that was started last over a data folder."""
    try:
        return (data_dir / FILE).read_text().strip() or FIRST
    except OSError:
        return FIRST


def remember(data_dir: Path, name: str) -> None:
    """Write down which database is started, for commands that name none."""
    temporary = data_dir / f".{FILE}.new"
    temporary.write_text(f"{name}\n")
    temporary.replace(data_dir / FILE)


def adopt(cluster: Cluster, name: str, source: str, report: Callable[[str], None]) -> None:
    """Give the database of release 0.1.0 the name of its source, if it holds nothing of another one."""
    with psycopg.connect(cluster.url("postgres"), autocommit=True, connect_timeout=10) as conn:
        there = _databases(conn)
        if name in there or FIRST not in there or _sources(cluster) - {source}:
            return
        for old, new in ((FIRST, name), (FIRST_DAGSTER, dagster_of(name))):
            if old in there and new not in there:
                _rename(conn, old, new)
    report(f"the database {FIRST} is now {name}")


def drop(cluster: Cluster, name: str) -> None:
    """Forget all that is held of a source."""
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
    """Rename a database; TimescaleDB's workers in it are ended, and kept from coming back meanwhile."""
    before, after = sql.Identifier(old), sql.Identifier(new)
    conn.execute(sql.SQL("alter database {} allow_connections false").format(before))
    try:
        conn.execute("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", [old])
        conn.execute(sql.SQL("alter database {} rename to {}").format(before, after))
    except psycopg.Error:
        conn.execute(sql.SQL("alter database {} allow_connections true").format(before))
        raise
    conn.execute(sql.SQL("alter database {} allow_connections true").format(after))
