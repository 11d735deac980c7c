"""Webhooks benchmark: commit to receiver, and deliveries per second beside bare requests of the same library."""

from __future__ import annotations

import array
import asyncio
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks import database
from benchmarks.figures import Figure, Target, figure
from benchmarks.stream.writer import write
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.harness import Options

WEBHOOKS = 50
EVENTS = 100  # per webhook, at once
SLOW_RATE, SLOW_EVENTS = 20, 200  # one by one
TIMEOUT_S = 300.0
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # noqa: S105 (of nobody)


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:  # noqa: ARG001 (as all have it)
    """Run both measurements."""
    with database.fresh(report) as bench, connect(bench.url, autocommit=True) as conn:
        with _receiver(bench.folder / "slow") as (port, read), _deliverer(bench.url):
            _webhooks(conn, port, 1)
            committed = {}
            for _ in range(SLOW_EVENTS):
                seq = write(conn, 1)
                committed[seq] = time.monotonic_ns()
                time.sleep(1 / SLOW_RATE)
            _wait(conn)
            came = read()
        lags = sorted((came[seq][0] - committed[seq]) / 1e6 for seq in committed)
        report(f"{len(lags)} events, one by one")
        yield figure("webhooks, commit to receiver, p50", lags[len(lags) // 2], "ms", target=Target("value", "<", 300))
        yield figure("webhooks, commit to receiver, p99", lags[len(lags) * 99 // 100], "ms")

        conn.execute("delete from webhooks")
        with _receiver(bench.folder / "fast") as (port, read), _deliverer(bench.url):
            _webhooks(conn, port, WEBHOOKS)
            began = time.monotonic_ns()
            write(conn, EVENTS)
            _wait(conn)
            bare = asyncio.run(_bare(port))
            came = read()
        arrived = sorted(at for seq, times in came.items() if seq for at in times)
        rate = len(arrived) / ((arrived[-1] - began) / 1e9)
        report(f"{len(arrived)} deliveries to {WEBHOOKS} webhooks")
        yield figure("webhooks, deliveries a second", rate, "1/s", rival=("bare POSTs by httpcore", bare))


def _webhooks(conn: Any, port: int, count: int) -> None:
    conn.execute(
        """insert into accounts (email, app_name) values ('bench@example.com', 'bench')
        on conflict (email) do nothing"""
    )
    conn.execute(  # no budget, as what is measured is how fast messages are delivered
        """insert into api_keys (account_id, key_hash, prefix, tier)
        select account_id, sha256('bench'), 'bench', 'enterprise' from accounts on conflict (key_hash) do nothing"""
    )
    conn.execute(
        """insert into webhooks (account_id, url, events, secret, since_seq)
        select account_id, format('http://127.0.0.1:%%s/%%s', %s::int, n), '{trade}', %s, last_seq
        from accounts, stream_head, generate_series(1, %s) as n""",
        [port, SECRET, count],
    )
    conn.execute("update webhook_head set version = version + 1")


def _wait(conn: Any) -> None:
    """Wait until everything has been delivered."""
    until = time.monotonic() + TIMEOUT_S
    while time.monotonic() < until:
        left = conn.execute(
            """select h.last_seq < s.last_seq or exists (select from webhooks where waiting > 0)
            from webhook_head h, stream_head s"""
        ).fetchone()[0]
        if not left:
            return
        time.sleep(0.02)
    raise TimeoutError("not everything was delivered")


@contextmanager
def _receiver(file: Path) -> Iterator[tuple[int, Callable[[], dict[int, list[int]]]]]:
    """Run a receiver; yield its port, and a function that returns its records after SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.webhooks.receiver", str(file)], stdout=subprocess.PIPE, text=True
    )

    def read() -> dict[int, list[int]]:
        process.terminate()
        process.wait(30)
        noted = array.array("q")
        noted.frombytes(file.read_bytes())
        came: dict[int, list[int]] = {}
        for seq, at in zip(noted[::2], noted[1::2], strict=True):
            came.setdefault(seq, []).append(at)
        return came

    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), read
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _deliverer(url: str) -> Iterator[None]:
    """Run the delivery feed, already elected leader."""
    env = {
        **os.environ,
        "DATABASE_URL": url,
        "PRESAGE_WEBHOOK_NETWORKS": "127.0.0.0/8",
        "PRESAGE_WEBHOOK_ACCOUNT_CONCURRENCY": str(WEBHOOKS),
    }
    process = subprocess.Popen([sys.executable, "-m", "orchestration.webhooks"], env=env, stdout=subprocess.DEVNULL)
    try:
        with connect(url, autocommit=True) as conn:
            until = time.monotonic() + 60
            while time.monotonic() < until:
                led = conn.execute(
                    "select exists (select from feed_leases where role = 'leader' and pid = %s)", [process.pid]
                )
                if led.fetchone() == (True,):
                    break
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait(30)


async def _bare(port: int) -> float:
    """Send requests with the client library alone, unsigned and without a database; return requests per second."""
    import httpcore

    body = b'{"seq":0,"data":"' + b"x" * 400 + b'"}'
    async with httpcore.AsyncConnectionPool(max_connections=WEBHOOKS) as pool:

        async def one(number: int) -> None:
            for _ in range(EVENTS):
                await pool.request("POST", f"http://127.0.0.1:{port}/{number}", content=body)

        began = time.monotonic()
        await asyncio.gather(*(one(number) for number in range(WEBHOOKS)))
    return WEBHOOKS * EVENTS / (time.monotonic() - began)
