"""Logins: made by the owner for each role, with its rights and no more, and no other role's."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from cli.commands import analyst
from sql import database
from sql.roles import logins
from sql.roles.rights import ANALYST, API, PIPELINE, SITE
from tests.roles import login_url, temporary_role


def test_a_login_is_made_once_with_a_scrambled_password_and_can_do_nothing_more(conn, database_url):
    name = f"test_{secrets.token_hex(4)}"
    url = login_url(database_url, API).replace(f"{API}_login", name)
    try:
        for _ in range(2):
            logins.ensure(conn, {API: url})

        row = conn.execute("select * from pg_authid where rolname = %s", [name])
        made = dict(zip([column.name for column in row.description], row.fetchone(), strict=True))
        assert made["rolpassword"].startswith("SCRAM-SHA-256$")
        assert [each for each in made if made[each] is True] == ["rolinherit", "rolcanlogin"]
        assert logins.works(url, API)
        assert not logins.works(url, SITE)
    finally:
        conn.execute(f"drop role {name}")


@pytest.mark.license("apache")
def test_an_owner_who_may_create_roles_and_nothing_else_makes_logins_and_analysts(conn, database_url):
    names = [f"test_{secrets.token_hex(4)}" for _ in range(2)]
    url = login_url(database_url, API).replace(f"{API}_login", names[0])
    with temporary_role(conn, "nosuperuser createrole") as owner:
        conn.execute(f"grant {API}, {ANALYST} to {owner} with admin option")
        conn.execute(f"set role {owner}")
        try:
            for _ in range(2):
                logins._create(conn, url, API)
                analyst.grant(conn, names[1])

            assert logins.works(url, API)
            analyst.revoke(conn, names.pop())
        finally:
            conn.execute("reset role")
            for name in names:
                conn.execute(f"drop role if exists {name}")
            conn.execute(f"revoke {API}, {ANALYST} from {owner} cascade")


def test_a_login_that_has_more_than_its_role_loses_it(conn, database_url):
    name = f"test_{secrets.token_hex(4)}"
    url = login_url(database_url, API).replace(f"{API}_login", name)
    logins.ensure(conn, {API: url})
    try:
        conn.execute(f"alter role {name} superuser createdb createrole replication bypassrls nologin")

        logins.ensure(conn, {API: url})

        assert logins.works(url, API)
        assert conn.execute(logins.EXCESS, [name]).fetchone() == ("",)
    finally:
        conn.execute(f"drop role {name}")


def test_a_login_keeps_its_password_if_the_address_has_none(conn, database_url, caplog):
    name = f"test_{secrets.token_hex(4)}"
    url = login_url(database_url, API).replace(f"{API}_login", name)
    logins.ensure(conn, {API: url})
    try:
        conn.execute(f"alter role {name} connection limit 0")  # one reason of many why connecting fails

        logins.ensure(conn, {API: database.without_password(url)})

        (said,) = caplog.records
        assert f"the login of {API} does not work" in said.getMessage()
        conn.execute(f"alter role {name} connection limit -1")
        assert logins.works(url, API)
        assert conn.execute("select rolpassword is not null from pg_authid where rolname = %s", [name]).fetchone()[0]
    finally:
        conn.execute(f"drop role {name}")


def test_a_login_of_another_database_is_refused(conn, database_url):
    elsewhere = urlsplit(login_url(database_url, API))._replace(path="/postgres").geturl()

    with pytest.raises(ValueError, match=f"the address of {API} names another database or server"):
        logins.ensure(conn, {API: elsewhere})


def test_a_login_never_takes_over_a_role_of_somebody_else(conn, database_url):
    with temporary_role(conn, "login") as name:
        url = login_url(database_url, API).replace(f"{API}_login", name)

        with pytest.raises(ValueError, match=f"the role {name} exists, and is no login of Presage"):
            logins.ensure(conn, {API: url})


def test_dagsters_database_is_the_pipelines_alone(new_database):
    with new_database() as url:
        with database.connect(url, autocommit=True) as owner:
            owner.execute("create table runs (id bigserial primary key)")

        logins.give_dagster(url)

        with database.connect(login_url(url, PIPELINE), autocommit=True) as pipeline:
            pipeline.execute("insert into runs default values")
            pipeline.execute("alter table runs add column tag text")
            pipeline.execute("create table made (id int)")
            owners = pipeline.execute(
                "select distinct relowner::regrole::text from pg_class where relname in ('runs', 'runs_id_seq', 'made')"
            ).fetchall()
            assert owners == [(PIPELINE,)]
        for role in (API, SITE):
            with pytest.raises(psycopg.OperationalError, match="CONNECT privilege"):
                database.connect(login_url(url, role))


def test_the_owner_runs_no_function_of_the_pipeline_when_dagsters_database_is_given_to_it(new_database):
    with new_database() as url:
        logins.give_dagster(url)
        with database.connect(login_url(url, PIPELINE), autocommit=True) as pipeline:
            pipeline.execute("create schema trap; create table trap.readers (name text)")
            # Cheap: it is called before other conditions are checked.
            pipeline.execute(
                "create function trap.note() returns bool language sql cost 0.01 as"
                " 'insert into trap.readers values (session_user) returning true'"
            )
            pipeline.execute("create view trap.pg_class as select * from pg_catalog.pg_class where trap.note()")
            name = sql.Identifier(pipeline.info.dbname)
            pipeline.execute(sql.SQL("alter database {} set search_path = trap, pg_catalog, public").format(name))

            logins.give_dagster(url)

            assert pipeline.execute("select name from trap.readers").fetchall() == []
