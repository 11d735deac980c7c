"""Logins: each process connects as a role of its own, a member of the group that has its rights, and of no other."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from sql import database
from sql.roles import grants
from sql.roles.rights import PIPELINE

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

Connection = psycopg.Connection[Any]
MARK = "presage login"  # the role's comment: no other role is ever changed
HERE = """
    select oid, pg_postmaster_start_time() from pg_database where datname = current_database()
"""
EXCESS = """
    select concat_ws(' ',
        case when rolsuper then 'nosuperuser' end, case when rolcreatedb then 'nocreatedb' end,
        case when rolcreaterole then 'nocreaterole' end, case when rolreplication then 'noreplication' end,
        case when rolbypassrls then 'nobypassrls' end)
    from pg_roles where rolname = %s
"""


def on_socket(url: str, role: str) -> str:
    """Return the URL of a role's login on the embedded server, which asks for no password on its socket."""
    parts = urlsplit(url)
    return parts._replace(netloc=f"{role}_login@{parts.netloc.rpartition('@')[2]}").geturl()


def ensure(conn: Connection, urls: Mapping[str, str]) -> None:
    """Create the logins that URLs name, by role, with their passwords.

    ValueError: a name that is another's, or the URL of another database.
    """
    here = conn.execute(HERE).fetchone()
    for role, url in urls.items():
        if not works(url, role, here):
            with suppress(errors.DuplicateObject, errors.UniqueViolation):  # another database's migration was faster
                _create(conn, url, role)
            if not works(url, role, here):
                log.warning("the login of %s does not work: see the database server's log for the reason", role)


def works(url: str, role: str, here: tuple[Any, ...] | None = None) -> bool:
    """Return whether one can connect by the URL, and has the rights of the role and no more.

    ValueError: the URL leads to another database than `here`.
    """
    try:
        with database.connect(url, autocommit=True, name="presage roles") as conn:
            if here is not None and conn.execute(HERE).fetchone() != here:
                raise ValueError(f"the address of {role} names another database or server than DATABASE_URL")
            return conn.execute(
                "select current_user = %s and not rolsuper and not rolcreaterole"
                " from pg_roles where rolname = session_user",
                [role],
            ).fetchone() == (True,)
    except psycopg.OperationalError:
        return False


def _create(conn: Connection, url: str, role: str) -> None:
    parts = conninfo_to_dict(url)
    name = str(parts.get("user") or "")
    if not name:
        raise ValueError(f"the address of {role} names no user")
    login, group = sql.Identifier(name), sql.Identifier(role)
    with conn.transaction():
        conn.execute("select pg_advisory_xact_lock(hashtextextended('presage.roles', 0))")
        found = conn.execute(
            "select coalesce(shobj_description(oid, 'pg_authid'), '') from pg_roles where rolname = %s", [name]
        ).fetchone()
        if found is None:
            conn.execute(sql.SQL("create role {} login").format(login))
            conn.execute(sql.SQL("comment on role {} is {}").format(login, sql.Literal(MARK)))
        elif found != (MARK,):
            raise ValueError(f"the role {name} exists, and is no login of Presage: name another one for {role}")
        restrict(conn, name)
        if password := parts.get("password"):  # else it stays: the one in a file, for example, is unknown here
            database.set_password(conn, name, str(password))
        conn.execute(sql.SQL("grant {} to {}").format(group, login))
        # What it makes, such as Dagster's tables, is the group's: another login can follow it.
        conn.execute(sql.SQL("alter role {} set role = {}").format(login, sql.Literal(role)))


def restrict(conn: Connection, name: str) -> None:
    """Let a role log in, and take what it has beyond that: who has no such right himself may not even deny it."""
    role = sql.Identifier(name)
    (excess,) = conn.execute(EXCESS, [name]).fetchone() or ("",)
    conn.execute(sql.SQL("alter role {} login inherit {}").format(role, sql.SQL(excess)))


def give_dagster(url: str) -> None:
    """Give Dagster's database to the pipeline, with what is in it, and keep everybody else out."""
    # The database's own search_path is the pipeline's to set, and would lead the owner to its functions.
    with database.connect(url, name="presage roles", search_path="pg_catalog") as conn:
        if PIPELINE in grants.missing_roles(conn):
            return
        pipeline, here = sql.Identifier(PIPELINE), sql.Identifier(conn.info.dbname)
        grants.become_member(conn, PIPELINE)
        conn.execute(sql.SQL("alter database {} owner to {}").format(here, pipeline))
        conn.execute(sql.SQL("revoke all on database {} from public").format(here))
        others = conn.execute(
            """
            select c.oid::regclass::text from pg_class c
            where relnamespace = 'public'::regnamespace and relkind in ('r', 'v') and relowner <> %s::regrole
                and not exists (
                    select from pg_depend d
                    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
                )
            """,
            [PIPELINE],
        ).fetchall()
        for (name,) in others:  # with its sequences
            conn.execute(sql.SQL("alter table {} owner to {}").format(sql.SQL(name), pipeline))
