"""Checks of Dagster from its own database: daemon heartbeats, failed and queued runs, history size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli import logins
from cli.diagnosis import Finding
from cli.stack import sources
from sql.roles.rights import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from config.settings import Settings

MAX_HEARTBEAT_AGE_S = 120  # each daemon reports every half minute
NEEDED = {"SENSOR", "SCHEDULER", "QUEUED_RUN_COORDINATOR"}
MAX_QUEUED = 10
QUEUED_S = 300
MAX_SIZE = 5 << 30


def dagster(conn: psycopg.Connection[Any], settings: Settings) -> Iterator[Finding]:
    """Check Dagster's database, which `presage up` creates beside ours."""
    from sql.database import connect

    names = [sources.dagster_of(conn.info.dbname), sources.FIRST_DAGSTER]
    there = conn.execute(
        "select datname, pg_get_userbyid(datdba) = %s from pg_database where datname = any(%s)"
        " order by array_position(%s, datname::text)",
        [PIPELINE, names, names],
    ).fetchone()
    if there is None:
        yield Finding("dagster", "warn", "it has never run on this server", "start it with `presage up`")
        return
    beside = _address(conn, settings, there[0], is_pipelines=there[1])
    if beside is None:
        found = f"its database belongs to {PIPELINE}, whose login is not known here"
        yield Finding("dagster", "warn", found, "set PRESAGE_PIPELINE_DATABASE_URL")
        return
    with connect(beside, autocommit=True, name="doctor") as other:
        tables = other.execute(
            "select to_regclass('runs') is not null and to_regclass('daemon_heartbeats') is not null"
        )
        if tables.fetchone() != (True,):
            yield Finding("dagster", "warn", "it has not created its tables yet", "start it with `presage up`")
            return
        yield _daemons(other)
        yield from _runs(other)
        (size,) = other.execute("select pg_database_size(current_database())").fetchone() or (0,)
        if size > MAX_SIZE:
            remedy = "the job maintenance prunes its history each hour: check its runs in Dagster"
            yield Finding("dagster", "warn", f"its history takes {size / (1 << 30):.1f} GB", remedy)


def _address(conn: psycopg.Connection[Any], settings: Settings, name: str, *, is_pipelines: bool) -> str | None:
    """Return the address of Dagster's database; the pipeline's is read as the pipeline, which can put anything there.

    A function behind a view or an index would otherwise run with the owner's rights.
    """
    from psycopg.conninfo import make_conninfo

    if not is_pipelines:
        # `info.dsn` does not include the password.
        return make_conninfo(conn.info.dsn, dbname=name, password=conn.info.password)
    if url := logins.given(settings).get(PIPELINE):
        return make_conninfo(url, dbname=name)
    return None if settings.database_url else make_conninfo(conn.info.dsn, dbname=name, user=f"{PIPELINE}_login")


def _daemons(conn: psycopg.Connection[Any]) -> Finding:
    # Dagster writes the server's local time, without its zone.
    rows = conn.execute(
        "select daemon_type, extract(epoch from localtimestamp - timestamp)::float8 from daemon_heartbeats"
    ).fetchall()
    ages = {name: age for name, age in rows if name in NEEDED}
    silent = sorted(name for name in NEEDED if ages.get(name, MAX_HEARTBEAT_AGE_S) >= MAX_HEARTBEAT_AGE_S)
    if silent:
        found = f"its daemon does not report: {', '.join(silent)}"
        return Finding("dagster", "fail", found, "start it with `presage up`; if that is running, see daemon.log")
    return Finding("dagster", "ok", f"its daemon reported {max(ages.values()):.0f} s ago")


def _runs(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    from orchestration.runs.hosts import LOCKED, TAKES

    if hosts := len(conn.execute(LOCKED, {"kind": TAKES}).fetchall()):
        yield Finding("runs", "ok", f"hosts with the role runs that take them: {hosts}")
    failed = conn.execute(
        "select pipeline_name, count(*) from runs where status = 'FAILURE'"
        " and update_timestamp > localtimestamp - interval '1 day' group by 1 order by 2 desc, 1"
    ).fetchall()
    if failed:
        found = "failed within a day: " + ", ".join(f"{job} {count} times" for job, count in failed)
        yield Finding(
            "runs", "warn", found, "see Runs, Failed in Dagster for the cause; the jobs restart by themselves"
        )
    else:
        yield Finding("runs", "ok", "no run failed within a day")
    (queued,) = conn.execute(
        "select count(*) from runs where status = 'QUEUED'"
        " and create_timestamp < localtimestamp - make_interval(secs => %s)",
        [QUEUED_S],
    ).fetchone() or (0,)
    if queued > MAX_QUEUED:
        remedy = "check that the code server is up; back-fills queue behind one another by design"
        yield Finding("runs", "warn", f"{queued} runs have waited for more than five minutes", remedy)
