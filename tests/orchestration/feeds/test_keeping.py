"""Which runs a keeper takes for alive."""

import os
import subprocess
import time

import pytest

from config import settings
from orchestration.feeds import keeping
from orchestration.feeds.lease import LeaseRow


@pytest.fixture
def process():
    """A process that goes on until it is told to end."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as started:
        yield started


def lease(pid, host, *, taken_ago_s=0.0, clock_ahead_ms=0):
    taken_s = time.time() - taken_ago_s - clock_ahead_ms / 1000  # by the database's clock
    return LeaseRow("a", "standby", True, taken_s, 90.0, {"clock_ahead_ms": clock_ahead_ms}, pid, host)


def test_a_process_lives_or_has_ended_and_nothing_is_known_of_other_hosts(process):
    here = settings.get().host

    assert keeping._lives(lease(process.pid, here)) is True
    assert keeping._lives(lease(process.pid, "another")) is None
    assert keeping._lives(lease(None, here)) is None

    process.stdin.close()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert keeping._lives(lease(process.pid, here)) is False, "it has ended, and nobody has read its exit status"
    process.wait()
    assert keeping._lives(lease(process.pid, here)) is False


@pytest.mark.parametrize("clock_ahead_ms", [-3_600_000, 0, 3_600_000])
def test_a_process_that_began_after_the_lease_was_taken_is_not_known_to_be_it(process, clock_ahead_ms):
    here = settings.get().host

    assert keeping._lives(lease(process.pid, here, clock_ahead_ms=clock_ahead_ms)) is True
    assert keeping._lives(lease(process.pid, here, taken_ago_s=60, clock_ahead_ms=clock_ahead_ms)) is None


def test_a_process_that_may_not_be_looked_at_is_not_known(monkeypatch):
    def refuse(_):
        raise PermissionError

    monkeypatch.setattr(keeping.Path, "read_text", refuse)
    assert keeping._lives(lease(os.getpid(), settings.get().host)) is None
