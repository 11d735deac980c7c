"""Roles and their rights in a database: made as `rights` declares them, after each migration, and compared with it."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import psycopg
from psycopg import errors, sql

from sql.roles.rights import ANALYST, API, COLUMNS, FUNCTIONS, PIPELINE, RELATIONS, ROLES, SITE, Rights

if TYPE_CHECKING:
    from collections.abc import Iterator

Connection = psycopg.Connection[Any]
PRIVILEGES = {"r": "SELECT", "a": "INSERT", "w": "UPDATE", "d": "DELETE", "m": "MAINTAIN"}
MAINTAIN_SINCE = 170000  # before, only a table's owner could vacuum it: then packed chunks keep their space
PUBLIC = "public"  # everybody; no role can have this name
OBJECT_AND_ROLE = attrgetter("kind", "name", "role")

# What our roles, and everybody, may do with objects that are not their own and no extension's.
HELD = """
    select kind, name, privilege, coalesce(rolname, 'public')
    from (
        select case when relkind = 'S' then 'sequence' else 'table' end as kind, c.oid::regclass::text as name,
               a.privilege_type as privilege, a.grantee, relowner as owner, 'pg_class'::regclass as class, c.oid
        from pg_class c, aclexplode(relacl) a
        where relnamespace in (select oid from pg_namespace where nspname in ('public', 'analytics'))
        union all
        select 'column', c.oid::regclass || '.' || attname, a.privilege_type, a.grantee, relowner,
               'pg_class'::regclass, c.oid
        from pg_class c join pg_attribute on attrelid = c.oid, aclexplode(attacl) a
        where relnamespace = 'public'::regnamespace
        union all
        select 'function', p.oid::regprocedure::text, a.privilege_type, a.grantee, proowner, 'pg_proc'::regclass, p.oid
        from pg_proc p, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
        where pronamespace = 'public'::regnamespace and prosecdef
        union all
        select 'schema', nspname, a.privilege_type, a.grantee, nspowner, 'pg_namespace'::regclass, n.oid
        from pg_namespace n, aclexplode(nspacl) a
        where nspname in ('public', 'analytics') and a.grantee <> 0
    ) as granted
    left join pg_roles r on r.oid = grantee
    where (grantee = 0 or rolname = any(%s)) and grantee <> owner
        and not exists (select from pg_depend d where d.classid = class and d.objid = granted.oid and d.deptype = 'e')
"""
# Our relations: name, kind, schema, and the sequence that numbers its rows.
THERE = """
    select c.oid::regclass::text, relkind::text, relnamespace::regnamespace::text,
           (select d.objid::regclass::text from pg_depend d join pg_class s on s.oid = d.objid and s.relkind = 'S'
            where d.refobjid = c.oid and d.classid = 'pg_class'::regclass and d.deptype in ('a', 'i') limit 1)
    from pg_class c
    where relnamespace in (select oid from pg_namespace where nspname in ('public', 'analytics'))
        and relkind in ('r', 'p', 'v', 'm')
        and not exists (
            select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e'
        )
"""


class Grant(NamedTuple):
    """A privilege of a role on an object."""

    kind: str
    name: str
    privilege: str
    role: str

    def __str__(self) -> str:
        return f"{self.privilege.lower()} on {self.name} to {self.role}"


def missing_roles(conn: Connection) -> list[str]:
    """Return the roles that the server does not have."""
    held = {name for (name,) in conn.execute("select rolname from pg_roles where rolname = any(%s)", [[*ROLES]])}
    return [role for role in ROLES if role not in held]


def differences(conn: Connection) -> tuple[set[Grant], set[Grant]]:
    """Return the grants that are missing, and those that are too many."""
    wanted = set(_wanted(conn))
    # What an operator has made beside ours is an operator's to grant.
    ours = {"public", "analytics", *RELATIONS, *FUNCTIONS}
    ours |= {sequence for name, *_, sequence in conn.execute(THERE) if name in RELATIONS}
    held = {Grant(*row) for row in conn.execute(HELD, [[*ROLES]])}
    held = {grant for grant in held if grant.name in ours or grant.name.partition(".")[0] in ours}
    return wanted - held, held - wanted


def apply(conn: Connection) -> None:
    """Make roles and grants what is declared, in a transaction; InsufficientPrivilege: the roles cannot be made."""
    with conn.transaction():
        conn.execute("select pg_advisory_xact_lock(hashtextextended('presage.roles', 0))")
        _create(conn)
        lacking, extra = differences(conn)
        for grants, statement in ((extra, "revoke {} on {} {} from {}"), (lacking, "grant {} on {} {} to {}")):
            for each, privileges in _by_object(grants):
                conn.execute(_statement(statement, each, privileges))
        _let_watch_archive(conn)


def become_member(conn: Connection, role: str) -> None:
    """Make the connected role a member: who is no superuser can then hand objects over, and read them afterwards."""
    if conn.execute("select pg_has_role(%s, 'usage')", [role]).fetchone() != (True,):
        conn.execute(sql.SQL("grant {} to current_user").format(sql.Identifier(role)))


def _create(conn: Connection) -> None:
    """Create roles that the server lacks. They are the server's: other databases may create them at the same time."""
    for role in missing_roles(conn):
        try:
            with conn.transaction():
                conn.execute(sql.SQL("create role {} nologin").format(sql.Identifier(role)))
        except (errors.DuplicateObject, errors.UniqueViolation):
            continue


def _wanted(conn: Connection) -> Iterator[Grant]:
    """Yield what is declared of the objects that there are."""
    there = {name: rest for name, *rest in conn.execute(THERE)}
    without = "m" if conn.info.server_version < MAINTAIN_SINCE else ""
    for name, (kind, schema, sequence) in there.items():
        declared = [each for each in _each(RELATIONS.get(name, Rights())) if kind != "v" or each[1] == "r"]
        yield from (Grant("table", name, PRIVILEGES[letter], role) for role, letter in declared if letter != without)
        if sequence:
            yield from (Grant("sequence", sequence, "USAGE", role) for role, letter in declared if letter == "a")
        if schema == "analytics":
            yield Grant("table", name, "SELECT", ANALYST)
    for (table, column), rights in COLUMNS.items():
        if table in there:
            yield from (
                Grant("column", f"{table}.{column}", PRIVILEGES[letter], role) for role, letter in _each(rights)
            )
    yield from _wanted_beside(conn, {schema for _, schema, *_ in there.values()})


def _wanted_beside(conn: Connection, schemas: set[str]) -> Iterator[Grant]:
    """Yield what is declared of functions and schemas."""
    for function, roles in FUNCTIONS.items():
        if conn.execute("select to_regprocedure(%s) is not null", [function]).fetchone() == (True,):
            yield from (Grant("function", function, "EXECUTE", role) for role in roles)
    yield from (Grant("schema", "public", "USAGE", role) for role in ROLES)
    if "analytics" in schemas:
        yield Grant("schema", "analytics", "USAGE", ANALYST)


def _each(rights: Rights) -> Iterator[tuple[str, str]]:
    """Yield each right with its role."""
    for role, letters in zip((PIPELINE, API, SITE), rights, strict=True):
        yield from ((role, letter) for letter in letters)


def _by_object(grants: set[Grant]) -> Iterator[tuple[Grant, str]]:
    """Yield each object and role once, with its privileges: a grant on a hypertable visits all of its chunks."""
    for _, group in groupby(sorted(grants, key=OBJECT_AND_ROLE), key=OBJECT_AND_ROLE):
        each, *more = group
        yield each, ", ".join([each.privilege, *(grant.privilege for grant in more)])


def _statement(text: LiteralString, grant: Grant, privileges: str) -> sql.Composed:
    """Compose a statement; names and privileges come from the catalogue, quoted where they need it."""
    kind, name = grant.kind, grant.name
    if kind == "column":
        name, _, column = name.rpartition(".")
        kind, privileges = "table", f"{privileges} ({column})"
    words = (privileges, kind, name)
    role = sql.SQL("public") if grant.role == PUBLIC else sql.Identifier(grant.role)
    return sql.SQL(text).format(*map(sql.SQL, words), role)


def _let_watch_archive(conn: Connection) -> None:
    """Let the pipeline see what waits to be archived. Only a superuser can grant that."""
    conn.execute("""
        do $$ begin
            if (select rolsuper from pg_roles where rolname = current_user)
                and not has_function_privilege('presage_pipeline', 'pg_ls_archive_statusdir()', 'execute') then
                grant execute on function pg_ls_archive_statusdir() to presage_pipeline;
            end if;
        end $$
    """)
