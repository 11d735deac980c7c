"""Webhooks over the API: creation, changes, tests, rotation and deliveries."""

from __future__ import annotations

import re
import threading

import pytest
from gevent.threadpool import ThreadPool

from api.endpoints.webhooks import lookup, records
from api.endpoints.webhooks import resource as resources
from sql.webhook_secrets import SecretBox
from tests.api.conftest import generous
from tests.api.endpoints.webhooks.rows import URL, promised, queue
from tests.patience import until

KEY = "cHJlc2FnZSBwcmVzYWdlIHByZXNhZ2UgcHJlc2FnZSE="
ANN = "0x" + "a1" * 20
NOWHERE = "00000000-0000-0000-0000-000000000000"


def test_a_webhook_is_made_shown_without_its_secret_and_removed(send, add_market):
    market = add_market("rain")
    asked = {
        "url": URL,
        "events": ["trade", "signal.whale_alert", "trade"],
        "markets": ["rain", market["market_id"]],
        "wallets": [ANN.upper().replace("X", "x")],
        "min_usd": 0.1,
    }

    made = send("POST", **asked)

    assert made.status_code == 201
    assert made.headers["X-Request-Cost"] == "0"
    said = promised(made, records.Webhook)
    secret = said.pop("secret")
    assert said["next_at"] >= said["created_at"]
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    assert said | {"id": "", "created_at": 0, "updated_at": 0, "next_at": 0} == {
        "id": "",
        "created_at": 0,
        "updated_at": 0,
        "url": URL,
        "events": ["trade", "signal.whale_alert"],
        "markets": [market["market_id"]],
        "wallets": [ANN],
        "min_usd": 0.1,
        "enabled": True,
        "state": "pending",
        "verified_at": None,
        "waiting": 1,
        "disabled_reason": None,
        "disabled_at": None,
        "rotating": False,
        "next_at": 0,
    }
    shown = send("GET", f"/{said['id']}")
    assert promised(shown, records.Webhook) == said
    listed = promised(send("GET"), records.WebhookPage)
    assert listed == {"data": [said], "next_cursor": "", "has_more": False}
    assert send("DELETE", f"/{said['id']}").json == {"id": said["id"], "removed": True}
    assert send("GET", f"/{said['id']}").status_code == 404
    assert send("DELETE", f"/{said['id']}").status_code == 404


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"url": URL}, "events"),
        ({"events": ["trade"]}, "url"),
        ({"url": URL, "events": []}, "events"),
        ({"url": URL, "events": ["trades"]}, "events"),
        ({"url": URL, "events": ["trade"], "min_usd": 0}, "min_usd"),
        ({"url": URL, "events": ["trade"], "wallets": ["0x1"]}, "wallets"),
        ({"url": URL, "events": ["trade"], "wallets": [ANN + "\n"]}, "wallets"),
        ({"url": URL, "events": ["trade"], "markets": ["no-such"]}, "markets"),
        ({"url": URL, "events": ["trade"], "secret": "mine"}, "secret"),
        ({"url": "ftp://8.8.8.8/", "events": ["trade"]}, "url"),
        ({"url": "https://a:b@8.8.8.8/", "events": ["trade"]}, "url"),
        ({"url": "http://127.0.0.1/", "events": ["trade"]}, "url"),
        ({"url": "http://2130706433/", "events": ["trade"]}, "url"),
        ({"url": "http://[::ffff:10.0.0.1]/", "events": ["trade"]}, "url"),
        ({"url": "http://localhost./", "events": ["trade"]}, "url"),
        ({"url": "https://8.8.8.8/\u0000", "events": ["trade"]}, "url"),
        ({"url": "https://a..b/", "events": ["trade"]}, "url"),
        ({"url": "https://.b/", "events": ["trade"]}, "url"),
        ({"url": f"https://{'a' * 64}.com/", "events": ["trade"]}, "url"),
    ],
    ids=str,
)
def test_what_cannot_be_told_is_refused_by_name(send, conn, body, named):
    refused = send("POST", **body)

    assert refused.status_code == 400
    assert refused.json["code"] in {"invalid_parameter", "missing_parameter"}
    assert refused.json["errors"][0]["name"].startswith(named)
    assert conn.execute("select count(*) from webhooks").fetchone() == (0,)


def test_an_operator_may_allow_networks_of_his_own(send, service):
    from upstream.transport.addresses import networks

    service.webhook_networks = networks("127.0.0.0/8")

    assert send("POST", url="http://127.0.0.1:9000/", events=["market"]).status_code == 201
    assert send("POST", url="http://10.0.0.1/", events=["market"]).status_code == 400


def test_a_name_that_is_not_known_yet_is_taken(send, capfd):
    assert send("POST", url="https://nobody.invalid/", events=["market"]).status_code == 201
    assert capfd.readouterr().err == ""


def test_the_tier_says_how_many_and_an_operator_how_many_more(send, conn, client):
    conn.execute("update tiers set max_webhooks = 2 where tier = 'pro'")
    first = send("POST", url=URL, events=["market"]).json
    send("POST", url=URL, events=["market"])

    full = send("POST", url=URL, events=["market"])

    assert (full.status_code, full.json["code"]) == (403, "forbidden")
    assert full.json["detail"] == "The tier allows 2 webhooks, and the account has 2"
    conn.execute("update api_keys set max_webhooks = 3")
    assert send("POST", url=URL, events=["market"]).status_code == 201
    assert send("POST", url=URL, events=["market"]).status_code == 403
    send("DELETE", f"/{first['id']}")
    assert send("POST", url=URL, events=["market"]).status_code == 201


def test_a_name_server_that_does_not_answer_delays_a_registration_for_seconds_at_most(send, monkeypatch):
    """Also the next ones, for which no thread is left."""
    answering, asked, threads = threading.Event(), [], ThreadPool(lookup.MAX_AT_ONCE)
    monkeypatch.setattr(lookup, "_threads", lambda: threads)
    monkeypatch.setattr(lookup, "blocking_lookup", lambda host, *_, **__: asked.append(host) or answering.wait() or [])
    monkeypatch.setattr(lookup, "MAX_S", 0.05)

    try:
        made = [
            send("POST", url=f"https://{number}.example.com/", events=["signal"])
            for number in range(lookup.MAX_AT_ONCE + 1)
        ]
        until(lambda: len(asked) == lookup.MAX_AT_ONCE)
        at_once = sorted(asked)
    finally:
        answering.set()
        threads.join()

    assert [each.status_code for each in made] == [201] * len(made)
    assert at_once == [f"{number}.example.com" for number in range(lookup.MAX_AT_ONCE)]


def test_an_account_names_only_so_many_wallets(send, monkeypatch):
    monkeypatch.setattr(resources, "MAX_WALLETS", 3)
    wallets = ["0x" + f"{number:040x}" for number in range(4)]

    first = send("POST", url=URL, events=["wallet_activity"], wallets=wallets[:2]).json
    assert send("POST", url=URL, events=["wallet_activity"], wallets=wallets[:2]).status_code == 400
    assert send("PATCH", f"/{first['id']}", wallets=wallets[:3]).status_code == 200
    assert send("PATCH", f"/{first['id']}", wallets=wallets).status_code == 400


def test_wallets_that_are_named_are_followed_at_once(send, conn):
    send("POST", url=URL, events=["onchain_trade"], wallets=[ANN])
    assert conn.execute("select count(*) from wallets_followed").fetchone() == (0,)

    send("POST", url=URL, events=["wallet_activity"], wallets=[ANN])

    followed = conn.execute("select wallet, until_at > now() + interval '23 hours' from wallets_followed").fetchall()
    assert followed == [(bytes.fromhex(ANN[2:]), True)]


# --- Ownership


def test_nobody_sees_or_touches_what_is_anothers(send, conn, made):
    other, delivery = generous(conn, "other@example.com"), queue(conn, made)
    mine = f"/{made['id']}"
    paths = [
        *(
            ("GET", mine),
            ("PATCH", mine),
            ("DELETE", mine),
            ("POST", f"{mine}/test"),
            ("POST", f"{mine}/verify"),
            ("POST", f"{mine}/rotate-secret"),
        ),
        *(("GET", f"{mine}/deliveries"), ("POST", f"{mine}/deliveries/{delivery['delivery_id']}/redeliver")),
    ]

    statuses = [
        send(method, path, key=other, **({"enabled": False} if method == "PATCH" else {})) for method, path in paths
    ]

    assert [answer.status_code for answer in statuses] == [404] * 8
    assert send("GET", key=other).json["data"] == []
    assert send("GET", mine).json["enabled"] is True


@pytest.mark.parametrize("which", [NOWHERE, "x", "7F0C2F5E-3A0B-4F0E-9A54-6F0C7D0C1F3A", "%00"])
def test_there_is_nothing_by_another_id(send, made, which):
    assert send("GET", f"/{which}").status_code == 404
    assert send("POST", f"/{made['id']}/deliveries/{which}/redeliver").status_code == 404


def test_every_request_needs_a_key(client, made):
    for method, path in [("GET", ""), ("POST", ""), ("DELETE", f"/{made['id']}"), ("POST", f"/{made['id']}/test")]:
        assert client.simulate_request(method, f"/v1/webhooks{path}").status_code == 401


# --- Changing


def test_a_change_leaves_the_rest_and_null_takes_a_filter_away(send, conn, made):
    changed = send("PATCH", f"/{made['id']}", events=["market"], wallets=[ANN], min_usd=5)
    again = send("PATCH", f"/{made['id']}", min_usd=None)

    assert promised(changed, records.Webhook)["min_usd"] == 5
    assert again.json | {"updated_at": 0} == {**changed.json, "min_usd": None, "updated_at": 0}
    assert (again.json["url"], again.json["events"], again.json["wallets"]) == (URL, ["market"], [ANN])
    assert send("PATCH", f"/{made['id']}", url="http://10.0.0.1/").status_code == 400
    assert send("PATCH", f"/{NOWHERE}", min_usd=5).status_code == 404
    assert conn.execute("select version from webhook_head").fetchone()[0] >= 3


def test_a_webhook_is_disabled_and_enabled_by_its_owner(send, conn, made):
    waiting = queue(conn, made, state="waiting")
    conn.execute("update webhooks set waiting = 1, due_at = '2126-11-21'")
    conn.execute("update stream_head set last_seq = 99")

    off = send("PATCH", f"/{made['id']}", enabled=False).json
    assert (off["enabled"], off["disabled_reason"], off["waiting"]) == (False, None, 1)
    assert send("POST", f"/{made['id']}/test").json["code"] == "forbidden"
    assert send("POST", f"/{made['id']}/deliveries/{waiting['delivery_id']}/redeliver").status_code == 403
    on = send("PATCH", f"/{made['id']}", enabled=True).json

    assert (on["enabled"], on["disabled_at"], on["waiting"]) == (True, None, 1)
    since, due = conn.execute("select since_seq, due_at <= now() from webhooks").fetchone()
    assert (since, due) == (99, True)


# --- Secrets


def test_a_secret_is_replaced_in_two_steps(send, conn, made):
    path = f"/{made['id']}/rotate-secret"
    assert send("POST", path, step="finish").status_code == 400

    begun = send("POST", path)
    assert promised(begun, records.SecretRotation)["rotating"] is True
    assert send("GET", f"/{made['id']}").json["rotating"] is True
    assert conn.execute("select secret, next_secret from webhooks").fetchone() == (made["secret"], begun.json["secret"])
    assert send("POST", path, step="begin").status_code == 400
    finished = send("POST", path, step="finish")

    assert "secret" not in promised(finished, records.SecretRotation)
    assert conn.execute("select secret, next_secret from webhooks").fetchone() == (begun.json["secret"], None)


def test_a_rotation_can_be_called_off(send, conn, made):
    path = f"/{made['id']}/rotate-secret"
    send("POST", path, step="begin")

    assert send("POST", path, step="cancel").json["rotating"] is False

    assert conn.execute("select secret, next_secret from webhooks").fetchone() == (made["secret"], None)
    assert send("POST", path, step="cancel").status_code == 400
    assert send("POST", path, step="retire").status_code == 400


def test_secrets_are_stored_encrypted_and_shown_once_in_clear(send, conn, service):
    service.webhook_secrets = box = SecretBox(lambda: [KEY])

    made = send("POST", url=URL, events=["market"]).json
    begun = send("POST", f"/{made['id']}/rotate-secret").json

    stored = conn.execute("select secret, next_secret from webhooks").fetchone()
    assert not any(each.startswith("whsec_") for each in stored)
    assert tuple(map(box.decrypt, stored)) == (made["secret"], begun["secret"])
    send("POST", f"/{made['id']}/rotate-secret", step="finish")
    assert conn.execute("select secret, next_secret from webhooks").fetchone() == (stored[1], None)


# --- Deliveries


def test_a_test_goes_before_all_that_waits(send, conn, made):
    queue(conn, made, state="waiting")
    conn.execute("update webhooks set waiting = 1, due_at = '2126-11-21'")

    tried = send("POST", f"/{made['id']}/test")

    assert tried.status_code == 202
    said = promised(tried, records.Delivery)
    assert (said["type"], said["state"], said["seq"], said["attempts"]) == ("webhook.test", "waiting", None, 0)
    assert said["message_id"] == "msg_" + said["id"].replace("-", "")
    waiting, due = conn.execute("select waiting, due_at < now() + interval '5 s' from webhooks").fetchone()
    assert (waiting, due) == (2, True)


def test_only_so_many_tests_wait(send, conn, made, monkeypatch):
    monkeypatch.setattr(resources, "MAX_TESTS", 2)
    for seq in range(1, 4):
        queue(conn, made, seq=seq, state="waiting")  # however much else does

    tried = [send("POST", f"/{made['id']}/test") for _ in range(3)]

    assert [answer.status_code for answer in tried] == [202, 202, 429]
    assert tried[-1].json["code"] == "burst_exceeded"
    conn.execute("update webhook_deliveries set state = 'failed', next_at = null, ended_at = now() where seq is null")
    assert send("POST", f"/{made['id']}/test").status_code == 202


def test_deliveries_are_listed_newest_first_and_walked_by_cursor(send, conn, made):
    for seq in range(1, 6):
        queue(conn, made, seq=seq, state="failed" if seq == 3 else "delivered")

    first = promised(send("GET", f"/{made['id']}/deliveries?limit=2"), records.DeliveryPage)
    second = send("GET", f"/{made['id']}/deliveries?limit=2&cursor={first['next_cursor']}").json
    last = send("GET", f"/{made['id']}/deliveries?limit=2&cursor={second['next_cursor']}").json

    assert [[row["seq"] for row in page["data"]] for page in (first, second, last)] == [[5, 4], [3, 2], [1]]
    assert [page["has_more"] for page in (first, second, last)] == [True, True, False]
    assert first["data"][0]["payload"]["data"] == {"id": "1"}
    assert first["data"][0]["log"][0]["status"] == 200
    assert [row["seq"] for row in send("GET", f"/{made['id']}/deliveries?state=failed").json["data"]] == [3]
    wrong = send("GET", f"/{made['id']}/deliveries?state=failed&cursor={first['next_cursor']}")
    assert wrong.json["code"] == "invalid_cursor"


def test_webhooks_are_walked_by_cursor(send):
    ids = [send("POST", url=URL, events=["market"]).json["id"] for _ in range(3)]

    first = send("GET", "?limit=2").json
    last = send("GET", f"?limit=2&cursor={first['next_cursor']}").json

    assert [row["id"] for row in first["data"] + last["data"]] == ids
    assert (first["has_more"], last["has_more"], last["next_cursor"]) == (True, False, "")


def test_what_is_over_is_sent_again_behind_what_waits(send, conn, made):
    over = queue(conn, made, seq=1, state="failed")
    conn.execute("update webhook_deliveries set attempts = 10")
    waits = queue(conn, made, seq=2, state="waiting")
    conn.execute("update webhooks set waiting = 1, due_at = '2026-11-21T12:00:05Z'")

    again = send("POST", f"/{made['id']}/deliveries/{over['delivery_id']}/redeliver")

    assert again.status_code == 202
    said = promised(again, records.Delivery)
    assert (said["state"], said["attempts"], said["ended_at"], len(said["log"])) == ("waiting", 0, None, 1)
    order = conn.execute("select delivery_id from webhook_deliveries order by number").fetchall()
    assert order == [(waits["delivery_id"],), (over["delivery_id"],)]
    assert conn.execute("select waiting from webhooks").fetchone() == (2,)


def test_what_waits_is_tried_at_once(send, conn, made, service):
    waits = queue(conn, made, state="waiting")
    conn.execute("update webhook_deliveries set next_at = '2126-11-21', attempts = 4")
    conn.execute("update webhooks set waiting = 1, due_at = '2126-11-21'")

    said = send("POST", f"/{made['id']}/deliveries/{waits['delivery_id']}/redeliver").json

    assert (said["state"], said["attempts"]) == ("waiting", 4)
    waiting, due = conn.execute("select waiting, due_at < now() + interval '5 s' from webhooks").fetchone()
    assert (waiting, due) == (1, True)
