from __future__ import annotations

import hashlib

import pytest

from api.metering import keys


def register(client, **body):
    return client.simulate_post("/register", json={"app_name": "bot", "email": "me@example.com", **body})


def test_a_key_is_given_for_an_address(client):
    answer = register(client, use_case="watching")

    assert answer.status_code == 201
    assert answer.json.pop("message")
    key = answer.json.pop("key")
    assert answer.headers["Cache-Control"] == "no-store"
    assert {**answer.json, "key": None, "message": None} == {
        "key": None,
        "app_name": "bot",
        "tier": "free",
        "credits_month": 5000,
        "credits_burst": 5,
        "message": None,
    }
    assert client.ask("/v1/time", key=key).status_code == 200


def test_a_key_is_kept_as_its_digest_only(client, conn):
    key = register(client).json["key"]

    stored = conn.execute("select key_hash, prefix from api_keys order by key_id desc").fetchone()

    assert stored == (hashlib.sha256(key.encode()).digest(), key[:12])
    assert len(key) > 40
    assert key not in str(conn.execute("select * from api_keys, accounts").fetchall())


@pytest.mark.parametrize("again", ["me@example.com", "ME@Example.com", " me@example.com "])
def test_an_address_has_one_active_key(client, again):
    register(client)

    answer = register(client, email=again)

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")
    assert answer.json["errors"][0]["name"] == "email"
    assert "rotate" in answer.json["hint"]


def test_an_address_whose_key_is_not_valid_may_have_another(client, conn):
    register(client)
    conn.execute("update api_keys set revoked_at = now()")

    assert register(client).status_code == 201


@pytest.mark.parametrize(
    ("body", "code", "named"),
    [
        ({"email": "me@example.com"}, "missing_parameter", "app_name"),
        ({"app_name": "bot"}, "missing_parameter", "email"),
        ({"app_name": "", "email": "me@example.com"}, "invalid_parameter", "app_name"),
        ({"app_name": "  ", "email": "me@example.com"}, "invalid_parameter", "app_name"),
        ({"app_name": "\x1d\x85\ufeff", "email": "me@example.com"}, "invalid_parameter", "app_name"),
        ({"app_name": "a\0b", "email": "me@example.com"}, "invalid_parameter", "app_name"),
        ({"app_name": 7, "email": "me@example.com"}, "invalid_parameter", "app_name"),
        ({"app_name": "bot", "email": "me"}, "invalid_parameter", "email"),
        ({"app_name": "bot", "email": "me@"}, "invalid_parameter", "email"),
        ({"app_name": "bot", "email": "me@example"}, "invalid_parameter", "email"),
        ({"app_name": "bot", "email": "me@example.com", "use_case": 1}, "invalid_parameter", "use_case"),
    ],
)
def test_what_is_wrong_with_a_registration_is_named(client, body, code, named):
    answer = client.simulate_post("/register", json=body)

    assert (answer.status_code, answer.json["code"]) == (400, code)
    assert answer.json["errors"][0]["name"] == named


def test_nobody_chooses_a_tier_or_an_account_by_a_field(client, conn):
    other = register(client, email="other@example.com").json["key"]
    account = conn.execute("select account_id from accounts").fetchone()[0]

    chosen = {
        "tier": "enterprise",
        "credits_month": 10**9,
        "account_id": account,
        "verified_at": "2026-11-01T00:00:00Z",
    }
    answer = register(client, **chosen)

    assert (answer.json["tier"], answer.json["credits_month"]) == ("free", 5000)
    rows = "select account_id, verified_at from accounts where email = 'me@example.com'"
    made = conn.execute(rows).fetchone()
    assert made[0] != account
    assert made[1] is None
    assert other != answer.json["key"]


@pytest.mark.parametrize("body", [b"", b"{", b"nothing", b"\xff", b'"text"', b"[]", b"1" * 5000])
def test_a_body_that_is_no_registration_is_refused(client, body):
    answer = client.simulate_post("/register", body=body)

    assert answer.status_code == 400
    assert answer.json["code"] in {"invalid_body", "invalid_parameter"}


@pytest.mark.parametrize("key", [None, "wrong", "psg_", "é", "x" * 5000, "a b"])
def test_without_a_valid_key_there_is_no_answer(client, key):
    answer = client.ask("/v1/time", key=key)

    assert (answer.status_code, answer.json["code"]) == (401, "invalid_api_key")
    assert answer.headers["WWW-Authenticate"]


def test_a_key_is_replaced_and_the_old_one_ends_at_once(client, conn):
    old = register(client).json["key"]
    assert client.ask("/v1/time", key=old).status_code == 200
    client.ask("/v1/markets", key=old)

    answer = client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": old})

    assert answer.status_code == 200
    assert set(answer.json) == {"key", "message"}
    new = answer.json["key"]
    assert client.ask("/v1/time", key=old).status_code == 401
    found = client.ask("/v1/time", key=new)
    assert found.status_code == 200
    assert found.headers["X-Credits-Limit"] == "5000"
    assert found.headers["X-Credits-Used"] == "1"


def test_only_a_valid_key_is_replaced(client):
    assert client.simulate_post("/v1/keys/rotate").status_code == 401
    assert client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": "wrong"}).status_code == 401


def test_a_key_that_was_revoked_since_it_was_last_looked_up_is_not_replaced(client, conn):
    key = register(client).json["key"]
    assert client.ask("/v1/time", key=key).status_code == 200
    conn.execute("update api_keys set revoked_at = now() where key_hash = %s", [keys.digest(key)])

    answer = client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": key})

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")
    assert client.ask("/v1/time", key=key).status_code == 401
    assert client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": key}).status_code == 401


def test_a_replaced_key_keeps_tier_and_limits(conn):
    old = keys.create(conn, "me@example.com", "bot", "pro")
    conn.execute("update api_keys set credits_month = 7, credits_burst = 8, max_connections = 9")

    new = keys.rotate(conn, old)

    assert new is not None
    found = conn.execute(
        "select tier, credits_month, credits_burst, max_connections from api_keys where key_hash = %s",
        [keys.digest(new)],
    ).fetchone()
    assert found == ("pro", 7, 8, 9)
    assert keys.rotate(conn, old) is None


def test_a_tier_says_how_many_keys_an_account_has(conn):
    for _ in range(3):
        keys.create(conn, "me@example.com", "bot", "pro")

    with pytest.raises(keys.KeyLimitReached):
        keys.create(conn, "me@example.com", "bot", "pro")

    keys.create(conn, "other@example.com", "bot", "enterprise")


def test_what_a_worker_remembers_of_keys_is_bounded(service, monkeypatch):
    monkeypatch.setattr(keys, "MAX_KEYS", 10)
    worker = keys.Keys(service.writes, service.ledger)

    for number in range(50):
        assert worker.find(f"guess-{number}") is None

    assert len(worker._unknown) == 10
