"""Writers, workers and the database are killed at random: every subscriber gets what was committed, once, in order."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from sql import migrate
from sql.embedded import Cluster
from tests import roles, stream_rows
from tests.api.conftest import Server, generous
from tests.soak.stream_writer import WALLETS
from tests.soak.subscribers import Row, Subscribers, random_subscriber

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
FAULTS = int(os.environ.get("PRESAGE_SOAK_STREAM_FAULTS", "200"))
WRITERS = 8
SUBSCRIBERS = 100
# Committed data is kept: kill -9 of the server is no power cut.
SETTINGS = {"fsync": "off", "full_page_writes": "off", "timescaledb.max_background_workers": "0"}


class Service:
    """A database, writers and an API with two workers, each of which may be killed."""

    def __init__(self, folder: Path, pause_s: float) -> None:
        self.cluster = Cluster(folder / "database", settings=SETTINGS)
        self.cluster.start()
        self.cluster.create_database("presage")
        self.url = self.cluster.url("presage")
        migrate.upgrade(self.url)
        with self.connect() as conn:
            roles.ensure(conn, self.url)
        self.pause_s = pause_s
        self.seeds = iter(range(SEED * 1000, SEED * 1000 + 100_000))
        self.writers = [self._writer() for _ in range(WRITERS)]
        self.server = Server(self.url, workers=2)

    def connect(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True, connect_timeout=5)

    def kill_writer(self, dice: random.Random) -> None:
        number = dice.randrange(WRITERS)
        self.writers[number].kill()
        self.writers[number].wait()
        self.writers[number] = self._writer()

    def kill_worker(self, dice: random.Random) -> None:
        if workers := self.server.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(workers), signal.SIGKILL)

    def kill_both_workers(self, dice: random.Random) -> None:
        for worker in self.server.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)

    def kill_database(self, dice: random.Random) -> None:
        os.kill(self.cluster.pid, signal.SIGKILL)
        time.sleep(dice.uniform(0, 0.3))
        self.cluster.start()

    def end_writing(self) -> None:
        for writer in self.writers:
            writer.kill()
            writer.wait()

    def stop(self) -> str:
        self.end_writing()
        log = self.server.stop()
        self.cluster.erase()
        return log

    def _writer(self) -> subprocess.Popen:
        arguments = [self.url, str(next(self.seeds)), str(self.pause_s)]
        return subprocess.Popen([sys.executable, "-m", "tests.soak.stream_writer", *arguments], cwd=ROOT)


def keys_of(conn) -> dict[str, frozenset[bytes]]:
    """Create two API keys: one account watches three wallets, the other none."""
    watching = generous(conn, "watcher@example.com", max_connections=1000)
    for wallet in WALLETS[:3]:
        conn.execute(
            "insert into wallets_watched (account_id, wallet, blocks, watched_at)"
            " select account_id, %s, '{[0,)}', now() - interval '1 h'"
            " from accounts where email = 'watcher@example.com'",
            [wallet],
        )
    other = generous(conn, "other@example.com", max_connections=1000)
    return {watching: frozenset(WALLETS[:3]), other: frozenset()}


def kill_many(faults: int, pause_s: float) -> tuple[list[str], int]:
    """Kill parts `faults` times; return subscribers' deviations, and the number of messages received."""
    dice = random.Random(SEED)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="presage-", dir=memory if memory.is_dir() else None) as folder:
        Path(folder).chmod(0o755)  # as root the server runs as another user
        service = Service(Path(folder), pause_s)
        try:
            service.server.wait()
            with service.connect() as conn:
                keys = keys_of(conn)
            subscribers_thread = Subscribers(
                service.server.url, [random_subscriber(dice, keys) for _ in range(SUBSCRIBERS)], SEED
            )
            subscribers_thread.start()
            ways = [service.kill_writer, service.kill_worker, service.kill_both_workers, service.kill_database]
            paused: dict[str, list[float]] = {way.__name__: [] for way in ways}
            until_received(service, subscribers_thread)
            for number in range(faults):
                time.sleep(dice.uniform(0, 0.8))
                way = ways[number % len(ways)]
                way(dice)
                paused[way.__name__].append(until_received(service, subscribers_thread))
            time.sleep(0.5)
            service.end_writing()
            subscribers_thread.reconnecting = False
            with service.connect() as conn:
                rows = [Row(row.seq, row.type, row.market_id, row.wallet) for row in stream_rows.rows(conn)]
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1)), "the sequence has holes"
            expected = [[row.seq for row in rows if each.wants(row)] for each in subscribers_thread.subscribers]
            behind_s = caught_up(subscribers_thread, expected)
            subscribers_thread.stop()
            connections = sum(each.connections for each in subscribers_thread.subscribers)
            messages = sum(len(each.received) for each in subscribers_thread.subscribers)
            print(
                f"\nseed {SEED}: {len(rows):,} events, {messages:,} messages to {SUBSCRIBERS} subscribers, who"
                f" reconnected {connections - SUBSCRIBERS} times;"
                f" all had all {behind_s:.1f} s after the last write"
            )
            for name, seconds in paused.items():
                print(
                    f"{name}: {len(seconds)} times; first message after {statistics.median(seconds):.2f} s"
                    f" (median), {max(seconds):.2f} s (most)"
                )
            deviations = [
                f"{difference(subscriber.received, wanted)}; {subscriber.gaps}"
                for subscriber, wanted in zip(subscribers_thread.subscribers, expected, strict=True)
                if subscriber.received != wanted or subscriber.gaps
            ]
        finally:
            log = service.stop()
    assert "Traceback" not in log, log[log.index("Traceback") :][:5000]
    return deviations, messages


def until_received(service: Service, subscribers_thread: Subscribers, within_s: float = 60.0) -> float:
    """Wait until a subscriber receives an event committed after now; return the seconds."""
    began = time.monotonic()
    with service.connect() as conn:
        (head,) = conn.execute("select last_seq from stream_head").fetchone()
    while all(each.last <= head for each in subscribers_thread.subscribers):
        assert subscribers_thread.failed is None, subscribers_thread.failed
        assert time.monotonic() - began < within_s, f"nobody has received anything for {within_s} s"
        time.sleep(0.02)
    return time.monotonic() - began


def caught_up(subscribers_thread: Subscribers, expected: list[list[int]]) -> float:
    """Wait until all have received their messages, or nothing arrives any more; return the seconds."""
    began = moved_at = time.monotonic()
    had = -1
    while time.monotonic() - moved_at < 30:
        assert subscribers_thread.failed is None, subscribers_thread.failed
        received = [len(each.received) for each in subscribers_thread.subscribers]
        if all(count >= len(wanted) for count, wanted in zip(received, expected, strict=True)):
            break
        if sum(received) != had:
            moved_at, had = time.monotonic(), sum(received)
        time.sleep(0.05)
    for number, (each, wanted) in enumerate(zip(subscribers_thread.subscribers, expected, strict=True)):
        if len(each.received) < len(wanted):
            print(f"subscriber {number}: {len(each.received)} of {len(wanted)}, past {each.last}, {each.stream!r}")
    return time.monotonic() - began


def difference(received: list[int], wanted: list[int]) -> str:
    lost, more = sorted(set(wanted) - set(received)), sorted(set(received) - set(wanted))
    doubled = len(received) - len(set(received))
    order = "in order" if received == sorted(received) else "out of order"
    return f"{len(wanted)} wanted; lost {lost[:10]}, unwanted {more[:10]}, {doubled} doubled, {order}"


@pytest.mark.soak
def test_nothing_is_lost_or_doubled_when_two_hundred_things_are_killed():
    deviations, messages = kill_many(FAULTS, pause_s=0.1)

    assert deviations == []
    assert messages > 0
