"""Operators' commands in the audit trail, and `presage audit`, which shows it."""

from __future__ import annotations

import datetime as dt
import json
import re
import secrets
import signal
import subprocess
import sys

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typer.testing import CliRunner

from api.metering import keys
from cli import recording
from cli.main import app
from config import settings, webhook_keys
from sql import audit, database, migrate
from tests.api.replay.past import MS, lived
from tests.factories import insert
from tests.orchestration.webhooks.receiving import add_webhook
from tests.patience import PATIENCE_S

ME = "someone@example.com"


@pytest.fixture
def presage(database_url):
    def run(*words, url=database_url):
        return CliRunner().invoke(app, [*words, "--database-url", url])

    return run


@pytest.fixture
def entries(conn):
    """`entries()` returns what was entered since the last call: action, result, subject and detail."""
    after = [0]

    def new(conn=conn):
        rows = conn.execute(
            "select entry_id, action, result, subject, detail, operator from audit_log where entry_id > %s"
            " order by entry_id",
            after,
        ).fetchall()
        after[0] = max([after[0], *(row[0] for row in rows)])
        assert {row[5] for row in rows} <= {recording.operator()}
        return [row[1:5] for row in rows]

    return new


@pytest.fixture
def elsewhere(cluster, database_url):
    """The URL of a database that does not exist."""
    name = f"{conninfo_to_dict(database_url)['dbname']}_elsewhere"
    yield make_conninfo(database_url, dbname=name)
    with database.connect(cluster.url("postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def ids(conn, key):
    return conn.execute("select account_id, key_id from api_keys where key_hash = %s", [keys.digest(key)]).fetchone()


def test_commands_about_keys_are_entered_with_account_and_key_and_without_the_key(presage, conn, entries, caplog):
    caplog.set_level("INFO", "presage.audit")
    first = presage("key", "create", ME, "bot", "--tier", "pro").output.strip()
    account, key_id = ids(conn, first)
    assert presage("key", "tier", ME, "free").exit_code == 0
    assert presage("key", "quota", first, "--month", "77", "--burst", "5").exit_code == 0
    second = presage("key", "replace", first).output.splitlines()[-1]
    assert presage("key", "revoke", second[:12]).exit_code == 0
    assert presage("key", "allow", ME).exit_code == 0
    presage("key", "list")

    limits = {"credits_month": None, "credits_burst": None}
    assert entries() == [
        ("key.create", "ok", None, {"tier": "pro"}),
        ("key.tier", "ok", None, {"before": "pro", "tier": "free"}),
        ("key.quota", "ok", None, {"before": limits, "now": {"credits_month": 77, "credits_burst": 5}}),
        ("key.replace", "ok", None, {}),
        ("key.revoke", "ok", None, {"account_closed": True}),
        ("key.allow", "ok", None, {}),
    ]
    stored = conn.execute("select account_id, key_id from audit_log order by entry_id").fetchall()
    assert stored == [(account, key_id)] * 5 + [(account, None)]
    text = str(conn.execute("select l::text from audit_log l").fetchall()) + str([r.audit for r in caplog.records])
    assert [each for each in (first, second, ME) if each in text] == []
    assert len(caplog.records) == 6


def test_a_command_that_fails_is_entered_with_a_digest_of_what_was_named(presage, conn, entries):
    key = keys.create(conn, ME, "bot", "pro")
    keys.create(conn, ME, "bot", "pro")

    assert presage("key", "revoke", key + "x").exit_code == 1
    assert presage("key", "tier", ME, "gold").exit_code == 1  # its message names both keys
    assert presage("set", "nothing", "7").exit_code == 1

    assert entries() == [
        ("key.revoke", "failed", audit.fingerprint(key + "x"), {"error": "ValueError"}),
        ("key.tier", "failed", audit.fingerprint(ME), {"error": "ValueError", "tier": "gold"}),
        ("set", "failed", None, {"error": "ValueError", "name": "nothing", "value": "7"}),
    ]


def test_a_change_and_its_entry_are_one_transaction(presage, conn, monkeypatch, entries):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("cli.commands.set.record", interrupted)
    presage("set", "whale_alert_usd", "30000")

    assert conn.execute("select count(*) from settings where name like 'parameters.%'").fetchone() == (0,)
    assert [entry[:2] for entry in entries()] == [("set", "failed")]


def test_parameters_and_analysts(presage, conn, entries):
    name = f"analyst_{secrets.token_hex(4)}"
    try:
        assert presage("set", "whale_alert_usd", "30000").exit_code == 0
        assert presage("set", "whale_alert_usd", "default").exit_code == 0
        address = presage("analyst", "add", name).output.strip()
    finally:
        assert presage("analyst", "remove", name).exit_code == 0
    presage("get")

    assert entries() == [
        ("set", "ok", "whale_alert_usd", {"before": 25_000, "now": 30_000}),
        ("set", "ok", "whale_alert_usd", {"before": 30_000, "now": 25_000}),
        ("analyst.add", "ok", name, {}),
        ("analyst.remove", "ok", name, {}),
    ]
    password = conninfo_to_dict(address)["password"]
    assert password not in str(conn.execute("select l::text from audit_log l").fetchall())


def test_secrets_of_webhooks_are_rotated(presage, conn, entries, tmp_path, monkeypatch):
    made = settings.Settings(_env_file=None, data_dir=tmp_path)
    monkeypatch.setattr(settings, "get", lambda: made)
    add_webhook(conn, "https://8.8.8.8/")
    webhook_keys.ensure(made)

    assert presage("rotate", "webhook-secrets", "--new-key").exit_code == 0

    assert [(*entry[:2], entry[3]) for entry in entries()] == [
        ("rotate.webhook-secrets", "started", {"new_key": "True"}),
        ("rotate.webhook-secrets", "ok", {"new_key": "True"}),
    ]


def test_a_backup_and_its_restore_are_entered_in_the_database_that_they_concern(presage, elsewhere, entries, tmp_path):
    file = tmp_path / "presage.dump"
    detail = {"file": str(file)}
    assert presage("backup", str(file)).exit_code == 0
    assert presage("backup", str(file)).exit_code == 1
    assert entries() == [
        ("backup.file", "started", None, detail),
        ("backup.file", "ok", None, detail),
        ("backup.file", "started", None, detail),
        ("backup.file", "failed", None, {**detail, "error": "Exit"}),
    ]

    assert presage("restore", str(file), url=elsewhere).exit_code == 0

    with database.connect(elsewhere) as restored:
        rows = restored.execute("select action, result from audit_log order by entry_id").fetchall()
    assert rows == [("backup.file", "started"), ("restore", "ok")]


def test_a_migration_is_entered_as_far_as_the_schema_has_the_table(presage, database_url, entries, caplog):
    caplog.set_level("INFO", "presage.audit")
    assert presage("migrate").exit_code == 0
    assert [entry[:2] for entry in entries()] == [("migrate", "started"), ("migrate", "ok")]

    migrate.downgrade(database_url, "0015")
    assert presage("migrate").exit_code == 0

    with database.connect(database_url) as conn:
        rows = conn.execute("select action, result, detail from audit_log").fetchall()
    assert rows == [("migrate", "ok", {"revision": "head"})]
    assert [(r.audit["result"], r.audit["stored"]) for r in caplog.records] == [
        ("started", True),
        ("ok", True),
        ("started", False),
        ("ok", True),
    ]


def test_a_replay_is_entered_when_it_starts_and_when_it_is_stopped(database_url, conn, entries):
    lived(conn)
    command = [sys.executable, "-m", "cli.main", "replay", "--port", "0", "--database-url", database_url]
    command += ["--from", str(MS - 1000), "--to", str(MS + 130_000)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "ws://" in process.stdout.readline()
            started = entries()
            process.send_signal(signal.SIGINT)
            log = [json.loads(line) for line in process.communicate(timeout=PATIENCE_S)[1].splitlines()]
        finally:
            process.kill()

    detail = {"since": str(MS - 1000), "until": str(MS + 130_000), "speed": "1.0"}
    assert started == [("replay", "started", None, detail)]
    assert entries() == [("replay", "ok", None, detail)]
    assert [line["audit"]["result"] for line in log] == ["started", "ok"]
    assert {line["audit"]["operator"] for line in log} == {recording.operator()}


def test_every_command_that_opens_the_database_is_recorded_unless_it_only_reads():
    def named(app, path=()):
        for command in app.registered_commands:
            yield " ".join([*path, command.name or command.callback.__name__.replace("_", "-")])
        for group in app.registered_groups:
            yield from named(group.typer_instance, (*path, group.typer_instance.info.name))

    assert set(named(app)) >= recording.READ_ONLY | recording.IN_TRANSACTION
    assert not recording.READ_ONLY & recording.IN_TRANSACTION


def test_an_operator_is_known_by_the_system_and_not_by_what_the_environment_says(monkeypatch):
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    monkeypatch.delenv("SUDO_USER", raising=False)
    assert "somebody-else" not in recording.operator()

    monkeypatch.setenv("SUDO_USER", "alice")
    assert "(alice)@" in recording.operator()


@pytest.mark.parametrize(
    ("said", "address"), [("192.0.2.7 5000 192.0.2.1 22", "192.0.2.7"), ("nonsense", None), ("", None)]
)
def test_a_session_over_ssh_has_an_address(monkeypatch, said, address):
    monkeypatch.setenv("SSH_CONNECTION", said)

    assert recording.Operation("set", {}).entry().address == address


# --- presage audit

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)


@pytest.fixture
def filled(conn):
    account = insert(conn, "accounts", {"email": ME, "app_name": "bot"})["account_id"]
    insert(
        conn,
        "audit_log",
        {"ts": NOW - dt.timedelta(days=9), "action": "key.rotate", "result": "ok", "account_id": account, "key_id": 5},
    )
    insert(
        conn,
        "audit_log",
        {"ts": NOW - dt.timedelta(days=2), "action": "webhook.create", "result": "ok", "account_id": account},
    )
    insert(
        conn,
        "audit_log",
        {"ts": NOW - dt.timedelta(days=1), "action": "set", "result": "ok", "operator": "root@host", "subject": "[x]"},
    )
    insert(
        conn,
        "audit_counts",
        {
            "minute": NOW - dt.timedelta(minutes=1),
            "action": "key.failed",
            "result": "unknown",
            "address": "192.0.2.1",
            "account_id": 0,
            "key_id": 0,
            "times": 12345,
        },
    )
    return account


def shown(done):
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_entries_are_listed_the_newest_last_also_those_of_minutes_that_are_not_over(presage, filled):
    rows = shown(presage("audit", "--json"))

    assert [row["action"] for row in rows] == ["webhook.create", "set", "key.failed"]
    assert rows[-1] == {
        "ts": (NOW - dt.timedelta(minutes=1)).isoformat().replace("+00:00", "Z"),
        "action": "key.failed",
        "result": "unknown",
        "times": 12345,
        "account_id": None,
        "key_id": None,
        "operator": None,
        "address": "192.0.2.1",
        "subject": None,
        "detail": {},
    }


@pytest.mark.parametrize(
    ("options", "actions"),
    [
        (["--since", "30d"], ["key.rotate", "webhook.create", "set", "key.failed"]),
        (["--since", "30d", "--what", "key"], ["key.rotate", "key.failed"]),
        (["--what", "key.failed"], ["key.failed"]),
        (["--what", "ke"], []),
        (["--limit", "2"], ["set", "key.failed"]),
        (["--since", "30d", "--account", ME], ["key.rotate", "webhook.create"]),
        (["--since", "30d", "--account", "ACCOUNT", "--what", "key"], ["key.rotate"]),
        (["--account", "0"], []),
    ],
)
def test_entries_are_chosen_by_time_action_and_account(presage, filled, options, actions):
    options = [str(filled) if each == "ACCOUNT" else each for each in options]

    assert [row["action"] for row in shown(presage("audit", "--json", *options))] == actions


def test_the_table_shows_texts_as_they_are(presage, filled, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    output = presage("audit").output

    assert re.search(r"root@host .* set .* \[x\] .* ok ", output)
    assert "12,345" in output


def test_reading_the_trail_is_not_entered(presage, filled, conn):
    presage("audit")

    assert conn.execute("select count(*) from audit_log").fetchone() == (3,)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        (["--since", "noon"], 2, "not a valid time"),
        (["--account", "nobody@example.com"], 1, "no account has or had this email address"),
        (["--account", "nobody"], 1, "@"),
        (["--limit", "0"], 2, "greater than or equal to 1"),
    ],
)
def test_what_is_wrong_is_said(presage, options, status, said):
    done = presage("audit", *options)

    assert (done.exit_code, said in done.output) == (status, True), done.output


def test_the_help_says_what_is_shown():
    shown = CliRunner().invoke(app, ["audit", "--help"], env={"COLUMNS": "200"})

    for text in ("--since", "--what", "--account", "--json", "failed keys", "by address and minute"):
        assert text in shown.output
