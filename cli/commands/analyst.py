"""`presage analyst`: roles that read the views of the schema `analytics`, and nothing else."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

import typer

from cli.commands.keys import DatabaseUrl  # noqa: TC001 (typer reads annotations)

if TYPE_CHECKING:
    import psycopg

app = typer.Typer(
    name="analyst", no_args_is_help=True, help="Roles that read the views for analysts, and nothing else."
)
MARK = "presage analyst"  # the role's comment: no other role is ever changed or removed
CONNECTIONS = 4
DEFAULTS = {
    "default_transaction_read_only": "on",
    "statement_timeout": "60s",
    "idle_in_transaction_session_timeout": "60s",
    "search_path": "analytics, public",
    "timezone": "UTC",
}
Name = Annotated[str, typer.Argument(help="Of the role: lower-case letters, digits and underscores.")]


@app.command("add")
def add(name: Name, *, database_url: DatabaseUrl = None) -> None:
    """Make a role, or give one of these a new password; prints its address, this once."""
    from cli.stack.options import database
    from sql.database import connect

    with database(database_url) as url, connect(url, name="presage analyst") as conn:
        password = grant(conn, name)
        typer.echo(address(url, name, password))


@app.command("remove")
def remove(name: Name, *, database_url: DatabaseUrl = None) -> None:
    """Drop a role that `add` made."""
    from cli.stack.options import database
    from sql.database import connect

    with database(database_url) as url, connect(url, name="presage analyst") as conn:
        revoke(conn, name)


def grant(conn: psycopg.Connection, name: str) -> str:
    """Make or renew the role; gives its password."""
    from psycopg import sql

    if not name.isascii() or not name.isidentifier() or not name.islower() or len(name) > 63 or name.startswith("pg_"):
        raise typer.BadParameter(f"not a role's name: {name!r}; lower-case letters, digits and underscores")
    password, role = secrets.token_urlsafe(24), sql.Identifier(name)
    found = _comment(conn, name)
    if found is None:
        conn.execute(sql.SQL("create role {}").format(role))
        conn.execute(sql.SQL("comment on role {} is {}").format(role, sql.Literal(MARK)))
    elif found != MARK:
        raise typer.BadParameter(f"{name} is a role that was not made here: choose another name")
    conn.execute(
        sql.SQL(
            "alter role {} login nosuperuser nocreatedb nocreaterole noinherit noreplication "
            "connection limit {} password {}"
        ).format(role, sql.Literal(CONNECTIONS), sql.Literal(password))
    )
    for setting, value in DEFAULTS.items():
        values = sql.SQL(", ").join(map(sql.Literal, value.split(", ")))
        conn.execute(sql.SQL("alter role {} set {} = {}").format(role, sql.Identifier(setting), values))
    conn.execute(sql.SQL("grant usage on schema analytics to {}").format(role))
    conn.execute(sql.SQL("grant select on all tables in schema analytics to {}").format(role))
    return password


def revoke(conn: psycopg.Connection, name: str) -> None:
    """Drop the role with all that it was granted in this database."""
    from psycopg import sql

    if _comment(conn, name) != MARK:
        raise typer.BadParameter(f"{name} is no role that was made here")
    conn.execute(sql.SQL("drop owned by {}").format(sql.Identifier(name)))
    conn.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def address(url: str, name: str, password: str) -> str:
    """Give the URL with this user in it."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{name}:{quote(password, safe='')}@{host}").geturl()


def _comment(conn: psycopg.Connection, name: str) -> str | None:
    """Tell a role's comment, empty if it has none; None if there is no such role."""
    row = conn.execute(
        "select coalesce(shobj_description(oid, 'pg_authid'), '') from pg_roles where rolname = %s", [name]
    ).fetchone()
    return None if row is None else str(row[0])
