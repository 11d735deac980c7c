"""`presage analyst`: database roles that may only read the views of the schema `analytics`."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)
from cli.recording import record

if TYPE_CHECKING:
    import psycopg

app = typer.Typer(name="analyst", no_args_is_help=True, help="Database roles that may only read the analytics views.")
MARK = "presage analyst"  # the role's comment: no other role is ever changed or removed
MAX_CONNECTIONS = 4
DEFAULTS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    "search_path": "analytics, public",
    "timezone": "UTC",
}
Name = Annotated[str, typer.Argument(help="The role's name: lower-case letters, digits and underscores.")]


@app.command("add")
def add(name: Name, *, database_url: DatabaseUrl = None) -> None:
    """Create a role, or give an existing one a new password. Prints its connection URL once."""
    from cli.stack.plan_builder import database
    from sql.database import connect

    with database(database_url) as url, connect(url, name="presage analyst") as conn:
        password = grant(conn, name)
        record(conn, subject=name)
        typer.echo(address(url, name, password))


@app.command("remove")
def remove(name: Name, *, database_url: DatabaseUrl = None) -> None:
    """Drop a role that `add` created."""
    from cli.stack.plan_builder import database
    from sql.database import connect

    with database(database_url) as url, connect(url, name="presage analyst") as conn:
        revoke(conn, name)
        record(conn, subject=name)


def grant(conn: psycopg.Connection, name: str) -> str:
    """Create the role or reset its password; return the password."""
    from psycopg import sql

    from sql.database import set_password
    from sql.roles.logins import restrict
    from sql.roles.rights import ANALYST

    if not name.isascii() or not name.isidentifier() or not name.islower() or len(name) > 63 or name.startswith("pg_"):
        raise typer.BadParameter(f"not a valid role name: {name!r}; use lower-case letters, digits and underscores")
    password, role = secrets.token_urlsafe(24), sql.Identifier(name)
    found = _comment(conn, name)
    if found is None:
        conn.execute(sql.SQL("create role {}").format(role))
        conn.execute(sql.SQL("comment on role {} is {}").format(role, sql.Literal(MARK)))
    elif found != MARK:
        raise typer.BadParameter(f"the role {name} was not created by this command: choose another name")
    restrict(conn, name)
    conn.execute(sql.SQL("alter role {} connection limit {}").format(role, sql.Literal(MAX_CONNECTIONS)))
    set_password(conn, name, password)
    for setting, value in DEFAULTS.items():
        values = sql.SQL(", ").join(map(sql.Literal, value.split(", ")))
        conn.execute(sql.SQL("alter role {} set {} = {}").format(role, sql.Identifier(setting), values))
    conn.execute(sql.SQL("grant {} to {}").format(sql.Identifier(ANALYST), role))
    return password


def revoke(conn: psycopg.Connection, name: str) -> None:
    """Drop the role with all its grants in this database."""
    from psycopg import sql

    from sql.roles.grants import become_member

    if _comment(conn, name) != MARK:
        raise typer.BadParameter(f"the role {name} was not created by this command")
    become_member(conn, name)
    conn.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
    conn.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def address(url: str, name: str, password: str) -> str:
    """Return the URL with this user and password."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{name}:{quote(password, safe='')}@{host}").geturl()


def _comment(conn: psycopg.Connection, name: str) -> str | None:
    """Return a role's comment, empty if it has none; None if the role does not exist."""
    row = conn.execute(
        "select coalesce(shobj_description(oid, 'pg_authid'), '') from pg_roles where rolname = %s", [name]
    ).fetchone()
    return None if row is None else str(row[0])
