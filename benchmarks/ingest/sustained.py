"""Sustained load: the sandbox's real sockets through the live feed into the database, measuring lag and memory."""

from __future__ import annotations

import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.database import fresh
from benchmarks.figures import Target, figure
from benchmarks.harness import slope
from cli.stack.plan import ROOT
from cli.stack.ports import choose
from cli.stack.processes.program import Program
from cli.stack.processes.supervisor import Supervisor
from cli.stack.readiness import answers, fetch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.database import Bench
    from benchmarks.figures import Figure
    from benchmarks.harness import Options

RATE = 5000  # events a second
MARKETS = 200
WARM_UP_S = 20.0
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Send events at the rate for the configured time."""
    with fresh(report) as bench, Supervisor(report, restart=False) as supervisor:
        port = choose(None).sandbox
        exchange = f"127.0.0.1:{port}"
        environment = {
            "DATABASE_URL": bench.url,
            "PRESAGE_GAMMA_URL": f"http://{exchange}/gamma",
            "PRESAGE_CLOB_URL": f"http://{exchange}/clob",
            "PRESAGE_DATA_API_URL": f"http://{exchange}/data",
            "PRESAGE_CLOB_SOCKET_URL": f"ws://{exchange}/ws/market",
            "PRESAGE_SOURCE": "simulated",
        }
        status = f"http://{exchange}/sandbox/status"
        sandbox = Program(
            "sandbox",
            [
                *(sys.executable, "-m", "upstream.sandbox", "--port", str(port), "--simulate", "1"),
                *("--rate", str(RATE), "--markets", str(MARKETS)),
            ],
            bench.folder / "sandbox.log",
            directory=ROOT,
            is_ready=lambda: answers(status),
        )
        feed = Program(
            "feed",
            [sys.executable, "-m", "orchestration.ingest"],
            bench.folder / "feed.log",
            environment=environment,
            directory=ROOT,
            is_ready=lambda: leads(bench.url),
        )
        supervisor.start(sandbox)
        supervisor.wait("sandbox")
        discover(bench.url, f"http://{exchange}/gamma")
        supervisor.start(feed)
        supervisor.wait("feed")
        yield from measure(bench, supervisor, feed, status, seconds=options.seconds, report=report)


def measure(
    bench: Bench, supervisor: Supervisor, feed: Program, status: str, *, seconds: float, report: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure for the configured time, once the feed has caught up."""
    from orchestration.ingest import lag
    from sql.database import connect
    from sql.queries import figures as queries

    time.sleep(WARM_UP_S)
    since, began, before = datetime.now(UTC), time.monotonic(), fetch(status)
    memory: list[tuple[float, float]] = []
    with connect(bench.url, autocommit=True) as conn:
        rows_before = stored(conn)
        while time.monotonic() - began < seconds:
            time.sleep(1)
            supervisor.check_started()
            memory.append(((time.monotonic() - began) / 60, resident_mb(feed.pid or 0)))
            if len(memory) % 30 == 0:
                report(f"{len(memory)} s: {memory[-1][1]:.0f} MB")
        took, after = time.monotonic() - began, fetch(status)
        rows = stored(conn) - rows_before
        time.sleep(6)  # for the feed's last figures, which it writes every few seconds
        counts = lag.merged(row[0] for row in queries.lag_counts(conn, since=since))
    sent = sum(after["messages"].values()) - sum(before["messages"].values())
    p50, p99 = lag.quantile(counts, 0.5), lag.quantile(counts, 0.99)
    shown = [each for each in memory if each[0] * 60 >= min(60.0, took / 2)]  # after its buffers have grown to size
    yield figure("events sent by the exchange", sent / took, "events/s", target=Target("value", ">=", RATE * 0.98))
    yield figure("rows committed", rows / took, "rows/s")
    yield figure("lag p50, exchange to commit", (p50 or 0) / 1000, "s")
    lost = float("inf") if p99 is None else p99 / 1000
    yield figure("lag p99, exchange to commit", lost, "s", target=Target("value", "<", 1.0))
    yield figure("memory of the feed", memory[-1][1], "MB")
    yield figure("growth of it", slope(shown), "MB/min", target=Target("value", "<", 1.0))


def discover(url: str, gamma_url: str) -> None:
    """Load the catalogue, as discovery does."""
    from config import settings
    from orchestration.markets.discovery import Discovery
    from sql.database import connect
    from upstream.polymarket.gamma.client import Gamma
    from upstream.polymarket.gamma.listings import GammaListings
    from upstream.transport.http import Client

    with connect(url, autocommit=True) as conn:
        simulated = settings.get().model_copy(update={"source": "simulated"})
        Discovery(conn, GammaListings(Gamma(Client(), gamma_url)), simulated).scan_open()


def leads(url: str) -> bool:
    """Return whether a run is leader and its books are ready."""
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=2) as conn:
            return conn.execute("select from feed_leases where role = 'leader' and ready").fetchone() is not None
    except psycopg.Error:
        return False


def stored(conn: Any) -> int:
    """Return the number of rows of the time series."""
    query = "select (select count(*) from trades) + (select count(*) from book_events) + (select count(*) from quotes)"
    return int(conn.execute(query).fetchone()[0])


def resident_mb(pid: int) -> float:
    """Return a process's resident memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KB / 1024
