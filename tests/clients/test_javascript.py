"""The documentation's JavaScript, run unchanged."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from sql import database
from tests import stream_rows
from tests.api.conftest import generous, serving
from tests.api.listening import trades, write
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
WALLET = b"\xcc" * 20


@pytest.fixture(scope="module")
def server(new_database):
    with new_database() as url, serving(url) as running:
        yield running


@pytest.fixture
def conn(server):
    with database.connect(server.database_url, autocommit=True, name="presage test") as conn:
        yield conn


@pytest.fixture
def key(conn):
    return generous(conn, "someone@example.com")


@pytest.fixture
def snippet(tmp_path):
    found = re.findall(r"```js\n(export function follow.*?)```", (ROOT / "docs/stream.md").read_text(), re.DOTALL)
    assert len(found) == 1
    file = tmp_path / "snippet.mjs"
    file.write_text(found[0])
    return file


def follow(snippet, server, key, *, after, count):
    return subprocess.Popen(
        ["node", str(ROOT / "tests/clients/follow.mjs"), str(snippet), server.url, key, str(after), str(count)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_snippet_hears_everything_once_though_its_worker_is_killed(snippet, server, conn, key):
    written = write(conn, [*trades(20), ("price", None, {}), ("wallet_activity", None, {}, WALLET)])
    with follow(snippet, server, key, after=written[4], count=30) as node:
        guard = threading.Timer(PATIENCE_S, node.kill)
        guard.start()
        try:
            heard = [json.loads(node.stdout.readline()) for _ in range(16)]
            os.kill(server.workers()[0], signal.SIGKILL)
            written += write(conn, trades(14))
            heard += [json.loads(line) for line in node.stdout]
            assert node.wait(PATIENCE_S) == 0
        finally:
            guard.cancel()

    assert [message["seq"] for message in heard] == [*written[5:20], *written[21:]]
    assert heard[15]["type"] == "wallet_activity"


def test_the_snippet_tells_of_a_hole(snippet, server, conn, key):
    written = write(conn, trades(10))
    stream_rows.remove(conn, written[:5].__contains__)
    with follow(snippet, server, key, after=written[1], count=6) as node:
        guard = threading.Timer(PATIENCE_S, node.kill)
        guard.start()
        try:
            heard = [json.loads(node.stdout.readline()) for _ in range(6)]
            more = write(conn, trades(1))
            heard.append(json.loads(node.stdout.readline()))
        finally:
            guard.cancel()

    assert [message.get("seq") for message in heard] == [*written[5:], None, *more]
    assert heard[5] == {"gap": [written[1], written[-1]]}
