"""Each role may do what its processes do, and nothing else."""

from __future__ import annotations

import ast
import logging
import secrets
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict

from sql import database, migrate
from sql.roles import grants
from sql.roles.rights import ANALYST, API, PIPELINE, RELATIONS, ROLES, SITE
from tests import databases
from tests.community import CommunityError
from tests.roles import login_url, temporary_role
from tests.sql.test_queries import UTILITIES, named

ROOT = Path(__file__).parents[2]
OF_MARKETS = ("markets", "trades", "book_events", "live_prices", "settlements", "stream_blocks", "signals")
PRIVATE = ("accounts", "account_tokens", "api_keys", "credit_usage", "audit_log", "webhooks", "settings")
REFUSED = {
    PIPELINE: [
        *(
            f"select from {table}"
            for table in ("accounts", "account_tokens", "api_keys", "credit_usage", "registrations")
        ),
        "insert into api_keys (account_id, key_hash, prefix, tier) values (1, '', '', 'enterprise')",
        "update accounts set verified_at = now()",
        "select cursor_secrets()",
        "select renew_site_key('\\x00', 'psg_')",
        "select from audit_log",
        "insert into audit_log (action, result) values ('key.revoke', 'ok')",
        "delete from trades",
        "truncate trades",
        "select drop_chunks('trades', older_than => now())",
    ],
    API: [
        *(f"insert into {table} default values" for table in OF_MARKETS),
        *(
            f"update {table} set ts = now()"
            for table in ("trades", "book_events", "live_prices", "settlements", "signals")
        ),
        *(f"delete from {table}" for table in OF_MARKETS),
        "delete from accounts",
        "delete from api_keys",
        "update settings set value = '1'",
        "select drop_chunks_before('trades', now())",
        "select renew_site_key('\\x00', 'psg_')",
        "select pg_ls_archive_statusdir()",
    ],
    SITE: [
        *(f"select from {table}" for table in (*PRIVATE, *OF_MARKETS)),
        "insert into accounts (email, app_name) values ('a@example.com', 'a')",
        "insert into api_keys (account_id, key_hash, prefix, tier) values (1, '', '', 'enterprise')",
        "select cursor_secrets()",
        "select from analytics.markets",
    ],
    ANALYST: [
        *(f"select from {table}" for table in (*PRIVATE, *OF_MARKETS)),
        "select cursor_secrets()",
        "select drop_chunks_before('trades', now())",
        "create view analytics.mine as select 1 as one",
    ],
}
BY_ALL = [
    "update audit_log set result = 'ok'",
    "delete from audit_log",
    "truncate audit_log",
    "drop table audit_log",
    "alter table audit_log disable trigger append_only",
    "drop table trades",
    "alter table markets add column mine text",
    "create table mine (number int)",
    "create function mine() returns int language sql return 1",
    "create schema mine",
    "create role mine",
    "alter table settings disable row level security",
    "grant presage_api to presage_site",
    "copy tiers to program 'true'",
    "select pg_read_file('pg_hba.conf')",
]


@pytest.fixture(scope="module")
def as_role(new_database):
    """`as_role(API)`: a connection that has logged in as one of the role's processes does."""
    with new_database() as url, database.connect(url, autocommit=True) as owner:
        made = {role: database.connect(login_url(url, role), autocommit=True) for role in (PIPELINE, API, SITE)}
        made[ANALYST] = database.connect(url, autocommit=True)
        made[ANALYST].execute(f"set role {ANALYST}")
        yield lambda role: owner if role is None else made[role]
        for conn in made.values():
            conn.close()


@pytest.mark.parametrize(
    ("role", "statement"),
    [(role, statement) for role, theirs in REFUSED.items() for statement in [*theirs, *BY_ALL]],
)
def test_a_role_may_not(as_role, role, statement):
    with pytest.raises(errors.InsufficientPrivilege):
        as_role(role).execute(statement)


@pytest.mark.parametrize("role", [PIPELINE, API, SITE])
def test_a_login_does_not_get_another_roles_rights_by_resetting_its_own(as_role, role):
    conn = as_role(role)

    for reset in ("reset role", "reset session authorization", "discard all", "set role none"):
        conn.execute(reset)
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute("drop table trades")
    for other in {*ROLES, "pg_read_all_data"} - {role}:
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(f"set role {other}")
    conn.execute("reset role")


@pytest.mark.parametrize("role", [PIPELINE, API])
def test_settings_are_shown_without_the_secrets_of_cursors(as_role, role):
    as_role(None).execute("insert into settings (name, value) values ('live_shards', '2') on conflict do nothing")

    assert as_role(role).execute("select name from settings").fetchall() == [("live_shards",)]


def test_secrets_of_cursors_are_the_apis_and_what_is_derived_from_them_the_sites(as_role):
    (secret,) = as_role(None).execute("select value #>> '{}' from settings where name = 'cursor_secret'").fetchone()

    assert as_role(API).execute("select cursor_secrets()").fetchall() == [(secret,)]
    (derived,) = as_role(SITE).execute("select page_pass_secrets()").fetchone()
    assert derived == as_role(None).execute("select sha256(%s)", [f"passes of pages {secret}".encode()]).fetchone()[0]


def test_the_site_renews_its_own_key_and_reads_the_tiers(as_role):
    (key_id,) = as_role(SITE).execute("select renew_site_key('\\x01', 'psg_site')").fetchone()

    owner = "select email, tier from api_keys join accounts using (account_id) where key_id = %s"
    assert as_role(None).execute(owner, [key_id]).fetchone() == ("site", "enterprise")
    assert len(as_role(SITE).execute("select tier from tiers").fetchall()) == 3


def test_the_audit_trail_is_added_to_by_the_api_and_loses_what_is_past_a_month_to_the_pipeline(as_role):
    for age in ("0 days", "200 days"):
        as_role(API).execute(
            "insert into audit_log (ts, action, result) values (now() - %s::interval, 'key.failed', 'unknown')", [age]
        )

    (dropped,) = (
        as_role(PIPELINE).execute("select drop_chunks_before('audit_log', now() + interval '1 day')").fetchone()
    )

    assert dropped == 1
    assert as_role(API).execute("select now() - ts < '1 day' from audit_log").fetchall() == [(True,)]


def test_the_pipeline_drops_and_vacuums_chunks(as_role):
    pipeline = as_role(PIPELINE)
    for days in (1, 40):
        pipeline.execute(
            "insert into book_events (ts, market_key, outcome, event_id, seq)"
            " values (now() - make_interval(days => %s), 1, 0, 1, 1)",
            [days],
        )

    assert pipeline.execute("select drop_chunks_before('book_events', now() - interval '30 days')").fetchone() == (1,)
    (chunk,) = pipeline.execute("select tableoid::regclass::text from book_events").fetchone()
    before = pipeline.execute("select pg_relation_filenode(%s)", [chunk]).fetchone()
    pipeline.execute(f"vacuum (full, analyze) {chunk}")
    if pipeline.info.server_version >= 170000:
        assert pipeline.execute("select pg_relation_filenode(%s)", [chunk]).fetchone() != before


FOLDERS = {PIPELINE: "orchestration", API: "api", SITE: "api/site"}


def asked(folder, *, but=None):
    """Return the named queries that the modules of a folder run."""
    found = set()
    for path in (ROOT / folder).rglob("*.py"):
        if but is not None and path.is_relative_to(ROOT / but):
            continue
        tree = ast.parse(path.read_text())
        topics = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "sql.queries"
            for alias in node.names
        }
        found |= {
            f"{topics[node.value.id]}.{node.attr}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in topics
        }
    return found


@pytest.mark.parametrize("role", FOLDERS)
def test_a_role_may_run_the_queries_of_its_processes(conn, role):
    texts = {name: text for name, text in named() if not text.lower().startswith(UTILITIES)}
    theirs = texts.keys() & asked(FOLDERS[role], but=FOLDERS[SITE] if role == API else None)
    refused = []
    conn.execute(f"set role {role}")
    if role == PIPELINE:
        for text in (text for _, text in named() if text.lower().startswith("create temp")):
            conn.execute(text)  # other queries read from it
    conn.execute("set plan_cache_mode = force_generic_plan")
    parameters = "select cardinality(parameter_types) from pg_prepared_statements where name = %s"
    for name in sorted(theirs):
        try:
            with conn.transaction():
                conn.execute(f'prepare "{role}.{name}" as {texts[name]}'.encode())
                (count,) = conn.execute(parameters, [f"{role}.{name}"]).fetchone()
                given = f"({', '.join(['null'] * count)})" if count else ""
                conn.execute(f'explain execute "{role}.{name}"{given}'.encode())
        except errors.InsufficientPrivilege as error:
            refused.append(f"{name}: {error}")

    assert len(theirs) >= {PIPELINE: 200, API: 100, SITE: 3}[role]
    assert refused == []


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


class Rows(list):
    """Rows of a statement, as a cursor gives them."""

    fetchall = list.copy

    def fetchone(self):
        return self[0] if self else None


class CommunityConnection:
    """As much of a connection to the Community server as grants need."""

    info = SimpleNamespace(server_version=170005)
    transaction = staticmethod(nullcontext)

    def __init__(self, community):
        self.community = community

    def execute(self, query, parameters=()):
        text = query.as_string(None) if isinstance(query, sql.Composable) else query
        for parameter in parameters:
            text = text.replace("%s", sql.Literal(parameter).as_string(None), 1)
        return Rows(self.community.execute(text))


@pytest.fixture
def as_pipeline(community):
    """`as_pipeline(statement)` runs it with the pipeline's rights under the Community licence."""
    grants.apply(CommunityConnection(community))

    def execute(statement):
        community.execute(f"set role {PIPELINE}")
        try:
            return community.execute(statement)
        finally:
            community.execute("reset role")

    return execute


def test_the_pipeline_has_candles_of_the_community_licence_refreshed_and_the_api_reads_them(community, as_pipeline):
    assert grants.differences(CommunityConnection(community)) == (set(), set())
    as_pipeline("insert into trades values (now() - interval '3 hours', 1, 0, 1, 1, 1, 500000, 1000000, 500000)")
    for candles, hours in (("candles_1m", 3), ("candles_1h", 3)):
        as_pipeline(
            "insert into candle_refreshes (candles, since, until, forced) select "
            f"'{candles}', hour - interval '{hours} hours', hour + interval '1 hour', true "
            "from date_trunc('hour', now()) as hour"
        )

    as_pipeline("select start_candles_refresh()")
    assert community.execute(
        "select proc_name, owner::text, next_start from timescaledb_information.jobs where proc_schema = 'public'"
    ) == [("refresh_candles", "postgres", None)]
    community.run_job()

    assert as_pipeline("select error, ended_at >= started_at from candle_refreshes") == [(None, True)] * 2
    materialised = "select sum(trades)::int from _timescaledb_internal._materialized_hypertable_{}"
    numbers = "select mat_hypertable_id from _timescaledb_catalog.continuous_agg"
    assert [community.execute(materialised.format(number)) for (number,) in community.execute(numbers)] == [[(1,)]] * 2
    community.execute(f"set role {API}")
    read = "select trades from candles_1h where bucket > now() - interval '1 day'"
    assert [int(trades) for (trades,) in community.execute(read)] == [1]
    for refused in ("insert into candle_refreshes (candles) values ('candles_1m')", "select start_candles_refresh()"):
        with pytest.raises(CommunityError, match="permission denied"):
            community.execute(refused)
    community.execute("reset role")


@pytest.mark.parametrize(
    "window",
    [
        "'trades', '2026-11-01 00:00Z', '2026-11-01 01:00Z'",
        "'candles_1m; drop table trades', '2026-11-01 00:00Z', '2026-11-01 01:00Z'",
        "'candles_1m', '2026-11-01 00:00Z', '2026-11-02 00:01Z'",
        "'candles_1m', '2026-11-01 00:00Z', '2026-11-01 00:00Z'",
        "'candles_1m', '2026-11-01 00:00Z', 'infinity'",
        "'candles_1m', '-infinity', '2026-11-01 00:00Z'",
        "'candles_1m', null, '2026-11-01 00:00Z'",
    ],
)
def test_no_window_is_asked_for_but_of_candles_and_a_day_at_most(conn, window):
    conn.execute(f"set role {PIPELINE}")

    with pytest.raises((errors.DataError, errors.IntegrityError)):
        conn.execute(f"insert into candle_refreshes (candles, since, until, forced) values ({window}, true)")


BEHIND_CANDLES = (
    "create or replace view candles_1m as select * from candles_1h",
    "create rule spy as on insert to candles_1m do also select 1",
    "create trigger spy before insert on {behind} for each row execute function note_candles_due()",
    "create trigger spy before insert on candle_refreshes for each row execute function note_candles_due()",
    "alter table {behind} add column spy int",
    "insert into {behind} select * from {behind}",
    "alter materialized view candles_1m owner to current_user",
    "alter materialized view candles_1m set (timescaledb.materialized_only = true)",
    "drop materialized view candles_1m cascade",
    "create or replace procedure refresh_candles(job_id integer, config jsonb) language sql as 'select 1'",
    "alter procedure refresh_candles(integer, jsonb) owner to current_user",
    "call refresh_continuous_aggregate('candles_1m', null, null)",
    """call refresh_candles(1, '{{"idle_s": 0}}')""",
    "select alter_job({job}, config => null)",
    "select delete_job({job})",
    "update candle_refreshes set error = null",
)


def test_the_pipeline_puts_nothing_behind_the_candles(community, as_pipeline):
    as_pipeline("select start_candles_refresh()")
    ((number,),) = community.execute(
        "select mat_hypertable_id from _timescaledb_catalog.continuous_agg where user_view_name = 'candles_1m'"
    )
    ((job,),) = community.execute("select job_id from timescaledb_information.jobs where proc_name = 'refresh_candles'")
    behind = f"_timescaledb_internal._materialized_hypertable_{number}"

    for statement in BEHIND_CANDLES:
        with pytest.raises(CommunityError, match=r"must be owner|permission denied|insufficient permissions"):
            as_pipeline(statement.format(behind=behind, job=job))
