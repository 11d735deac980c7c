"""Each role may do what its processes do, and nothing else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from psycopg import errors

from orchestration.ingest.storage.rows import Quote, WriteBatch
from orchestration.ingest.storage.writer import Writer
from sql import database
from sql.roles.rights import ANALYST, API, PIPELINE, ROLES, SITE
from tests.orchestration.ingest.builders import NOW, token
from tests.roles import login_url
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
def test_functions_that_views_call_read_with_the_rights_of_their_callers(as_role, role):
    asked = "select recorded_since('polymarket'), live_exchanges(), enabled_exchanges()"

    assert as_role(role).execute(asked).fetchone() == (None, [], ["polymarket"])


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


def test_the_pipeline_writes_live_state(as_role):
    quotes = {("1", NOW): Quote(token(), NOW, 400_000, 420_000, 5, 6)}

    written = Writer(as_role(PIPELINE)).write(WriteBatch(quotes=quotes))

    assert written.quotes == 1
    assert as_role(API).execute("select mid from quotes").fetchall() == [(410_000,)]


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
