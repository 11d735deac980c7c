"""Rows as the deliverer leaves them, and answers checked against the document."""

from __future__ import annotations

import json

import msgspec

from tests.api.endpoints.test_shapes import without_defaults
from tests.factories import insert

URL = "https://8.8.8.8/hooks"


def verify(conn):
    """Leave the webhooks as the deliverer does once their receivers have repeated the challenge."""
    conn.execute("delete from webhook_deliveries where type = 'webhook.challenge'")
    conn.execute("update webhooks set challenge = null, verified_at = now(), waiting = 0, due_at = null")


def queue(conn, made, *, state="delivered", seq=7):
    """A delivery of an event, as the deliverer leaves it."""
    body = {
        "type": "trade",
        "timestamp": "2026-11-21T12:00:00.000Z",
        "seq": seq,
        "market_id": None,
        "data": {"id": "1"},
    }
    attempt = {"ts": 1_795_262_400_000, "status": 200, "error": None, "duration_ms": 12, "answer": "ok"}
    row = {"webhook_id": made["id"], "seq": seq, "type": "trade", "body": json.dumps(body), "state": state}
    times = {"created_at": "2026-11-21T12:00:00Z"}
    times |= {"next_at": "2026-11-21T12:00:05Z"} if state == "waiting" else {"ended_at": "2026-11-21T12:00:01Z"}
    added = insert(conn, "webhook_deliveries", {**row, **times})
    conn.execute(
        "update webhook_deliveries set log = jsonb_build_array(%s::jsonb) where delivery_id = %s",
        [json.dumps(attempt), added["delivery_id"]],
    )
    return added


def promised(answer, kind):
    """An answer, which is the record that the document promises and nothing else."""
    record = msgspec.json.decode(answer.content, type=kind)
    assert without_defaults(msgspec.to_builtins(record)) == without_defaults(answer.json)
    return answer.json


# --- Making
