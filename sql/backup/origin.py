"""Origin of a backup: written into the database just before, so that the file itself contains it."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any

import msgspec

from sql import database
from sql.backup import programs
from sql.backup.errors import BackupError

if TYPE_CHECKING:
    from pathlib import Path

    import psycopg

NAME = "backup"  # of the row in `settings`


class Origin(msgspec.Struct, frozen=True):
    """The properties that must match where a backup is restored."""

    at: datetime
    presage: str
    revision: str
    """Of the schema, as in Alembic."""
    postgresql: int
    timescaledb: str
    license: str


def note(conn: psycopg.Connection[Any]) -> Origin:
    """Store this database's properties."""
    revision = conn.execute("select to_regclass('public.alembic_version') is not null").fetchone()
    if revision is None or not revision[0]:
        raise BackupError("this database has none of our tables", "name another by --database-url")
    found = conn.execute(
        "select (select version_num from public.alembic_version),"
        " current_setting('server_version_num')::int / 10000,"
        " (select extversion from pg_extension where extname = 'timescaledb')"
    ).fetchone()
    assert found is not None
    schema, postgresql, timescaledb = found
    here = database.license(conn)
    backup = Origin(datetime.now(UTC), metadata.version("presage"), schema, postgresql, timescaledb, here)
    conn.execute(
        "insert into public.settings (name, value) values (%s, %s::jsonb)"
        " on conflict (name) do update set value = excluded.value, updated_at = now()",
        [NAME, msgspec.json.encode(backup).decode()],
    )
    return backup


def of(file: Path, pg_restore: Path) -> Origin:
    """Read the origin from a backup file, without a database."""
    command: list[str | Path] = [pg_restore, "--data-only", "--schema=public", "--table=settings", "--file=-", file]
    for line in programs.read(command).splitlines():
        name, _, rest = line.partition("\t")
        if name == NAME:
            try:
                return msgspec.json.decode(rest.split("\t")[0], type=Origin)
            except msgspec.DecodeError:
                break
    raise BackupError(f"{file} does not contain its origin", "restore files made by `presage backup`")
