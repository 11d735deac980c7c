"""Which runs a keeper takes for alive."""

import os
import subprocess

import pytest

from config import settings
from orchestration.feeds import keeping
from orchestration.feeds.lease import LeaseRow


@pytest.fixture
def ended_pid():
    """The process id of a process that has ended."""
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def lease(pid, host):
    return LeaseRow("a", "standby", True, 0.0, 90.0, {}, pid, host)


def test_a_process_is_known_to_live_only_on_this_host(ended_pid):
    here = settings.get().host

    assert keeping._lives(lease(os.getpid(), here))
    assert not keeping._lives(lease(ended_pid, here))
    assert not keeping._lives(lease(os.getpid(), "another"))
    assert not keeping._lives(lease(None, here))


def test_a_process_of_another_user_lives(monkeypatch):
    def kill(pid, signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    assert keeping._lives(lease(7, settings.get().host))
