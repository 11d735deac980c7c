"""Writers, workers and the database are killed at random: every subscriber hears what was committed, once, in order."""

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
from tests.api.conftest import Server, generous
from tests.soak.stream_writer import WALLETS
from tests.soak.subscribers import Crowd, Row, drawn

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("PRESAGE_SOAK_SEED", "1"))
FAULTS = int(os.environ.get("PRESAGE_SOAK_STREAM_FAULTS", "200"))
WRITERS = 8
SUBSCRIBERS = 100
# What is committed is kept: kill -9 of the server is no power cut.
SETTINGS = {"fsync": "off", "full_page_writes": "off", "timescaledb.max_background_workers": "0"}


class Service:
    """A database, writers and an API of two workers, each of which may be killed."""

    def __init__(self, folder: Path, pause_s: float) -> None:
        self.cluster = Cluster(folder / "database", settings=SETTINGS)
        self.cluster.start()
        self.cluster.create_database("presage")
        self.url = self.cluster.url("presage")
        migrate.upgrade(self.url)
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
    """Two keys: the account of one watches three wallets, that of the other none."""
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
    """Kill so often; give what subscribers heard amiss, and how many messages they heard."""
    dice = random.Random(SEED)
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="presage-", dir=memory if memory.is_dir() else None) as folder:
        Path(folder).chmod(0o755)  # as root the server runs as another user
        service = Service(Path(folder), pause_s)
        try:
            service.server.wait()
            with service.connect() as conn:
                keys = keys_of(conn)
            crowd = Crowd(service.server.url, [drawn(dice, keys) for _ in range(SUBSCRIBERS)], SEED)
            crowd.start()
            ways = [service.kill_writer, service.kill_worker, service.kill_both_workers, service.kill_database]
            paused: dict[str, list[float]] = {way.__name__: [] for way in ways}
            again(service, crowd)
            for number in range(faults):
                time.sleep(dice.uniform(0, 0.8))
                way = ways[number % len(ways)]
                way(dice)
                paused[way.__name__].append(again(service, crowd))
            time.sleep(0.5)
            service.end_writing()
            crowd.restless = False
            with service.connect() as conn:
                rows = [
                    Row(*row)
                    for row in conn.execute("select seq, type, market_id, wallet from stream_events order by seq")
                ]
            assert [row.seq for row in rows] == list(range(1, len(rows) + 1)), "the sequence has holes"
            expected = [[row.seq for row in rows if each.wants(row)] for each in crowd.subscribers]
            behind_s = caught_up(crowd, expected)
            crowd.stop()
            connections = sum(each.connections for each in crowd.subscribers)
            messages = sum(len(each.heard) for each in crowd.subscribers)
            print(
                f"\nseed {SEED}: {len(rows):,} events, {messages:,} messages to {SUBSCRIBERS} subscribers, who left and"
                f" came back {connections - SUBSCRIBERS} times beside all cuts;"
                f" all had all {behind_s:.1f} s after the last write"
            )
            for name, seconds in paused.items():
                print(
                    f"{name}: {len(seconds)} times; someone heard again after {statistics.median(seconds):.2f} s"
                    f" (median), {max(seconds):.2f} s (most)"
                )
            amiss = [
                f"{difference(subscriber.heard, wanted)}; {subscriber.gaps}"
                for subscriber, wanted in zip(crowd.subscribers, expected, strict=True)
                if subscriber.heard != wanted or subscriber.gaps
            ]
        finally:
            log = service.stop()
    assert "Traceback" not in log, log[log.index("Traceback") :][:5000]
    return amiss, messages


def again(service: Service, crowd: Crowd, within_s: float = 60.0) -> float:
    """Wait until anyone hears of what was committed after what was done, and give the seconds."""
    began = time.monotonic()
    with service.connect() as conn:
        (head,) = conn.execute("select last_seq from stream_head").fetchone()
    while all(each.last <= head for each in crowd.subscribers):
        assert crowd.failed is None, crowd.failed
        assert time.monotonic() - began < within_s, f"nobody has heard anything for {within_s} s"
        time.sleep(0.02)
    return time.monotonic() - began


def caught_up(crowd: Crowd, expected: list[list[int]]) -> float:
    """Wait until everyone has had so many messages, or nothing moves any more, and give the seconds."""
    began = moved_at = time.monotonic()
    had = -1
    while time.monotonic() - moved_at < 30:
        assert crowd.failed is None, crowd.failed
        heard = [len(each.heard) for each in crowd.subscribers]
        if all(count >= len(wanted) for count, wanted in zip(heard, expected, strict=True)):
            break
        if sum(heard) != had:
            moved_at, had = time.monotonic(), sum(heard)
        time.sleep(0.05)
    for number, (each, wanted) in enumerate(zip(crowd.subscribers, expected, strict=True)):
        if len(each.heard) < len(wanted):
            print(f"subscriber {number}: {len(each.heard)} of {len(wanted)}, past {each.last}, {each.stream!r}")
    return time.monotonic() - began


def difference(heard: list[int], wanted: list[int]) -> str:
    lost, more = sorted(set(wanted) - set(heard)), sorted(set(heard) - set(wanted))
    doubled = len(heard) - len(set(heard))
    order = "in order" if heard == sorted(heard) else "out of order"
    return f"{len(wanted)} wanted; lost {lost[:10]}, unwanted {more[:10]}, {doubled} doubled, {order}"


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_doubled_when_ten_things_are_killed():
    amiss, messages = kill_many(10, pause_s=0.3)

    assert amiss == []
    assert messages > 0


@pytest.mark.soak
def test_nothing_is_lost_or_doubled_when_two_hundred_things_are_killed():
    amiss, messages = kill_many(FAULTS, pause_s=0.1)

    assert amiss == []
    assert messages > 0
