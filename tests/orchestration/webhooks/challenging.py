"""Challenges queued without the API."""

from __future__ import annotations

import json

from orchestration.webhooks import challenge

CHALLENGE = "qJ2dS8l2vXbF4p0uYV3n1m6cR9tZ5wK7hGxDaEoLiMs"


def pend(conn, webhook, text=CHALLENGE):
    """Queue a challenge, as the API does, of a webhook that nobody has verified."""
    body = {"type": challenge.TYPE, "timestamp": "2026-11-21T12:00:00.000Z", "seq": None, "market_id": None}
    conn.execute(
        """insert into webhook_deliveries (webhook_id, type, body, next_at, created_at)
        values (%s, %s, %s, '2026-11-21T12:00:00Z', '2026-11-21T12:00:00Z')""",
        [webhook["webhook_id"], challenge.TYPE, json.dumps({**body, "data": {"challenge": text}})],
    )
    conn.execute(
        """update webhooks set challenge = %s, waiting = waiting + 1, due_at = '2026-11-21T12:00:00Z'
        where webhook_id = %s""",
        [text, webhook["webhook_id"]],
    )
