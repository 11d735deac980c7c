"""Migrations grant each role what is declared for it, and mend it."""

from __future__ import annotations

import logging
import secrets
import threading
from contextlib import nullcontext

import psycopg
import pytest
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from sql import database, migrate
from sql.roles import grants
from sql.roles.rights import ANALYST, API, RELATIONS, ROLES
from tests import databases
from tests.roles import login_url, temporary_role


def test_every_relation_has_its_line_and_every_line_a_relation(conn):
    public = {name for name, _, schema, *_ in conn.execute(grants.THERE) if schema == "public"}

    assert public == set(RELATIONS)


def test_nobody_has_rights_on_what_is_not_declared(conn):
    conn.execute("create table undeclared (number int)")

    for role in ROLES:
        conn.execute(f"set role {role}")
        with pytest.raises(errors.InsufficientPrivilege), conn.transaction():
            conn.execute("select from undeclared")


def test_functions_with_the_owners_rights_have_a_fixed_search_path_and_are_not_for_everybody(conn):
    found = conn.execute("""
        select proname, proconfig, has_function_privilege('pg_monitor', oid, 'execute') from pg_proc
        where prosecdef and pronamespace = 'public'::regnamespace
            and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')
    """).fetchall()

    assert len(found) == 7
    assert {(str(config), everybody) for _, config, everybody in found} == {
        ("['search_path=pg_catalog, public, pg_temp']", False)
    }


def test_a_migration_mends_grants(conn, database_url):
    assert grants.differences(conn) == (set(), set())
    conn.execute(f"grant delete on trades to {API}")
    conn.execute(f"revoke select on markets from {API}")
    conn.execute("grant execute on function cursor_secrets() to public")
    assert [[*map(str, each)] for each in map(sorted, grants.differences(conn))] == [
        ["select on markets to presage_api"],
        ["execute on cursor_secrets() to public", "delete on trades to presage_api"],
    ]

    migrate.upgrade(database_url)

    assert grants.differences(conn) == (set(), set())


def test_what_an_operator_grants_on_tables_beside_ours_stays(conn, database_url):
    conn.execute(f"create table beside (number int); grant select on beside to public, {ANALYST}")

    migrate.upgrade(database_url)

    conn.execute(f"set role {ANALYST}")
    assert conn.execute("select count(*) from beside").fetchone() == (0,)


def test_the_way_back_takes_the_grants_and_leaves_the_roles(conn, database_url):
    conn.execute("insert into book_events (ts, market_key, outcome, event_id, seq) values (now(), 1, 0, 1, 1)")

    migrate.downgrade(database_url, "0018")

    assert not [grant for grant in conn.execute(grants.HELD, [[*ROLES]]) if grant[3] in ROLES]
    held = conn.execute("select relacl::text from pg_class where oid = (select tableoid from book_events)").fetchone()
    assert "presage_api" not in str(held[0])
    assert grants.missing_roles(conn) == []
    migrate.upgrade(database_url)


def test_grants_are_made_up_to_any_revision_that_has_roles_and_mended_on_the_way_back(conn, database_url):
    migrate.downgrade(database_url, "0018")

    migrate.upgrade(database_url, "0019")
    assert grants.differences(conn) == (set(), set())

    conn.execute(f"grant delete on trades to {API}")
    migrate.downgrade(database_url, "0019")
    assert grants.differences(conn) == (set(), set())


def test_grants_are_made_in_the_transaction_of_the_revision(conn, database_url, monkeypatch):
    monkeypatch.setattr(migrate, "grant", lambda _: None)  # what follows the last revision
    migrate.downgrade(database_url, "0018")

    migrate.upgrade(database_url)

    assert grants.differences(conn) == (set(), set())


@pytest.mark.parametrize(("failures", "expected"), [(2, nullcontext()), (3, pytest.raises(errors.LockNotAvailable))])
def test_grants_that_wait_too_long_for_a_lock_are_tried_again(database_url, monkeypatch, failures, expected):
    outcomes = iter([errors.LockNotAvailable()] * failures + [None])

    def apply(_):
        if error := next(outcomes):
            raise error

    monkeypatch.setattr(grants, "apply", apply)

    with expected:
        migrate.grant(database_url)


@pytest.mark.license("apache")
def test_an_owner_who_may_not_create_roles_grants_to_those_that_exist(cluster, conn, caplog):
    with (
        databases.administering(cluster) as admin,
        temporary_role(admin, "nosuperuser") as owner,
        databases.new_database(cluster) as given,
    ):
        admin.execute(f"alter database {conninfo_to_dict(given)['dbname']} owner to {owner}")
        with database.connect(given, autocommit=True) as first:
            for extension in ("timescaledb", "pg_trgm"):
                first.execute(f"create extension {extension}")
        url = f"{given}{'&' if '?' in given else '?'}options=-c%20role%3D{owner}"

        migrate.upgrade(url)

        assert not caplog.records
        with database.connect(login_url(given, API)) as api:
            assert api.execute("select count(*) from tiers").fetchone() == (3,)
        with database.connect(url, autocommit=True) as mine:
            assert grants.differences(mine) == (set(), set())
        migrate.downgrade(url, "0018")


def test_where_the_roles_cannot_be_made_the_migration_says_so_and_goes_on(conn, database_url, monkeypatch, caplog):
    with temporary_role(conn, "nosuperuser") as owner:
        monkeypatch.setattr(grants, "ROLES", (*ROLES, "presage_absent"))
        given = database_url + ("&" if "?" in database_url else "?")

        with caplog.at_level(logging.WARNING):
            migrate.grant(f"{given}options=-c%20role%3D{owner}")

    (said,) = caplog.records
    assert "presage doctor" in said.getMessage()
    assert "presage_absent" not in [name for (name,) in conn.execute("select rolname from pg_roles")]


def test_databases_of_one_server_create_a_role_at_the_same_time(cluster, new_database, monkeypatch):
    name = f"test_{secrets.token_hex(4)}"
    monkeypatch.setattr(grants, "missing_roles", lambda _: [name])
    failed = []
    with new_database() as one, new_database() as other:
        barrier = threading.Barrier(2)

        def create(url):
            with database.connect(url, autocommit=True) as conn:
                barrier.wait()
                try:
                    grants._create(conn)
                except psycopg.Error as error:
                    failed.append(error)

        threads = [threading.Thread(target=create, args=[url]) for url in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with databases.administering(cluster) as admin:
        admin.execute(f"drop role {name}")
    assert not failed
