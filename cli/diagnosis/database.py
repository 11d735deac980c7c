"""Checks of the database: connection, server, extension, schema and clock."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

from cli.diagnosis import Finding, backups, dagster, holdings, pipeline, roles
from cli.stack import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

    from config.settings import Settings

MIN_SERVER_VERSION = 15  # PostgreSQL: `nulls not distinct`, `merge`, and what TimescaleDB still supports
DAGSTER_CONNECTIONS = 45  # daemon, webserver, code server and four live runs, with what each keeps open
SHARD_CONNECTIONS = 8  # of the two runs of each further shard of the live feed


def database(settings: Settings) -> list[Finding]:
    """Run all database checks; if it cannot be reached, return why."""
    found = []
    try:
        with _connected(settings) as (where, conn):
            found.append(where)
            if conn is not None:
                checks: list[Callable[..., Any]]
                checks = [server, connections, timescaledb, features, jobs, migration, clock, dagster.dagster]
                if _row(conn, "select to_regclass('stage_clocks') is not null") == (True,):
                    checks += [holdings.chunks, holdings.disk, holdings.keys, holdings.webhook_secrets]
                    checks += [holdings.wraparound, backups.archive, roles.roles]
                    checks += [pipeline.lag, pipeline.shards, pipeline.hosts, pipeline.losses, pipeline.clocks]
                for check in checks:
                    found += _run_check(check, conn, settings)
    except Exception as error:  # noqa: BLE001 - other checks are still worth reporting
        found.append(_unreachable(error))
    return found


def server(conn: psycopg.Connection[Any]) -> Finding:
    """Check PostgreSQL's version and the permission to create schemas."""
    version, number, may = _row(
        conn,
        "select split_part(version(), ' on ', 1), current_setting('server_version_num')::int / 10000,"
        " has_database_privilege(current_database(), 'create')",
    )
    if number < MIN_SERVER_VERSION:
        return Finding("server", "fail", version, f"use PostgreSQL {MIN_SERVER_VERSION} or newer")
    if not may:
        return Finding(
            "server", "fail", f"{version}; this role may not create schemas", "grant create on the database to the role"
        )
    return Finding("server", "ok", version)


def connections(conn: psycopg.Connection[Any], settings: Settings) -> Finding:
    """Check that max_connections is enough for all our processes."""
    allowed, used = _row(
        conn,
        "select current_setting('max_connections')::int,"
        " (select count(*) from pg_stat_activity where backend_type = 'client backend')",
    )
    # With a read replica, the reads' connections are made while it is not read.
    wanted = settings.api_workers * settings.api_pool + DAGSTER_CONNECTIONS
    wanted += SHARD_CONNECTIONS * (settings.usual_shards * len(settings.exchange_names) - 1)
    found = f"{used} of {allowed} connections in use; all our processes together need up to {wanted}"
    if allowed < wanted:
        return Finding("connections", "warn", found, "raise max_connections, or lower PRESAGE_API_POOL")
    return Finding("connections", "ok", found)


def timescaledb(conn: psycopg.Connection[Any]) -> Finding:
    """Compare the extension's version in the database with the server's."""
    offered, there = _row(
        conn,
        "select (select default_version from pg_available_extensions where name = 'timescaledb'),"
        " (select extversion from pg_extension where extname = 'timescaledb')",
    )
    if offered is None and there is None:
        remedy = "use a server that has it, such as the image timescale/timescaledb, or the embedded one"
        return Finding("timescaledb", "fail", "this server has no TimescaleDB", remedy)
    if there is None:
        return Finding("timescaledb", "warn", f"{offered}, not yet in this database", "run `presage migrate`")
    if offered != there:
        remedy = "in psql -X, as the first statement: alter extension timescaledb update"
        return Finding("timescaledb", "warn", f"{there} in the database, {offered} on the server", remedy)
    return Finding("timescaledb", "ok", there)


def features(conn: psycopg.Connection[Any]) -> Finding:
    """Report the features of the TimescaleDB edition, and how candles are maintained."""
    (licence,) = _row(conn, "select current_setting('timescaledb.license', true)")
    if licence not in {"timescale", "apache"}:
        return Finding("licence", "warn", "unknown: the extension is not loaded", "run `presage migrate`")
    has = "yes" if licence == "timescale" else "no"
    edition = "timescale (Community)" if licence == "timescale" else "apache (hypertables only)"
    (kind,) = _row(conn, "select relkind::text from pg_class where oid = to_regclass('candles_1m')") or (None,)
    kept = {"v": "; candles by continuous aggregates", "r": "; candles by triggers", None: ""}.get(kind, "")
    found = f"{edition}: continuous aggregates {has}, columnstore {has}, policies {has}{kept}"
    if kind is not None and (kind == "v") != (licence == "timescale"):
        remedy = "the edition changed after the migration: restore into a database migrated under the one in use"
        return Finding("licence", "fail", found, remedy)
    return Finding("licence", "ok", found)


def jobs(conn: psycopg.Connection[Any]) -> Iterator[Finding]:
    """Check TimescaleDB's own jobs, if there are any: policies, and the one that refreshes candles."""
    (there,) = _row(conn, "select to_regclass('timescaledb_information.job_stats') is not null")
    if not there or _row(conn, "select current_setting('timescaledb.license', true)") != ("timescale",):
        return
    scheduled = _row(
        conn,
        "select exists (select from pg_stat_activity"
        " where datname = current_database() and backend_type = 'TimescaleDB Background Worker Scheduler')",
    )
    failing = conn.execute(
        "select format('%s (%s)', coalesce(s.hypertable_name::text, proc_name::text), job_id)"
        " from timescaledb_information.job_stats s join timescaledb_information.jobs using (job_id)"
        " where last_run_status = 'Failed' order by job_id"
    ).fetchall()
    if scheduled == (False,):
        remedy = "raise timescaledb.max_background_workers and max_worker_processes; see the server's log"
        yield Finding("jobs", "fail", "TimescaleDB runs no jobs in this database: candles are not refreshed", remedy)
    elif failing:
        found = "last run failed: " + ", ".join(name for (name,) in failing)
        yield Finding("jobs", "warn", found, "see timescaledb_information.job_errors")
    else:
        yield Finding("jobs", "ok", "no job's last run failed")


def migration(conn: psycopg.Connection[Any]) -> Finding:
    """Check that the database has this release's schema."""
    from alembic.script import ScriptDirectory

    from sql.migrate import FOLDER

    scripts = ScriptDirectory(str(FOLDER))
    head = scripts.get_current_head()
    (migrated,) = _row(conn, "select to_regclass('alembic_version') is not null")
    has = _row(conn, "select version_num from alembic_version") if migrated else None
    if not has:
        return Finding("schema", "warn", f"not created yet (this release's is {head})", "run `presage migrate`")
    if has[0] == head:
        return Finding("schema", "ok", f"revision {head}, the newest")
    if has[0] in {script.revision for script in scripts.walk_revisions()}:
        return Finding("schema", "fail", f"revision {has[0]}, this release's is {head}", "run `presage migrate`")
    return Finding(
        "schema", "fail", f"revision {has[0]}, unknown to this release ({head})", "install the newer release"
    )


def clock(conn: psycopg.Connection[Any]) -> Finding:
    """Check the database's clock against ours: lags are differences between the two."""
    before = time.time()
    (there,) = _row(conn, "select extract(epoch from clock_timestamp())::float8")
    after = time.time()
    # The server read its clock between `before` and `after`; only a difference beyond that interval is certain.
    skew = max(before - there, there - after, 0.0)
    found = f"database and host agree within {skew + (after - before):.3f} s"
    if skew > 5:
        return Finding(
            "clock",
            "fail",
            f"the clocks are {skew:.1f} s apart",
            "synchronise both with NTP: every lag is wrong otherwise",
        )
    if skew > 0.5:
        return Finding("clock", "warn", f"the clocks are {skew:.1f} s apart", "synchronise both with NTP")
    return Finding("clock", "ok", found)


@contextmanager
def _connected(settings: Settings) -> Iterator[tuple[Finding, psycopg.Connection[Any] | None]]:
    from sql.database import connect

    if settings.database_url is not None:
        with connect(settings.database_url.get_secret_value(), autocommit=True, name="doctor") as conn:
            where = f"DATABASE_URL: {conn.info.dbname} on {conn.info.host}:{conn.info.port} as {conn.info.user}"
            yield Finding("database", "ok", where), conn
        return

    from sql.embedded import Cluster, installation

    programs = installation.installed(settings.cache_dir)
    data_dir = settings.data_folder
    name = sources.current(data_dir)
    cluster = Cluster(data_dir / "database", cache_dir=settings.cache_dir)
    if programs is None:
        installation.require(settings.cache_dir)
        there = installation.cache_root(settings.cache_dir)
        yield (
            Finding("database", "warn", f"embedded, not yet installed into {there}", "`presage demo` installs it"),
            None,
        )
    elif not (cluster.home / "17").exists():
        found = f"embedded: PostgreSQL {programs.postgresql}, TimescaleDB {programs.timescaledb} (apache); no data yet"
        yield Finding("database", "warn", found, "`presage demo` creates it"), None
    else:
        ran = cluster.pid is not None
        with cluster:  # starts it for the duration of the checks if needed
            how = f"process {cluster.pid}" if ran else "was not running, started for these checks"
            cluster.create_database(name)
            with connect(cluster.url(name), autocommit=True, name="doctor") as conn:
                yield Finding("database", "ok", f"embedded, {name} in {cluster.home} ({how})"), conn


def _unreachable(error: Exception) -> Finding:
    from sql.embedded import EmbeddedError

    if isinstance(error, EmbeddedError):
        return Finding("database", "fail", error.problem, error.remedy)
    said = str(error).strip() or type(error).__name__
    return Finding("database", "fail", said, "check DATABASE_URL, and that the server runs and accepts our connection")


WITH_SETTINGS = (
    connections,
    holdings.chunks,
    holdings.disk,
    holdings.webhook_secrets,
    backups.archive,
    dagster.dagster,
)


def _run_check(check: Callable[..., Any], conn: psycopg.Connection[Any], settings: Settings) -> list[Finding]:
    """Return the findings of one check; an exception becomes a finding and does not stop the others."""
    try:
        found = check(conn, settings) if check in WITH_SETTINGS else check(conn)
        return [found] if isinstance(found, Finding) else list(found)
    except Exception as error:  # noqa: BLE001
        return [Finding(check.__name__, "fail", str(error).strip(), "see the server's log")]


def _row(conn: psycopg.Connection[Any], question: LiteralString) -> Any:
    return conn.execute(question).fetchone()
