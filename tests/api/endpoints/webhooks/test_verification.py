"""Verification of webhooks: their receivers repeat a challenge."""

from __future__ import annotations

from api.endpoints.webhooks import records
from tests.api.endpoints.webhooks.rows import URL, promised, queue, verify


def challenge(conn):
    """The challenge that a receiver is sent and has to repeat."""
    ((sent, expected),) = conn.execute(
        """select d.body::json -> 'data' ->> 'challenge', w.challenge
        from webhook_deliveries d join webhooks w using (webhook_id)
        where d.state = 'waiting' and d.type = 'webhook.challenge' order by d.number desc limit 1"""
    ).fetchall()
    assert sent == expected
    return sent


def test_a_new_webhook_is_pending_and_only_its_receiver_is_told_the_challenge(send, conn):
    made = send("POST", url=URL, events=["market"]).json
    path = f"/{made['id']}"

    (sent,) = promised(send("GET", f"{path}/deliveries"), records.DeliveryPage)["data"]

    text = challenge(conn)
    assert len(text) == 43
    assert (sent["type"], sent["state"], sent["seq"]) == ("webhook.challenge", "waiting", None)
    assert sent["payload"]["data"] == {}
    assert text not in send("GET", f"{path}/deliveries").text + send("GET").text
    refused = send("POST", f"{path}/test")
    assert (refused.json["code"], refused.json["detail"]) == ("forbidden", "The webhook's URL is not verified yet")
    assert "/verify" in refused.json["hint"]
    assert send("POST", f"{path}/deliveries/{sent['id']}/redeliver").status_code == 403


def test_a_challenge_is_repeated_while_a_webhook_is_pending(send, conn):
    path = f"/{send('POST', url=URL, events=['market']).json['id']}"
    first = challenge(conn)

    again = send("POST", f"{path}/verify")

    assert again.status_code == 202
    assert promised(again, records.Webhook)["state"] == "pending"
    assert challenge(conn) != first
    verify(conn)
    assert send("POST", f"{path}/verify").json["state"] == "active"
    assert conn.execute("select count(*) from webhook_deliveries").fetchone() == (0,)
    send("PATCH", path, enabled=False)
    assert send("POST", f"{path}/verify").status_code == 403


def test_another_url_is_verified_again_and_the_same_is_not(send, conn, made):
    path = f"/{made['id']}"
    queue(conn, made, state="waiting")
    conn.execute("update webhooks set waiting = 1, due_at = now() - interval '1 minute'")

    assert send("PATCH", path, url=URL, min_usd=2000).json["state"] == "active"
    moved = send("PATCH", path, url=f"{URL}/moved").json

    assert (moved["state"], moved["enabled"], moved["waiting"]) == ("pending", True, 2)
    assert moved["verified_at"] is not None
    assert challenge(conn)


def test_an_account_sends_only_so_many_challenges_a_day_even_if_it_removes_the_webhooks(send, conn, service):
    conn.execute("update api_keys set max_webhooks = 1")
    day = 1_795_305_600
    service.clock = lambda: day + 86_399
    for _ in range(10):
        send("DELETE", f"/{send('POST', url=URL, events=['market']).json['id']}")

    refused = send("POST", url=URL, events=["market"])

    assert (refused.status_code, refused.json["code"], refused.headers["Retry-After"]) == (429, "burst_exceeded", "2")
    assert conn.execute("select count(*) from webhooks").fetchone() == (0,)
    service.clock = lambda: day + 86_400
    assert send("POST", url=URL, events=["market"]).status_code == 201
