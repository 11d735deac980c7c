"""Third-party clients of the stream and of the exchange work unchanged."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from sql import database
from tests.api.conftest import generous, serving
from tests.api.listening import trades, write
from tests.api.replay.past import HASHES, MS, lived
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    import psycopg

    from tests.api.conftest import Server

ROOT = Path(__file__).parents[2]
EXCHANGE = ROOT / ".venv-exchange"


@pytest.fixture(scope="module")
def served(new_database):
    """A server with stored history, its key, and the market of that history."""
    with new_database() as url, database.connect(url, autocommit=True) as conn, serving(url) as server:
        yield Served(server, generous(conn, "someone@example.com"), lived(conn), conn)


class Served(NamedTuple):
    server: Server
    key: str
    market: dict[str, Any]
    conn: psycopg.Connection[Any]

    def replay(self, speed: float = 0) -> str:
        said = f"from={MS - 1000}&to={MS + 130_000}&speed={speed}&api_key={self.key}"
        return f"ws://127.0.0.1:{self.server.port}/replay/ws/market?{said}"


@contextmanager
def running(*command):
    """Run a program with an open stdin; kill it after a timeout."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        guard = threading.Timer(PATIENCE_S, process.kill)
        guard.start()
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def wscat(url, said):
    return running(ROOT / "node_modules/.bin/wscat", "--no-color", "-c", url, "-x", said, "-w", str(int(PATIENCE_S)))


def heard(process, enough):
    """Return the JSON messages that a program prints, one per line, until there are enough."""
    found = []
    for line in process.stdout:
        if (at := min((line.find(mark) for mark in "[{" if mark in line), default=-1)) >= 0:
            found.append(json.loads(line[at:]))
        if enough(found):
            break
    return found


def test_wscat_follows_the_stream(served):
    written = write(served.conn, trades(3))
    said = json.dumps({"action": "subscribe", "types": ["trade"], "resume_from": written[0] - 1})
    with wscat(served.server.stream(served.key), said) as process:
        messages = heard(process, lambda found: found and found[-1]["type"] == "replay_completed")

    assert [message["seq"] for message in messages if message["type"] == "trade"] == written


def test_wscat_hears_the_market_channel_of_the_past(served):
    said = json.dumps({"type": "market", "assets_ids": served.market["tokens"]})
    with wscat(served.replay(), said) as process:
        frames = heard(process, lambda found: len(found) == 8)

    assert frames[0] == []
    kinds = ["book", "price_change", "book", "price_change", "last_trade_price", "tick_size_change", "price_change"]
    assert [frame["event_type"] for frame in frames[1:]] == kinds


@pytest.fixture(scope="session")
def exchange_client():
    """Python with clients of the exchanges: they need other libraries than ours, so they have their own environment."""
    subprocess.run(["make", "-s", f"{EXCHANGE.name}/.installed"], cwd=ROOT, check=True, timeout=300)
    return EXCHANGE / "bin/python"


@pytest.mark.timeout(400)  # the first time the client is installed
def test_the_client_of_the_exchange_plays_the_past_as_it_is(served, exchange_client):
    script = ROOT / "tests/clients/exchange_client.py"
    with running(exchange_client, script, served.replay(), *served.market["tokens"]) as process:
        events = [json.loads(line) for line in process.stdout]

    best = "best_bid_ask"
    assert [event["type"] for event in events] == [
        *("book", best, "price_change", best, "book", best, "price_change", best),
        *("last_trade_price", "tick_size_change", "price_change", best),
    ]
    (change,) = events[2]["payload"]["price_changes"]
    assert (change["price"], change["size"], change["best_bid"], change["hash"]) == ("0.41", "3", "0.41", HASHES[1])
    assert events[8]["payload"]["transaction_hash"] == "0x" + "ab" * 32
