"""Changing keys from the command line, including while the API serves them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from typer.testing import CliRunner

from api.metering import keys
from api.metering.keys import KNOWN_TTL_S
from cli.main import app
from config import settings
from sql.queries import keys as queries
from tests.api.conftest import serving
from tests.patience import PATIENCE_S, until

LIMITS = "select tier, credits_month, credits_burst, max_connections, revoked_at is null from api_keys order by key_id"


@pytest.fixture
def presage(database_url):
    def run(*words):
        return CliRunner().invoke(app, ["key", *words, "--database-url", database_url])

    return run


@pytest.fixture
def key(conn):
    return keys.create(conn, "someone@example.com", "tests", "pro")


@pytest.mark.parametrize(
    "named", [lambda key: key, lambda key: key[:12], lambda key: f"{key[:12]}…", lambda _: "Someone@Example.com"]
)
def test_a_key_is_revoked_by_any_of_its_names(presage, conn, key, named):
    done = presage("revoke", named(key))

    assert done.exit_code == 0, done.output
    assert done.output.startswith(f"{key[:12]}… revoked")
    assert key not in done.output
    assert conn.execute(LIMITS).fetchone()[-1] is False


def test_the_address_of_a_revoked_account_is_refused_until_it_is_allowed(presage, conn):
    key = keys.register(conn, "someone@example.com", "tests")[0]
    presage("revoke", key)
    with pytest.raises(keys.AccountClosed):
        keys.register(conn, "someone@example.com", "tests")

    assert presage("allow", "Someone@Example.com").exit_code == 0

    other = keys.register(conn, "someone@example.com", "tests")[0]
    accounts = "select count(distinct account_id) from api_keys"
    assert conn.execute(accounts).fetchone() == (2,)
    assert queries.by_hash(conn, key_hash=keys.digest(key)) is None
    assert queries.by_hash(conn, key_hash=keys.digest(other)) is not None
    again = presage("allow", "someone@example.com")
    assert (again.exit_code, "no closed account" in again.output) == (1, True)


def test_an_account_with_another_valid_key_stays_open(presage, conn, key):
    keys.create(conn, "someone@example.com", "tests", "pro")
    presage("revoke", key)

    assert conn.execute("select closed_at from accounts").fetchall() == [(None,)]


def test_keys_are_listed_by_their_prefix_with_what_was_used_of_what(presage, conn, key, monkeypatch):
    former = keys.create(conn, "former@example.com", "bot", "free")
    presage("revoke", former)
    conn.execute(
        "insert into credit_usage (key_id, month, used)"
        " select key_id, date_trunc('month', now(), 'UTC'), 1234 from api_keys where prefix = %s",
        [key[:12]],
    )

    narrow = presage("list").output
    monkeypatch.setenv("COLUMNS", "200")
    wide = presage("list").output

    assert f"{key[:12]}…" in narrow  # by which the other commands know it
    listed = [[cell.strip() for cell in line.split("│")[1:-1]] for line in wide.splitlines() if "@" in line]
    day = re.compile(r"20\d\d-\d\d-\d\d")
    assert [[day.sub("a day", cell) for cell in row] for row in listed] == [
        [f"{key[:12]}…", "someone@example.com", "tests", "pro", "a day", "1,234", "100,000", ""],
        [f"{former[:12]}…", "former@example.com", "bot", "free", "a day", "0", "5,000", "a day"],
    ]
    assert key not in narrow + wide


def test_a_key_is_put_into_another_tier(presage, conn, key):
    assert presage("tier", key, "free").exit_code == 0

    assert conn.execute(LIMITS).fetchone()[0] == "free"


def test_limits_of_a_key_are_set_one_by_one_and_taken_away(presage, conn, key):
    assert presage("quota", key, "--month", "1000000", "--burst", "100").exit_code == 0
    assert presage("quota", key, "--connections", "7").exit_code == 0
    assert conn.execute(LIMITS).fetchone() == ("pro", 1_000_000, 100, 7, True)

    assert presage("quota", key, "--month", "tier").exit_code == 0

    assert conn.execute(LIMITS).fetchone() == ("pro", None, 100, 7, True)

    assert presage("quota", key, "--webhooks", "9").exit_code == 0

    assert conn.execute("select max_webhooks from api_keys").fetchone() == (9,)
    assert presage("quota", key, "--webhook-messages", "5000").exit_code == 0
    assert conn.execute("select max_webhooks, webhook_messages_day from api_keys").fetchone() == (9, 5000)
    assert conn.execute(LIMITS).fetchone() == ("pro", None, 100, 7, True)


@pytest.mark.parametrize("named", [lambda key: key[:12], lambda _: "someone@example.com"])
def test_a_lost_key_is_replaced_and_keeps_what_belongs_to_it(presage, conn, key, named):
    presage("quota", key, "--month", "777")

    done = presage("replace", named(key))

    assert done.exit_code == 0, done.output
    said, new = done.output.splitlines()
    assert said.startswith(f"{key[:12]}… is no longer valid")
    assert conn.execute(LIMITS).fetchall() == [("pro", 777, None, None, True)]
    assert queries.by_hash(conn, key_hash=keys.digest(key)) is None
    assert queries.by_hash(conn, key_hash=keys.digest(new))[1:3] == ("pro", 777)
    assert presage("list").output.count(f"{new[:12]}…") == 1


def test_a_key_that_has_ended_is_not_replaced(presage, key):
    presage("revoke", key)

    done = presage("replace", key)

    assert (done.exit_code, "has been revoked" in done.output, "psg_" in done.output) == (1, True, False)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["revoke", "psg_nothing"], 1, "no such key"),
        (["tier", "someone@example.com", "gold"], 1, "available: free, pro, enterprise"),
        (["quota", "someone@example.com"], 2, "--month"),
        (["quota", "someone@example.com", "--burst", "-1"], 2, "neither a number"),
        (["quota", "someone@example.com", "--burst", str(2**31)], 2, "neither a number"),
    ],
)
def test_what_cannot_be_done_is_said(presage, conn, key, words, status, said):
    done = presage(*words)

    assert done.exit_code == status
    assert said in done.output
    assert conn.execute(LIMITS).fetchone() == ("pro", None, None, None, True)


def test_of_several_keys_one_must_be_named(presage, conn, key):
    other = keys.create(conn, "someone@example.com", "tests", "pro")

    done = presage("revoke", "someone@example.com")

    assert done.exit_code == 1
    assert key[:12] in done.output
    assert other[:12] in done.output
    assert presage("revoke", other).exit_code == 0
    assert presage("revoke", other).output.strip().endswith("has been revoked")
    assert presage("revoke", "someone@example.com").exit_code == 0


def asked(server, key):
    request = urllib.request.Request(f"{server.url}/v1/time", headers={"X-API-Key": key})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return answer.status, answer.headers["X-Credits-Limit"]
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, None


def test_an_api_that_runs_here_sees_a_change_with_the_next_request(presage, database_url, key, tmp_path, monkeypatch):
    monkeypatch.setenv("PRESAGE_METERING_DIR", str(tmp_path))
    settings.get.cache_clear()
    try:
        with serving(database_url, workers=2) as server:
            assert {asked(server, key) for _ in range(6)} == {(200, "100000")}

            assert "30 s" not in presage("quota", key, "--month", "77").output
            assert {asked(server, key) for _ in range(6)} == {(200, "77")}

            presage("revoke", key)
            assert {asked(server, key) for _ in range(6)} == {(401, None)}
    finally:
        settings.get.cache_clear()


def test_an_api_elsewhere_sees_a_change_without_sharing_memory(database_url, key, tmp_path):
    def folder(name):
        (tmp_path / name).mkdir()
        return {"PRESAGE_METERING_DIR": str(tmp_path / name)}

    with serving(database_url, **folder("one")) as one, serving(database_url, **folder("two")) as two:
        assert [asked(server, key) for server in (one, two)] == [(200, "100000")] * 2
        change = [sys.executable, "-m", "cli.main", "key", "revoke", key, "--database-url", database_url]

        done = subprocess.run(change, env={**os.environ, **folder("three")}, capture_output=True, text=True, check=True)

        # A worker reads a revoked key again after 30 s at the latest.
        until(lambda: [asked(server, key) for server in (one, two)] == [(401, None)] * 2, within_s=KNOWN_TTL_S / 2)
    assert "30 s" not in done.stdout


def test_an_address_is_known_by_the_form_that_registering_gives_it(presage, conn):
    assert presage("create", " Some.One@EXAMPLE.com ", "bot").exit_code == 0

    again = presage("create", "some.one@example.com", "bot")

    assert again.exit_code != 0
    assert conn.execute("select email from accounts").fetchall() == [("some.one@example.com",)]
    assert presage("create", "nobody", "bot").exit_code != 0
