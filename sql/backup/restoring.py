"""Restore of a backup: into a new database, which replaces the existing one only when complete."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sql import database, migrate
from sql.backup import origin, programs
from sql.backup.errors import BackupError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from psycopg.abc import Query

    from sql.backup.origin import Origin

Existing = Literal["missing", "empty", "full"]
LEAVING_S = 2.0  # how long the server may list a client that has closed its connection
EVENTS_A_SECOND = 100_000  # more than any exchange sends: see `settle`


def restore(
    url: str,
    file: Path,
    *,
    replace: bool = False,
    cache_dir: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Origin:
    """Restore a backup into the database of the URL, which has to be empty unless `replace`.

    The replaced database is kept under another name.
    """
    file = file.expanduser().resolve()
    if not file.is_file():
        raise BackupError(f"there is no file {file}", "name a file made by `presage backup`")
    name = str(conninfo_to_dict(url).get("dbname") or "")
    if not name:
        raise BackupError("the address names no database", "say postgresql://…/presage")
    with database.connect(make_conninfo(url, dbname="postgres"), autocommit=True, name="presage restore") as admin:
        major: int = _one(admin, "select current_setting('server_version_num')::int / 10000")
        backup = origin.of(file, programs.program("pg_restore", major, cache_dir, newer=True))
        pg_restore = programs.program("pg_restore", major, cache_dir, newer=False)
        _check(admin, backup, major)
        tell(f"made {backup.at:%Y-%m-%d %H:%M} UTC, TimescaleDB {backup.timescaledb} ({backup.license})")
        there = _existing(admin, url, name, replace=replace)
        part = f"{name}_restoring"
        _drop(admin, part)
        admin.execute(sql.SQL("create database {} template template0").format(sql.Identifier(part)))
        try:
            _fill(make_conninfo(url, dbname=part), file, pg_restore, backup)
            kept = _put_in_place(admin, part, name, there)
        except BaseException:
            _drop(admin, part)
            raise
    with database.connect(url, autocommit=True, name="presage restore") as conn:
        conn.execute("select timescaledb_post_restore()")
    settle(url, backup.at)
    if kept is not None:
        tell(f"the previous database is now {kept}: drop it when you are sure")
    return backup


def _check(admin: psycopg.Connection[Any], backup: Origin, major: int) -> None:
    """Refuse what could not work, before anything is created."""
    if backup.revision not in migrate.revisions():
        raise BackupError(
            f"the backup's schema is {backup.revision}, which this release does not know",
            "use the release that made it",
        )
    if major < backup.postgresql:
        raise BackupError(
            f"the backup comes from PostgreSQL {backup.postgresql}, this server is {major}",
            "restore on one as new",
        )
    offered = [
        row[0]
        for row in admin.execute("select version from pg_available_extension_versions where name = 'timescaledb'")
    ]
    if backup.timescaledb not in offered:
        raise BackupError(
            f"the backup comes from TimescaleDB {backup.timescaledb}, this server has {', '.join(offered) or 'none'}",
            "restore on a server with that version, and update it there (alter extension timescaledb update)",
        )


def _existing(admin: psycopg.Connection[Any], url: str, name: str, *, replace: bool) -> Existing:
    """Inspect the database; refuse one that is in use, or has contents that may not be replaced."""
    if admin.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
        return "missing"
    patience = time.monotonic() + LEAVING_S
    while using := admin.execute(
        "select distinct coalesce(nullif(application_name, ''), 'a client without a name') from pg_stat_activity"
        " where datname = %s and backend_type = 'client backend'",
        [name],
    ).fetchall():
        if time.monotonic() < patience:
            time.sleep(0.05)
            continue
        programs_ = ", ".join(row[0] for row in using)
        raise BackupError(f"{name} is in use by {programs_}", "stop its clients: presage up, the API, Dagster")
    with database.connect(url, name="presage restore") as conn:
        full = _one(
            conn,
            "select exists (select from pg_class c where relnamespace = 'public'::regnamespace and relkind = 'r'"
            " and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e'))",
        )
    if full and not replace:
        raise BackupError(
            f"{name} is not empty",
            "name another by --database-url, or pass --replace: what is there is then kept aside",
        )
    return "full" if full else "empty"


def _fill(url: str, file: Path, pg_restore: Path, backup: Origin) -> None:
    with database.connect(url, autocommit=True, name="presage restore") as conn:
        version = sql.Literal(backup.timescaledb)
        conn.execute(sql.SQL("create extension timescaledb version {}").format(version))
    with database.connect(url, autocommit=True, name="presage restore") as conn:
        here = database.license(conn)
        if here != backup.license:
            raise BackupError(
                f"the backup comes from TimescaleDB under the licence {backup.license}, this server runs under {here}",
                "restore on a server under the same licence (timescaledb.license)",
            )
        conn.execute("select timescaledb_pre_restore()")
    # Roles belong to the server, not the database: their privileges cannot be restored.
    programs.run([pg_restore, "--exit-on-error", "--no-owner", "--no-privileges", file], url)


def _put_in_place(admin: psycopg.Connection[Any], part: str, name: str, there: Existing) -> str | None:
    """Rename the restored database into place; return the new name of the one that was there."""
    kept = None
    if there == "empty":
        _drop(admin, name)
    elif there == "full":
        kept = f"{name}_before_{datetime.now(UTC):%Y%m%d_%H%M%S}"
        _rename(admin, name, kept)
    try:
        _rename(admin, part, name)
    except psycopg.Error:
        if kept is not None:
            _rename(admin, kept, name)
        raise
    return kept


def _rename(admin: psycopg.Connection[Any], old: str, new: str) -> None:
    # TimescaleDB's own workers are connected to it; they reconnect by themselves.
    admin.execute("select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = %s", [old])
    admin.execute(sql.SQL("alter database {} rename to {}").format(sql.Identifier(old), sql.Identifier(new)))


def settle(url: str, at: datetime) -> None:
    """Mark what was live at the moment that a database was taken back to as no longer live.

    Stream numbers assigned after that moment must not be assigned again: a client that resumes after one of them would
    wrongly learn that it missed nothing. So the numbers jump, and older events cannot be resumed from.
    """
    age_s = max(0.0, (datetime.now(UTC) - at).total_seconds())
    with database.connect(url, autocommit=True, name="presage restore") as conn:
        for table in ("stream_blocks", "stream_events"):  # the latter in a backup of an earlier release
            if _one(conn, sql.SQL("select to_regclass({})").format(sql.Literal(table))) is not None:
                conn.execute(sql.SQL("truncate {}").format(sql.Identifier(table)))
        conn.execute("update stream_head set last_seq = last_seq + %s", [round((age_s + 60) * EVENTS_A_SECOND)])
        conn.execute("update webhook_head set last_seq = (select last_seq from stream_head)")
        conn.execute("update feed_leases set role = 'gone', ready = false")
        conn.execute("update live_books set verified = false, updated_at = now() where verified")
        conn.execute("analyze")
    migrate.grant(url)  # what the backup's tables lack: see `_fill`


def _drop(admin: psycopg.Connection[Any], name: str) -> None:
    admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _one(conn: psycopg.Connection[Any], query: Query) -> Any:
    row = conn.execute(query).fetchone()
    assert row is not None
    return row[0]
