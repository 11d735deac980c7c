"""Open streams counted over processes, without those of dead ones, even if their process id is reused."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from api.server.connections import Connections
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[3]
WORKER = """
import sys
from pathlib import Path
from api.server.connections import Connections

connections = Connections.at(lambda: Path(sys.argv[1]))
for line in sys.stdin:
    what, key, most = line.split()
    if what == "open":
        print(connections.acquire(int(key), int(most) or None), flush=True)
    elif what == "close":
        print(connections.release(int(key)), flush=True)
    else:
        print(connections.leave(), flush=True)
"""


class Worker:
    def __init__(self, path: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str, key: int = 0, most: int = 0) -> str:
        self.process.stdin.write(f"{what} {key} {most}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def opens(self, key: int, most: int) -> bool:
        return self.ask("open", key, most) == "True"

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "streams"


@pytest.fixture
def workers(path):
    started = []

    def start() -> Worker:
        started.append(Worker(path))
        return started[-1]

    yield start
    for worker in started:
        worker.end()


def test_a_key_has_so_many_over_all_workers_and_keys_do_not_share(workers):
    one, two = workers(), workers()

    assert [one.opens(7, 3), two.opens(7, 3), one.opens(7, 3), two.opens(7, 3)] == [True, True, True, False]
    assert two.opens(8, 3)

    one.ask("close", 7)
    assert two.opens(7, 3)
    assert not one.opens(7, 3)


def test_without_a_limit_there_is_none(path):
    connections = Connections.at(lambda: path)

    assert all(connections.acquire(1, None) for _ in range(500))
    assert not connections.acquire(1, 500)
    connections.leave()
    assert not path.exists()


def test_those_of_a_killed_worker_no_longer_count_and_only_those(workers):
    one, two = workers(), workers()
    assert all([one.opens(7, 4), one.opens(7, 4), two.opens(7, 4), two.opens(7, 4)])
    assert not two.opens(7, 4)

    one.kill()

    assert [two.opens(7, 4) for _ in range(3)] == [True, True, False]


def test_whoever_takes_a_dead_workers_place_begins_with_nothing(workers):
    one, two = workers(), workers()
    assert two.opens(1, 0)
    assert one.opens(7, 2)
    assert one.opens(7, 2)
    one.kill()

    three = workers()

    assert [three.opens(7, 2), three.opens(7, 2), three.opens(7, 2), two.opens(7, 2)] == [True, True, False, False]


def test_a_living_process_with_the_number_of_a_dead_worker_changes_nothing(workers):
    one, two = workers(), workers()
    assert one.opens(7, 1)
    one.process.send_signal(signal.SIGKILL)
    # Not reaped yet: its number is still taken, as it would be by another process that got it anew.
    until(lambda: two.opens(7, 1))
    os.kill(one.process.pid, 0)
    assert not two.opens(7, 1)


def test_many_keys_and_a_worker_that_comes_back_do_not_use_up_the_rows(path):
    for _ in range(3):
        connections = Connections.at(lambda: path)
        for key in range(500):
            assert connections.acquire(key, 1)
            assert not connections.acquire(key, 1)
        for key in range(500):
            connections.release(key)
        for key in range(800):
            assert connections.acquire(key + 5000, 1)
            connections.release(key + 5000)
        connections.leave()
    assert not path.exists()


def test_kills_at_random_moments_leave_the_counts_exact(workers):
    survivor = workers()
    assert survivor.opens(1, 0)
    for turn in range(15):
        victim = workers()
        victim.process.stdin.write("open 7 5\nclose 7 0\n" * 400)
        victim.process.stdin.flush()
        time.sleep(0.002 * turn)
        victim.kill()
    assert [survivor.opens(7, 5) for _ in range(6)] == [True] * 5 + [False]
