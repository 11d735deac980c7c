"""Dagster, as its own database tells: whether its daemon lives, and how its runs end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.diagnosis import Finding
from cli.stack import sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

SILENT_S = 120  # each daemon reports every half minute
NEEDED = {"SENSOR", "SCHEDULER", "QUEUED_RUN_COORDINATOR"}
QUEUED = 10
QUEUED_S = 300
LARGE = 5 << 30


def dagster(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Look into the database beside ours, where `presage up` keeps what Dagster remembers."""
    from psycopg.conninfo import make_conninfo

    from sql.database import connect

    names = [sources.dagster_of(conn.info.dbname), sources.FIRST_DAGSTER]
    there = conn.execute(
        "select datname from pg_database where datname = any(%s) order by array_position(%s, datname::text)",
        [names, names],
    ).fetchone()
    if there is None:
        yield Finding("dagster", "warn", "it has never run on this server", "`presage up` starts it")
        return
    # What `info.dsn` leaves out is the password.
    beside = make_conninfo(conn.info.dsn, dbname=there[0], password=conn.info.password)
    with connect(beside, autocommit=True, name="doctor") as other:
        tables = other.execute(
            "select to_regclass('runs') is not null and to_regclass('daemon_heartbeats') is not null"
        )
        if tables.fetchone() != (True,):
            yield Finding("dagster", "warn", "it has not made its tables yet", "`presage up` starts it")
            return
        yield _daemons(other)
        yield from _runs(other)
        (size,) = other.execute("select pg_database_size(current_database())").fetchone() or (0,)
        if size > LARGE:
            remedy = "the job maintenance prunes its history each hour: in Dagster see whether it does"
            yield Finding("dagster", "warn", f"its history takes {size / (1 << 30):.1f} GB", remedy)


def _daemons(conn: psycopg.Connection[Any]) -> Finding:
    # Dagster writes the server's local time, without its zone.
    rows = conn.execute(
        "select daemon_type, extract(epoch from localtimestamp - timestamp)::float8 from daemon_heartbeats"
    ).fetchall()
    ages = {name: age for name, age in rows if name in NEEDED}
    silent = sorted(name for name in NEEDED if ages.get(name, SILENT_S) >= SILENT_S)
    if silent:
        found = f"its daemon does not report: {', '.join(silent)}"
        return Finding("dagster", "fail", found, "`presage up` starts it; if that runs, see daemon.log")
    return Finding("dagster", "ok", f"its daemon reported {max(ages.values()):.0f} s ago")


def _runs(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    failed = conn.execute(
        "select pipeline_name, count(*) from runs where status = 'FAILURE'"
        " and update_timestamp > localtimestamp - interval '1 day' group by 1 order by 2 desc, 1"
    ).fetchall()
    if failed:
        found = "failed within a day: " + ", ".join(f"{job} {count} times" for job, count in failed)
        yield Finding("runs", "warn", found, "in Dagster, Runs, Failed says why; the jobs themselves start again")
    else:
        yield Finding("runs", "ok", "no run failed within a day")
    (queued,) = conn.execute(
        "select count(*) from runs where status = 'QUEUED'"
        " and create_timestamp < localtimestamp - make_interval(secs => %s)",
        [QUEUED_S],
    ).fetchone() or (0,)
    if queued > QUEUED:
        remedy = "is the code server up? Back-fills wait for one another by intention"
        yield Finding("runs", "warn", f"{queued} runs have waited for more than five minutes", remedy)
