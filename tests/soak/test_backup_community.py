"""Backup and restore of a Community-licence database: aggregates stay aggregates, columns stay columns.

The only server of that licence here is one in WebAssembly, with one session and one database, that takes no COPY. So
pg_dump writes inserts, and what `presage restore` does with databases around pg_restore is done by hand.
"""

from __future__ import annotations

import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from sql import migrate
from sql.backup import origin, programs
from tests import community
from tests.sql import candles, schema

WIRE = Path(community.__file__).parent / "wire.mjs"
RELEASE = 17


@contextmanager
def served():
    """Start a fresh server; yield its address."""
    assert shutil.which("node"), "install nodejs and npm"
    with subprocess.Popen(["node", WIRE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        port = int(process.stdout.readline())
        try:
            yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=disable gssencmode=disable"
        finally:
            process.stdin.close()
            process.wait(timeout=30)


@contextmanager
def connected(url):
    """Connect with client-side parameters and a fixed search path and time zone."""
    with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.ClientCursor) as conn:
        conn.execute("set search_path = public")
        conn.execute("set timezone = 'UTC'")
        yield conn


def described(conn):
    kept = [conn.execute(candles.kept(table)).fetchall() for table in candles.TABLES]
    columns = conn.execute(schema.COLUMNS).fetchall()
    compressed = conn.execute(
        "select hypertable_name, count(*) filter (where is_compressed), count(*) from timescaledb_information.chunks"
        " group by 1 order by 1"
    )
    jobs = conn.execute(
        "select proc_name, hypertable_name, config from timescaledb_information.jobs where job_id >= 1000 order by 1, 2"
    )
    aggregates = conn.execute(
        "select view_name, materialized_only, finalized from timescaledb_information.continuous_aggregates order by 1"
    )
    return kept, columns, compressed.fetchall(), jobs.fetchall(), aggregates.fetchall()


@pytest.mark.soak
def test_aggregates_columns_and_jobs_are_there_again_and_go_on(tmp_path):
    file = tmp_path / "community.dump"
    pg_dump = programs.program("pg_dump", RELEASE, None, newer=True)
    pg_restore = programs.program("pg_restore", RELEASE, None, newer=False)
    trades = candles.random_trades(seed=4, count=400)
    with served() as url:
        with connected(url) as conn:
            conn.execute(migrate.script("timescale"))
            conn.execute(candles.insert(trades[::2]))
            for name in ("candles_1m", "candles_1h"):
                conn.execute(f"call refresh_continuous_aggregate('{name}', null, null)")
            conn.execute("select compress_chunk(chunk) from show_chunks('trades') as chunk")
            backup = origin.note(conn)
            before = described(conn)
        # In one statement a table, as COPY is: its rows refer to each other.
        inserts = ("--inserts", "--rows-per-insert=10000")
        programs.run([pg_dump, "--format=custom", "--no-owner", *inserts, "--file", file], url)

    with served() as url:
        with connected(url) as conn:
            conn.execute("create extension timescaledb")
            conn.execute("select timescaledb_pre_restore()")
        programs.run([pg_restore, "--exit-on-error", "--no-owner", "--no-privileges", file], url)
        with connected(url) as conn:
            conn.execute("select timescaledb_post_restore()")
            after = described(conn)
            conn.execute(candles.insert(trades))
            for name in ("candles_1m", "candles_1h"):
                conn.execute(f"call refresh_continuous_aggregate('{name}', null, null)")
            kept = [conn.execute(candles.kept(table)).fetchall() for table in candles.TABLES]
            computed = [conn.execute(candles.computed(table)).fetchall() for table in candles.TABLES]
            counted = conn.execute("select count(*) from trades").fetchone()

    assert backup.license == "timescale"
    assert {name: packed for name, packed, _ in before[2]}["trades"] > 0
    assert after == before
    assert counted == (400,)
    assert kept == computed
