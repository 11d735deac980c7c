"""Clients that mean ill, or know no better: the others hear of events as soon as before, and memory stays bounded."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sql import database
from tests.api.conftest import generous, serving
from tests.api.listening import listening, write

ROOT = Path(__file__).parents[2]
MEASURED_S = float(os.environ.get("PRESAGE_SOAK_HOSTILE_S", "10"))
PAGE_KB = resource.getpagesize() // 1024


def half_open(address, count, stack):
    for _ in range(count):
        connection = stack.enter_context(socket.create_connection(address, timeout=10))
        connection.sendall(b"GET /stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n")
        yield connection


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KB / 1024


def waited(client, seconds):
    """How long each event took from the writer to a client, in milliseconds, sorted."""
    found, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        message = client.next(30)
        if message["type"] == "trade":
            found.append((time.time() - message["data"]["at"]) * 1000)
    return sorted(found)


def quantile(values, share):
    return values[int(share * (len(values) - 1))]


@pytest.mark.soak
def test_others_hear_as_soon_as_before_whatever_some_clients_do(database_url, conn):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    key = generous(conn, "someone@example.com", max_connections=2000)
    stop = threading.Event()

    def keep_writing():
        with database.connect(database_url, autocommit=True) as other:
            while not stop.wait(0.02):
                write(other, [("trade", None, {"at": time.time(), "padding": "x" * 200})] * 10)

    try:
        with serving(database_url) as server, contextlib.ExitStack() as stack:
            address, path = ("127.0.0.1", server.port), f"/stream?api_key={key}"
            writer = threading.Thread(target=keep_writing, daemon=True)
            writer.start()
            client = stack.enter_context(listening(server.stream(key)))
            waited(client, 2)
            before, memory = waited(client, MEASURED_S), resident_mb(server.workers()[0])

            idle = list(half_open(address, 1000, stack))
            hostile = subprocess.Popen(
                [sys.executable, "-m", "tests.soak.hostile", str(server.port), path],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            slow = list(half_open(address, 50, stack))
            after = []
            for _ in range(int(MEASURED_S)):
                for one in slow:  # slowloris: a little more of a header each second
                    with contextlib.suppress(OSError):
                        one.sendall(b"X-A: b\r\n")
                after += waited(client, 1)
            after.sort()
            peak = resident_mb(server.workers()[0])
            times = json.loads(hostile.communicate(timeout=60)[0])
            stop.set()
            writer.join()
        print(
            f"\nbefore: p50 {quantile(before, 0.5):.1f} ms, p99 {quantile(before, 0.99):.1f} ms, {memory:.0f} MB;"
            f" with {len(idle)} half-open handshakes, {len(slow)} slow ones and"
            f" {times}:"
            f" p50 {quantile(after, 0.5):.1f} ms, p99 {quantile(after, 0.99):.1f} ms, {peak:.0f} MB"
        )
        assert all(times.values())
        assert quantile(after, 0.5) < quantile(before, 0.5) + 100
        assert quantile(after, 0.99) < quantile(before, 0.99) + 1000  # the attackers take their share of the machine
        assert peak < memory + 200
    finally:
        stop.set()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
