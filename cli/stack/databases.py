"""Which database is whose: what `presage up` creates, and what it refuses to write to."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from cli.stack.processes.program import StartError

if TYPE_CHECKING:
    from pathlib import Path


def create_beside(url: str, name: str) -> None:
    """Create another database on the same server, if it is missing."""
    from psycopg import errors, sql

    from sql.database import connect

    with connect(url, autocommit=True) as conn:
        if conn.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
            with contextlib.suppress(errors.DuplicateDatabase, errors.UniqueViolation):  # another host was faster
                conn.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))


def refuse_other_source(url: str, source: str) -> None:
    """Refuse to mix simulated, replayed and real data: a database has one source."""
    from sql.database import connect

    with connect(url) as conn:
        others = conn.execute("select distinct source from markets where source <> %s", [source]).fetchall()
    if others:
        held = ", ".join(str(row[0]) for row in others)
        raise StartError(
            f"the database holds data of another source ({held}), and {source} data must not be mixed with it: "
            "set DATABASE_URL to another database, one for each source, or unset it: "
            "the embedded server has a database for each"
        )


def refuse_other_tape(url: str, tape: Path | None) -> None:
    """Refuse to mix recordings of two folders with the same name."""
    from psycopg.types.json import Jsonb

    from sql.database import connect

    if tape is None:
        return
    with connect(url) as conn:
        kept = conn.execute(
            "insert into settings (name, value) values ('tape', %s)"
            " on conflict (name) do update set value = settings.value returning value",
            [Jsonb(str(tape))],
        ).fetchone()
    if kept is not None and kept[0] != str(tape):
        raise StartError(
            f"the database holds recordings of {kept[0]}, another folder of the same name: rename one of them, "
            "or start over with --fresh"
        )
