"""The receivers that the documentation shows accept what is delivered, and nothing else."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.orchestration.webhooks.challenging import pend
from tests.orchestration.webhooks.receiving import add_webhook, deliveries, new_secret, tell, trade
from tests.patience import until
from tests.ports import free_port

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/webhooks.md").read_text()
COMMANDS = {"python": [sys.executable, "-c"], "js": ["node", "--input-type=module", "-e"]}


def example(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]


@pytest.fixture(params=COMMANDS)
def shown(request):
    """Return a receiver as it is shown, its output, and its secret."""
    port = free_port()
    secret = new_secret()
    process = subprocess.Popen(
        [*COMMANDS[request.param], example(request.param)],
        cwd=ROOT,
        env={**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def listens():
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(listens)
        yield f"http://127.0.0.1:{port}/", secret, process
    finally:
        process.kill()
        process.communicate()


def test_a_receiver_as_shown_repeats_the_challenge(conn, delivering, shown):
    url, secret, _ = shown
    pend(conn, add_webhook(conn, url, secret=secret, verified_at=None))

    delivering(time.time).settle()

    assert conn.execute("select challenge, verified_at is not null from webhooks").fetchone() == (None, True)


def test_a_receiver_as_shown_takes_what_is_signed_once_and_refuses_the_rest(conn, delivering, shown):
    url, secret, process = shown
    webhook = add_webhook(conn, url, secret=secret)
    tell(conn, trade(1), trade(2))

    delivering(time.time).settle()
    conn.execute("update webhook_deliveries set state = 'waiting', next_at = now(), ended_at = null, attempts = 0")
    conn.execute("update webhooks set waiting = 2, due_at = now()")
    delivering(time.time).settle()

    answers = conn.execute("select log from webhook_deliveries order by number").fetchall()
    assert deliveries(conn, webhook) == [("delivered", 1, [200, 200])] * 2, answers
    forged = {"webhook-id": "msg_1", "webhook-timestamp": str(int(time.time())), "webhook-signature": "v1,AAAA"}
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        urllib.request.urlopen(urllib.request.Request(url, data=b"{}", headers=forged), timeout=60)
    assert refused.value.read() == b"No matching signature found"
    process.kill()
    lines = process.communicate()[0].splitlines()
    assert [line.split()[0] for line in lines] == ["trade", "trade"]
