"""The examples of the documentation, run as they stand there against a real server."""

import json
import os
import re
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from websockets.sync.client import connect

from api.openapi import document as openapi
from api.site.reference import Reference
from benchmarks.api.data import Size, load
from benchmarks.api.questions import market_id, wallet
from sql import database
from tests.api.conftest import generous, serving
from tests.api.listening import trades, write
from upstream.sandbox.server import Sandbox

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOKEN = "a token for the examples of the documentation"
MAILED_TOKEN = "q7ZrTk2mVxW0"  # of the example
START_MS = 1_795_000_000_000
EXPORT = "markets-2026-11-20-0.csv"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(text, *languages):
    return [(language, block) for language, block in BLOCK.findall(text) if language in languages]


class World:
    """A server with a simulated exchange's data behind it, and a key to it."""

    def __init__(self, server, conn, key):
        self.server, self.conn, self.key = server, conn, key
        self.webhook = self.delivery = ""

    def run(self, script, **environment):
        """Run a script of the shell's; it fails where any of its commands does."""
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=ROOT,
            env={
                **os.environ,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "DATABASE_URL": self.server.database_url,
                "KEY": self.key,
                "TOKEN": TOKEN,
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )


@pytest.fixture(scope="module")
def world(new_database, tmp_path_factory):
    with Sandbox(simulate=11, rate=500, start_ms=START_MS, hold=True) as exchange, new_database() as url:
        exchange.call(lambda: exchange.source.advance(START_MS + 5_000))
        load(url, Size(markets=200, trades=5_600), lambda _: None)
        day = tmp_path_factory.mktemp("exports") / "markets/2026-11-20"
        day.mkdir(parents=True)
        (day / EXPORT).write_text("market_id\n")
        told = {
            "PRESAGE_EXPORTS_DIR": str(day.parents[1]),
            "PRESAGE_GAMMA_URL": exchange.gamma_url,
            "PRESAGE_DATA_API_URL": exchange.data_api_url,
            "PRESAGE_DEBUG_TOKEN": TOKEN,
            "PRESAGE_SMTP_URL": "smtp://127.0.0.1:1",  # nothing is to be sent
            "PRESAGE_MAIL_FROM": "presage@example.com",
            "PRESAGE_PUBLIC_SITE_URL": "https://example.com",
        }
        with serving(url, **told) as server, database.connect(url, autocommit=True) as conn:
            conn.execute(
                """insert into exports (topic, day, part, format, file, rows, bytes, sha256, complete, created_at)
                values ('markets', '2026-11-20', 0, 'csv', %s, 0, 10, sha256('market_id\n'), true, now())""",
                [f"markets/2026-11-20/{EXPORT}"],
            )
            world = World(server, conn, generous(conn, "someone@example.com"))
            conn.execute(
                """insert into account_tokens (token_hash, account_id, purpose, expires_at)
                select sha256(%s), min(account_id), 'verify', now() + interval '1 hour' from accounts""",
                [MAILED_TOKEN],
            )
            made = world.run(
                f"""curl -fsS -H "X-API-Key: $KEY" {server.url}/v1/webhooks -H 'Content-Type: application/json' \
                -d '{{"url": "https://example.com/hook", "events": ["market.resolved"]}}'"""
            )
            world.webhook = json.loads(made.stdout)["id"]
            conn.execute("delete from webhook_deliveries")
            conn.execute("update webhooks set challenge = null, verified_at = now(), waiting = 0, due_at = null")
            world.run(f'curl -fsS -X POST -H "X-API-Key: $KEY" {server.url}/v1/webhooks/{world.webhook}/test')
            world.delivery = conn.execute(
                """update webhook_deliveries set state = 'failed', next_at = null, ended_at = now()
                returning delivery_id::text"""
            ).fetchone()[0]
            yield world


@pytest.fixture
def events(world):
    """Something is traded twice a second, for whoever listens."""
    over = threading.Event()

    def trading():
        with database.connect(world.server.database_url, autocommit=True) as conn:
            while not over.wait(0.3):
                write(conn, trades(3))

    thread = threading.Thread(target=trading)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("events")
def test_the_first_steps_can_be_walked(world):
    text = (DOCS / "start.md").read_text()
    script = []
    for language, block in blocks(text, "sh", "python"):
        if language == "sh":
            script.append(block)
        else:
            script.append(f"export KEY\npython - <<'END'\n{block}END\n")
    # doctor says what it finds by its status as well: a server of tests is not in order in all
    whole = (
        "\n".join(script)
        .replace("http://localhost:8080", world.server.url)
        .replace("presage doctor", "presage doctor || true")
    )

    done = world.run(whole)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "200 markets; credits left: " in done.stdout
    assert len(re.findall(r"^\d+ (trade|price) ", done.stdout, re.MULTILINE)) == 3
    for _, query in blocks(text, "sql"):
        assert world.conn.execute(query).rowcount > 0


REFERENCE = Reference(openapi.document())
# Last: what ends what the others need.
LAST = ("remove_webhook", "rotate_key")
NAMES = sorted(REFERENCE.operations, key=lambda name: (name in LAST, name))


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_an_endpoint_is_answered(world, name):
    operation = REFERENCE.operations[name]
    page = REFERENCE.markdown(operation, world.server.url)
    ((_, example),) = blocks(page.partition("## Example")[2].partition("\n## ")[0], "sh")
    example = filled(world, operation, example)

    if example.startswith("websocat"):
        address = re.search(r"'(ws://[^']*api_key=)'", example)[1]
        with connect(address + world.key) as socket:
            socket.send("PING" if name == "market_channel_replay" else '{"action": "ping"}')
            assert "pong" in next(said.lower() for said in socket if "pong" in said.lower())
        return
    done = world.run(example.rstrip() + " -o /dev/null -w '%{http_code}'")

    assert done.returncode == 0, done.stderr
    assert int(done.stdout[-3:]) < 300, f"{example} {world.run(example).stdout[:500]}"


def filled(world, operation, example):
    """Put names that there are for those in the example."""
    lately = datetime.now(UTC) - timedelta(minutes=1)  # the document's moment may be yet to come
    example = example.replace("will-it-rain-tomorrow", market_id(1))
    example = example.replace("2026-11-21T12%3A00%3A00Z", f"{lately:%Y-%m-%dT%H:%M:%SZ}")
    named = {
        "ADDRESS": wallet(1),
        "SLUG": "category-3",
        "ID": "1" if operation.path.startswith("/v1/events/") else world.webhook,
        "DELIVERY_ID": world.delivery,
        "TOPIC": "markets",
        "DAY": "2026-11-20",
        "FILE": EXPORT,
    }
    for name, value in named.items():
        example = re.sub(rf"(?<=/){name}(?=[/'? \n]|$)", value, example)
    return example
