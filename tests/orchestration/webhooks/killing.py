"""Deliverers in processes of their own, killed while events arrive and are delivered."""

from __future__ import annotations

import random
import time

from config.settings import Settings
from sql import database
from tests.orchestration.running import Processes
from tests.orchestration.webhooks.receiving import add_webhook, receiving, tell, trade


def deliver(run_id, url):
    """Run a feed, as `python -m orchestration.webhooks` does; the processes' target."""
    from orchestration.webhooks.feed import WebhookFeed

    configured = Settings(_env_file=None, webhook_networks="127.0.0.0/8", webhook_poll_ms=10, webhook_timeout_s=5)
    WebhookFeed(configured, url, run_id=run_id, window_s=600.0).run()


def kill_many(url, kills, seed, *, webhooks=3, failing=0.02):
    """Kill the leader a number of times, at random; return the errors, and how many messages came more than once."""
    rng = random.Random(seed)
    with (
        receiving() as receiver,
        database.connect(url, autocommit=True) as conn,
        Processes("delivery", deliver, url) as deliverers,
    ):
        hooks = [add_webhook(conn, f"{receiver.url}/{number}") for number in range(webhooks)]
        refused = set()  # each once: after a second failure a message waits for five minutes

        def answer(_number, seen):
            if seen.id in refused or rng.random() >= failing:
                return 200
            refused.add(seen.id)
            return 500

        receiver.answer = answer
        told = 0
        for _ in range(kills):
            until = time.monotonic() + rng.uniform(0.2, 1.2)
            while time.monotonic() < until:
                tell(conn, *(trade(told + number) for number in range(5)))
                told += 5
                time.sleep(0.02)
            deliverers.kill_some(conn, rng)
        receiver.answer = lambda _number, _seen: 200
        _settled(conn, len(hooks) * told)
        return _wrong(conn, receiver, hooks, told), len(receiver.seen) - len({seen.id for seen in receiver.seen})


def _settled(conn, deliveries, within_s=240.0):
    """Wait until all is delivered, one by one for each receiver."""
    until = time.monotonic() + within_s
    while True:
        (delivered,) = conn.execute("select count(*) from webhook_deliveries where state = 'delivered'").fetchone()
        if delivered == deliveries:
            return
        assert time.monotonic() < until, f"{delivered} of {deliveries}"
        time.sleep(0.1)


def _wrong(conn, receiver, hooks, told):
    """Compare received with published events."""
    wrong = []
    for number in range(len(hooks)):
        came = [seen for seen in receiver.seen if seen.path.endswith(f"/{number}")]
        ids = {}
        for seen in came:
            ids.setdefault(seen.event["data"]["id"], set()).add(seen.id)
        if missing := {str(each) for each in range(told)} - set(ids):
            wrong.append(("missing", number, sorted(missing)))
        if several := {event: names for event, names in ids.items() if len(names) > 1}:
            wrong.append(("several ids", number, several))
        first = list(dict.fromkeys(int(seen.event["data"]["id"]) for seen in came))
        if first != sorted(first):
            wrong.append(("out of order", number, first))
    rows = conn.execute("select count(*), sum(waiting) from webhooks").fetchone()
    if rows != (len(hooks), 0):
        wrong.append(("waiting", rows))
    return wrong
