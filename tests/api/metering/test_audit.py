"""The audit trail of requests: refused ones are counted, changes are entered with what they change."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager

import psycopg
import pytest

from api.errors import Problem
from api.metering import audit_counts, keys
from api.metering.audit_counts import FLUSH_S, GRACE_S, MAX_SINGLE, OTHERS, AuditCounts
from api.metering.unauthenticated import MINUTE_NS, AddressBudgets, UnauthenticatedRequests
from sql import audit
from tests.api.conftest import generous, serving
from tests.api.metering.mailbox import receiving
from tests.api.metering.test_unauthenticated import guess
from tests.patience import PATIENCE_S, until

MINUTE = 1_795_176_000 // 60 * 60
ADDRESSES, REQUESTS = 20, 100
STORED = """
    select action, result, address, times from audit_log
    union all select action, result, address, times from audit_counts
"""


def ask(server, address, requests):
    """Send requests from an address of its own; return the answers' statuses and bodies."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S, source_address=(address, 0))
    answers = []
    with contextlib.closing(connection):
        for method, path, key, body in requests:
            headers = {} if key is None else {"X-API-Key": key}
            connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
            answer = connection.getresponse()
            answers.append((answer.status, answer.read()))
    return answers


def one(server, method, path, key=None, body=None, address="127.0.6.1"):
    ((status, text),) = ask(server, address, [(method, path, key, body)])
    return status, json.loads(text)


def entries(conn):
    """Return the entries in their order, without the time."""
    return conn.execute(
        "select action, result, times, account_id, key_id, address, subject, detail from audit_log"
        " order by ts, entry_id"
    ).fetchall()


def counted(conn):
    """Return how many requests have been stored, by action and result."""
    found = Counter()
    for action, result, _, times in conn.execute(STORED):
        found[action, result] += times
    return found


# --- Counting


@pytest.fixture
def now():
    return [float(MINUTE)]


@pytest.fixture
def pool(conn):
    @contextmanager
    def connection():
        with conn.transaction():
            yield conn

    return connection


@pytest.fixture
def counts(pool, now):
    return AuditCounts(pool, lambda: now[0])


def test_an_address_has_a_row_a_minute_that_says_how_many(counts, conn, now):
    for second in range(90):
        now[0] = MINUTE + second
        counts.count("192.0.2.1", "key.failed", "unknown")
        counts.count("192.0.2.2", "key.failed", "revoked", 3, 5)
        if second % 7 == 0:
            counts.flush()
    now[0] = MINUTE + 120 + GRACE_S
    counts.flush()

    assert sorted(entries(conn), key=lambda entry: entry[1:3]) == [
        ("key.failed", "revoked", 30, 3, 5, "192.0.2.2", None, {}),
        ("key.failed", "revoked", 60, 3, 5, "192.0.2.2", None, {}),
        ("key.failed", "unknown", 30, None, None, "192.0.2.1", None, {}),
        ("key.failed", "unknown", 60, None, None, "192.0.2.1", None, {}),
    ]
    instants = [row[0].timestamp() for row in conn.execute("select ts from audit_log order by ts")]
    assert instants == [MINUTE] * 2 + [MINUTE + 60] * 2
    assert conn.execute("select count(*) from audit_counts").fetchone() == (0,)


def test_a_minute_is_entered_once_it_is_over_for_all_workers(counts, pool, conn, now):
    other = AuditCounts(pool, lambda: now[0])
    counts.count("192.0.2.1", "key.failed", "unknown")
    counts.flush()
    now[0] += 60 + GRACE_S - 1
    other._counts = {audit_counts.Counted(MINUTE, "key.failed", "unknown", "192.0.2.1", 0, 0): 4}
    other.flush()
    assert entries(conn) == []

    now[0] += 1
    other.flush()

    assert [entry[2] for entry in entries(conn)] == [5]


def test_any_number_of_addresses_is_a_bounded_number_of_rows_and_none_is_lost(counts, conn, now):
    for number in range(5_000):
        counts.count(f"192.0.{number // 250}.{number % 250}", "key.failed", "unknown")
    counts.flush()  # a write does not begin the minute anew
    for number in range(5_000):
        counts.count(f"198.51.{number // 250}.{number % 250}", "key.failed", "unknown")
    counts.flush()

    rows = conn.execute("select address, times from audit_counts").fetchall()
    assert len(rows) == MAX_SINGLE + 1
    assert sum(times for _, times in rows) == 10_000
    assert dict(rows)[OTHERS] == 10_000 - MAX_SINGLE


def test_while_the_database_is_away_counts_are_kept_and_no_request_fails(conn, pool, now, caplog):
    away = [True]

    @contextmanager
    def connection():
        if away[0]:
            raise psycopg.OperationalError("away")
        with pool() as found:
            yield found

    counts = AuditCounts(connection, lambda: now[0])
    for _ in range(3):
        counts.count("192.0.2.1", "key.failed", "unknown")
        counts.flush()
    away[0] = False
    counts.flush()

    assert conn.execute("select address, times from audit_counts").fetchall() == [("192.0.2.1", 3)]
    assert "its counts are kept: OperationalError" in caplog.text


def test_each_entry_is_a_line_in_the_log(counts, now, caplog):
    caplog.set_level("INFO", "presage.audit")
    counts.count("192.0.2.1", "key.failed", "unknown")
    now[0] += 120 + GRACE_S
    counts.flush()

    (record,) = caplog.records
    assert record.getMessage() == "key.failed: unknown"
    assert record.audit["address"] == "192.0.2.1"
    assert record.audit["ts"] == "2026-11-20T12:00:00+00:00"


def test_a_change_is_made_also_if_its_entry_cannot_be_stored(client, conn, caplog):
    conn.execute("alter table audit_log rename to audit_log_elsewhere")

    answer = client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": client.key})

    assert answer.status_code == 200
    assert client.ask("/v1/time", key=answer.json["key"]).status_code == 200
    (record,) = [record for record in caplog.records if record.name == "presage.audit"]
    assert (record.levelname, record.audit["detail"]) == ("ERROR", {"not_stored": "UndefinedTable"})


# --- What requests leave


def recorded(service, conn):
    service.audit.flush()
    return sorted((action, result, times) for action, result, _, times in conn.execute(STORED))


@pytest.mark.parametrize("key", ["wrong", "x" * 5000])
def test_a_key_that_is_not_valid_is_counted_and_a_missing_one_is_not(client, service, conn, key):
    for sent in (key, None, key):
        assert client.ask("/v1/time", key=sent).status_code == 401
    assert client.ask("/v1/time").status_code == 200

    assert recorded(service, conn) == [("key.failed", "unknown", 2)]


def test_requests_beyond_the_addresss_budget_are_counted_too(client, service, conn):
    service.unauthenticated = UnauthenticatedRequests(AddressBudgets(clock_ns=lambda: MINUTE_NS), 18)

    answers = [client.ask("/v1/time", key=guess()).status_code for _ in range(5)]

    assert answers == [401] * 3 + [429] * 2
    assert sum(times for _, _, times in recorded(service, conn)) == 5


def test_an_ended_key_is_told_from_an_unknown_one(client, service, conn):
    revoked, replaced = generous(conn, "one@example.com"), generous(conn, "two@example.com")
    ids = {
        key: conn.execute("select account_id, key_id from api_keys where key_hash = %s", [keys.digest(key)]).fetchone()
        for key in (revoked, replaced)
    }
    conn.execute("update api_keys set revoked_at = now() where key_hash = %s", [keys.digest(revoked)])
    keys.rotate(conn, replaced)

    for key in (revoked, replaced, replaced, guess()):
        assert client.ask("/v1/time", key=key).status_code == 401

    service.audit.flush()
    rows = conn.execute("select result, account_id, key_id, times from audit_counts order by result").fetchall()
    assert rows == [("replaced", *ids[replaced], 2), ("revoked", *ids[revoked], 1), ("unknown", 0, 0, 1)]


def test_a_lookup_that_finds_no_connection_counts_the_request_and_no_customer(service, conn):
    class Away:
        def read(self, work):
            raise Problem("overloaded", "busy")

    class Filter(set):
        pass

    key = generous(conn, "customer@example.com")
    seen = []
    found = keys.Keys(Away(), service.ledger, failed=lambda req, failure: seen.append(failure.result))
    found.follow(Filter([keys.digest(key)]))

    for text in (key, guess()):
        with pytest.raises(Problem):
            found.find(text, object())

    assert seen == ["unchecked"]


def test_refused_registrations_are_counted_with_their_reason(client, service, conn):
    def register(email):
        return client.simulate_post("/register", json={"app_name": "bot", "email": email}).status_code

    assert register("me@example.com") == 201
    assert [register("me@example.com") for _ in range(2)] == [400, 400]
    conn.execute("update accounts set closed_at = now() where email = 'someone@example.com'")
    assert register("someone@example.com") == 400
    assert register("nobody") == 400
    service.registrations_a_day = 1
    assert register("other@example.com") == 429

    assert recorded(service, conn) == [
        ("account.register", "account_closed", 1),
        ("account.register", "burst_exceeded", 1),
        ("account.register", "has_a_key", 2),
        ("account.register", "invalid_parameter", 1),
        ("account.register", "ok", 1),
    ]


def test_a_change_that_is_refused_leaves_no_entry(client, conn):
    webhook = "00000000-0000-4000-8000-000000000001"

    answer = client.simulate_delete(f"/v1/webhooks/{webhook}", headers={"X-API-Key": client.key})

    assert answer.status_code == 404
    assert entries(conn) == []


# --- On a server


def test_a_flood_of_unknown_keys_is_a_few_rows_that_add_up(database_url, conn):
    statuses = Counter()

    def attack(number):
        requests = [("GET", "/v1/time", guess(), None) for _ in range(REQUESTS)]
        statuses.update(status for status, _ in ask(server, f"127.0.7.{number}", requests))

    began = time.time()
    with serving(database_url, workers=2, PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE="1000000") as server:
        attackers = [threading.Thread(target=attack, args=[number]) for number in range(1, ADDRESSES + 1)]
        for thread in attackers:
            thread.start()
        for thread in attackers:
            thread.join()
        until(lambda: sum(counted(conn).values()) >= ADDRESSES * REQUESTS)
        server.stop()

    minutes = (time.time() // 60) - (began // 60) + 1
    rows = conn.execute(STORED).fetchall()
    by_address = Counter()
    for action, result, address, times in rows:
        assert (action, result) in {("key.failed", "unknown"), ("key.failed", "unchecked")}
        by_address[address] += times
    assert sum(statuses.values()) == ADDRESSES * REQUESTS
    assert set(statuses) <= {401, 503}
    assert by_address == {f"127.0.7.{number}": REQUESTS for number in range(1, ADDRESSES + 1)}
    assert len(rows) <= ADDRESSES * minutes * 2


def test_a_killed_worker_loses_what_it_has_not_written_yet(database_url, conn):
    def failing(count):
        return ask(server, "127.0.6.1", [("GET", "/v1/time", guess(), None) for _ in range(count)])

    def stored():
        return sum(counted(conn).values())

    with serving(database_url, workers=1, PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE="1000000") as server:
        failing(50)
        until(lambda: stored() == 50)
        failing(30)
        (worker,) = server.workers()
        os.kill(worker, signal.SIGKILL)

    assert 50 <= stored() <= 80
    assert FLUSH_S <= 5  # as the documentation says


def presage(database_url, *words):
    """Run a command; return its output and its log."""
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", *words, "--database-url", database_url],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


def test_every_change_by_a_request_leaves_its_entry_and_no_secret(database_url, conn):
    mine, theirs = "me@example.com", "them@example.com"
    with receiving() as box:
        env = {
            "PRESAGE_SMTP_URL": box.url,
            "PRESAGE_MAIL_FROM": "presage@example.com",
            "PRESAGE_PUBLIC_SITE_URL": "https://presage.example",
            "PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE": "1000000",
        }
        conn.execute("update tiers set credits_burst = 1000")
        with serving(database_url, **env) as server:
            first = one(server, "POST", "/register", body={"app_name": "bot", "email": mine})[1]["key"]
            other = one(server, "POST", "/register", body={"app_name": "bot", "email": theirs})[1]["key"]
            assert one(server, "POST", "/register", body={"app_name": "bot", "email": mine})[0] == 400
            until(lambda: len(box.tokens()) == 2)
            assert one(server, "POST", "/confirm", body={"token": box.token(1)})[0] == 200
            assert one(server, "POST", "/confirm", body={"token": box.token(1)})[0] == 400
            second = one(server, "POST", "/v1/keys/rotate", first)[1]["key"]
            assert one(server, "POST", "/recover", body={"email": mine})[0] == 202
            third = one(server, "POST", "/confirm", body={"token": box.token(3)})[1]["key"]
            assert one(server, "POST", "/recover", body={"email": theirs})[0] == 202
            fourth = one(server, "POST", "/confirm", body={"token": box.token(4)})[1]["key"]
            hook = one(server, "POST", "/v1/webhooks", third, {"url": "https://8.8.8.8/", "events": ["signal"]})[1]
            path = f"/v1/webhooks/{hook['id']}"
            assert one(server, "PATCH", path, third, {"url": "https://8.8.4.4/"})[0] == 200
            assert one(server, "PATCH", path, third, {"min_usd": 7})[0] == 200  # not of interest here
            rotated = one(server, "POST", f"{path}/rotate-secret", third)[1]["secret"]
            assert one(server, "POST", f"{path}/rotate-secret", third, {"step": "finish"})[0] == 200
            assert one(server, "DELETE", path, third)[0] == 200
            _, said = presage(database_url, "key", "revoke", other)
            bad = [first, second, other, other, guess()]
            assert {one(server, "GET", "/v1/time", key)[0] for key in bad} == {401}
            tokens = box.tokens()
            log = server.stop() + said
    secret = [first, second, third, fourth, other, *bad, hook["secret"], rotated, *tokens, mine, theirs]

    account, key_id = conn.execute(
        "select account_id, key_id from api_keys where key_hash = %s", [keys.digest(third)]
    ).fetchone()
    hers, her_key = conn.execute(
        "select account_id, key_id from api_keys where key_hash = %s", [keys.digest(other)]
    ).fetchone()
    new, new_key = conn.execute(
        "select account_id, key_id from api_keys where key_hash = %s", [keys.digest(fourth)]
    ).fetchone()
    me = (account, key_id, "127.0.6.1")
    changes = [row for row in entries(conn) if row[1] == "ok"]
    assert all(row[2] == 1 for row in changes)
    mails = [(row[3], row[5], row[6]) for row in changes if row[0] == "account.mail"]
    assert sorted(mails) == sorted(
        [
            (account, "127.0.6.1", "verify"),
            (hers, "127.0.6.1", "verify"),
            (account, "127.0.6.1", "recover"),
            (hers, "127.0.6.1", "recover"),
        ]
    )
    operators = [row for row in changes if row[0] == "key.revoke"]
    assert operators == [("key.revoke", "ok", 1, hers, her_key, None, None, {"account_closed": True})]
    assert [(row[0], *row[3:]) for row in changes if row[0] not in {"account.mail", "key.revoke"}] == [
        ("account.register", *me, None, {}),
        ("account.register", hers, her_key, "127.0.6.1", None, {}),
        ("account.confirm", account, None, "127.0.6.1", "verify", {}),
        ("key.rotate", *me, None, {}),
        ("account.confirm", *me, "recover", {}),
        ("account.confirm", new, new_key, "127.0.6.1", "recover", {"former_account_id": hers}),
        ("webhook.create", *me, hook["id"], {}),
        ("webhook.change_url", *me, hook["id"], {}),
        ("webhook.rotate_secret", *me, hook["id"], {"step": "begin"}),
        ("webhook.rotate_secret", *me, hook["id"], {"step": "finish"}),
        ("webhook.delete", *me, hook["id"], {}),
    ]
    assert counted(conn) == Counter({("account.mail", "ok"): 4, ("account.register", "ok"): 2}) + Counter(
        {
            ("account.register", "has_a_key"): 1,
            ("account.recover", "requested"): 2,
            ("account.confirm", "ok"): 3,
            ("account.confirm", "invalid_token"): 1,
            ("key.rotate", "ok"): 1,
            ("key.revoke", "ok"): 1,
            ("key.failed", "replaced"): 2,
            ("key.failed", "revoked"): 2,
            ("key.failed", "unknown"): 1,
            ("webhook.create", "ok"): 1,
            ("webhook.change_url", "ok"): 1,
            ("webhook.rotate_secret", "ok"): 2,
            ("webhook.delete", "ok"): 1,
        }
    )
    lines = [json.loads(line) for line in log.splitlines() if '"presage.audit"' in line]
    assert sorted(line["audit"]["action"] for line in lines) == sorted(row[0] for row in changes)
    assert all(line["request_id"] for line in lines if line["audit"]["action"].startswith("webhook."))
    stored = str(conn.execute("select l::text from audit_log l").fetchall())
    stored += str(conn.execute("select c::text from audit_counts c").fetchall())
    assert [each for each in secret if each in stored or each in log] == []


def test_a_fingerprint_recognises_a_text_and_does_not_show_it():
    text = secrets.token_urlsafe()

    assert audit.fingerprint(text) == audit.fingerprint(text) != audit.fingerprint(text + "x")
    assert text not in audit.fingerprint(text)
