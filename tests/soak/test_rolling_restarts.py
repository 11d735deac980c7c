"""The API and the site are restarted one process at a time under load: no request fails, no event is missed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from cli.stack.ports import choose
from cli.stack.readiness import fetch
from sql import migrate
from tests import stream_rows
from tests.api.conftest import generous
from tests.patience import PATIENCE_S, until
from tests.processes import terminate
from tests.soak.rolling import HintReader, HttpClient
from tests.soak.stream_writer import MARKETS
from tests.soak.subscribers import Row, Subscriber, Subscribers
from tests.soak.test_stream_faults import caught_up, difference

ROOT = Path(__file__).parents[2]
RESTARTS = int(os.environ.get("PRESAGE_SOAK_RESTARTS", "100"))
SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
LISTING = '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
API_CALLS = [
    ("GET", "/v1/markets?limit=5", None),
    ("GET", "/v1/time", None),
    ("POST", "/v1/wallets/watch", '{"address":"0x%040x"}' % (1 << 100)),
    ("GET", "/v1/signals/top", None),
]
SITE_CALLS = [("GET", "/markets", None), ("GET", "/api/platform-stats", None), ("POST", "/api/mcp", LISTING)]
ENVIRONMENT = {
    "PRESAGE_SITE_REQUESTS_A_SECOND": "100000",
    "PRESAGE_API_WORKERS": "2",
}


@contextmanager
def rolling_stack(folder: Path, database_url: str, port: int, **environment: str):
    """Run the API and the site as `presage up` does; yield the file of what the supervisor says."""
    output = folder / "output"
    with output.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.soak.rolling_stack", str(folder), database_url, str(port)],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT, **environment},
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: process.poll() is not None or "up\n" in output.read_text(), within_s=3 * PATIENCE_S)
        assert process.poll() is None, output.read_text()
        yield output
    finally:
        terminate(process)


@contextmanager
def started(*threads):
    """Run threads, and stop them."""
    for each in threads:
        each.start()
    try:
        yield
    finally:
        for each in threads:
            each.stop()


def restart(folder: Path, *services: str) -> subprocess.CompletedProcess[str]:
    """Run `presage restart`."""
    return subprocess.run(
        [sys.executable, "-m", "cli.main", "restart", *services],
        cwd=ROOT,
        env={**os.environ, "PRESAGE_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def restart_many(folder: Path, database_url: str, restarts: int, *, pause_s: float) -> list[object]:
    """Restart API and site in turns, `restarts` times together, under load; return what failed or was missed."""
    dice = random.Random(SEED)
    with psycopg.connect(database_url, autocommit=True) as conn:
        key = generous(conn, "load@example.com", max_connections=1000, credits_month=10**12)
    port = choose(None).api
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.soak.stream_writer", database_url, "1", str(pause_s)], cwd=ROOT
    )
    took: list[tuple[str, float, float]] = []
    try:
        with ExitStack() as stack:
            stack.enter_context(rolling_stack(folder, database_url, port))
            url, site = f"http://127.0.0.1:{port}", port + 5
            wants = [
                Subscriber(key, frozenset(), None, None, frozenset()),
                Subscriber(key, frozenset(), frozenset(dice.sample(MARKETS, 5)), None, frozenset()),
                Subscriber(key, frozenset(), None, frozenset({"trade", "price"}), frozenset()),
            ]
            reading = Subscribers(url, wants, SEED)
            reading.reconnecting = False
            hinted = HintReader(f"ws://127.0.0.1:{port}/stream?api_key={key}", 0)
            clients = [
                HttpClient(port, API_CALLS, key, pause_s / 4, keep=True),
                HttpClient(port, API_CALLS[1:], key, pause_s, keep=False),
                HttpClient(port, API_CALLS[:1], key, 1.5, keep=True),
                HttpClient(site, SITE_CALLS, key, pause_s / 2, keep=True),
                HttpClient(site, SITE_CALLS[1:], key, pause_s, keep=False),
                HttpClient(site, SITE_CALLS[1:], key, 1.5, keep=True),
            ]
            stack.enter_context(started(reading, hinted, *clients))
            until(lambda: all(each.connections for each in wants) and hinted.received)
            connected = sum(each.connections for each in wants)
            for number in range(restarts):
                service = ("api", "site")[number % 2]
                began = time.monotonic()
                done = restart(folder, service)
                took.append((service, began, time.monotonic()))
                assert done.returncode == 0, f"restart {number + 1}: {done.stderr}"
                assert "killed" not in done.stdout, done.stdout
                time.sleep(pause_s)
            writer.kill()
            writer.wait()
            with psycopg.connect(database_url, autocommit=True) as conn:
                rows = [Row(row.seq, row.type, row.market_id, row.wallet) for row in stream_rows.rows(conn)]
            expected = [[row.seq for row in rows if each.wants(row)] for each in wants]
            caught_up(reading, expected)
            with suppress(AssertionError):  # what is missing is reported below
                until(lambda: hinted.failed or len(hinted.received) >= len(expected[0]))
    finally:
        writer.kill()
        writer.wait()
    requests = [request for client in clients for request in client.requests]
    failed = [request for request in requests if request.error]
    during = sorted(
        request.ended - request.began
        for request in requests
        if any(began < request.ended and request.began < ended for _, began, ended in took)
    )
    p50_ms, p99_ms, most_ms = (1000 * during[len(during) * part // 1000] for part in (500, 990, 999))
    print(
        f"\n{restarts} restarts, {sum(ended - began for _, began, ended in took) / restarts:.1f} s each:"
        f" {len(requests):,} requests, {len(failed)} failed; of {len(during):,} during restarts"
        f" p50 {p50_ms:.1f} ms, p99 {p99_ms:.1f} ms, p99.9 {most_ms:.0f} ms"
        f"\n{len(rows):,} events, {sum(map(len, expected)) + len(expected[0]):,} messages to {len(wants) + 1} streams,"
        f" which reconnected {sum(each.connections for each in wants) - connected + len(hinted.closed)} times"
    )
    lost = [
        difference(each.received, want) for each, want in zip(wants, expected, strict=True) if each.received != want
    ]
    lost += [difference(hinted.received, expected[0])] if hinted.received != expected[0] else []
    assert {code for code, _ in hinted.closed} == {1012}
    assert len(hinted.closed) >= (restarts + 1) // 2  # one that reconnects may meet the old process again
    return [*failed, *([hinted.failed] if hinted.failed else []), *lost, *(gap for each in wants for gap in each.gaps)]


@pytest.mark.soak
def test_no_request_fails_and_no_event_is_missed_in_a_hundred_restarts(tmp_path, database_url):
    assert restart_many(tmp_path, database_url, RESTARTS, pause_s=0.02) == []


@pytest.mark.timeout(300)
def test_a_next_process_that_does_not_start_leaves_the_old_one_serving_until_one_does(tmp_path, database_url):
    broken, port = tmp_path / "broken", choose(None).api
    broken.mkdir()
    health = f"http://127.0.0.1:{port}/health"
    with rolling_stack(tmp_path, database_url, port, PRESAGE_API_WORKERS="1", PYTHONPATH=f"{broken}:{ROOT}") as output:
        before = fetch(health)["instance"]
        (broken / "sitecustomize.py").write_text(
            "import os\nprint('no such module: weather', flush=True)\nos._exit(3)\n"
        )

        done = restart(tmp_path)  # the API, and after it the site

        assert done.returncode == 1
        assert "the next process of api ended while starting" in done.stderr
        assert "no such module: weather" in done.stderr
        assert "The old one serves on." in done.stderr
        assert "site" not in done.stdout
        assert fetch(health)["instance"] == before
        assert "drained" not in output.read_text()

        (broken / "sitecustomize.py").unlink()
        done = restart(tmp_path, "api")

        assert done.returncode == 0, done.stderr
        assert fetch(health)["instance"] != before


def test_a_restart_of_what_does_not_run_says_so(tmp_path):
    done = restart(tmp_path, "api")

    assert (done.returncode, done.stderr) == (1, f"presage: nothing runs on {tmp_path}\n")


def test_a_release_is_not_started_on_the_schema_of_the_one_before(tmp_path, database_url):
    migrate.downgrade(database_url, "-1")
    (tmp_path / "running.json").write_text(json.dumps({"database_url": database_url}))

    done = restart(tmp_path, "api")

    assert (done.returncode, "run `presage migrate` first" in done.stderr) == (1, True)
