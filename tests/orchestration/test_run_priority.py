"""What live data waits for goes before other runs where processor time is scarce."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from dagster._grpc import impl, server

from orchestration import code_server, run_priority
from orchestration.definitions import defs

URGENT = {"live", "live_kalshi", "discovery", "discovery_kalshi", "settlement", "delivery", "analysis", "aggregates"}


@pytest.fixture
def given(monkeypatch):
    """What was added to the niceness of this process."""
    found = []
    monkeypatch.setattr(os, "nice", found.append)
    return found


def run_with(**tags):
    return SimpleNamespace(tags={name.replace("_", "/"): value for name, value in tags.items()})


def test_all_runs_that_live_data_does_not_wait_for_give_way(given):
    keeping = set()
    for job in defs().get_repository_def().get_all_jobs():
        given.clear()
        run_priority.give_way(SimpleNamespace(tags=job.tags))
        if not given:
            keeping.add(job.name)
        assert given in ([], [run_priority.NICENESS])

    assert keeping == URGENT


@pytest.mark.parametrize(
    ("run", "added"),
    [
        (run_with(dagster_priority="5"), []),
        (run_with(dagster_priority="10"), []),
        (run_with(dagster_priority="4"), [5]),
        (run_with(dagster_priority="-2"), [5]),
        (run_with(dagster_priority="high"), [5]),
        (run_with(), [5]),
    ],
)
def test_the_tag_decides(run, added, given):
    run_priority.give_way(run)

    assert given == added


def test_a_process_that_gives_way_has_a_lower_priority():
    program = """
import os
from types import SimpleNamespace
from orchestration.run_priority import give_way
give_way(SimpleNamespace(tags={}))
print(os.nice(0))
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)

    assert int(said.stdout) == min(os.nice(0) + run_priority.NICENESS, 19)


def test_a_run_gives_way_before_its_job_is_loaded(monkeypatch, given):
    done = []

    def core_execute_run(*arguments, **named):
        done.append((arguments, named, list(given)))
        yield "event"

    def start(*arguments):
        done.extend(impl.core_execute_run("job", run_with(), *arguments, inject_env_vars=False))

    monkeypatch.setattr(impl, "core_execute_run", core_execute_run)
    monkeypatch.setattr(impl, "start_run_in_subprocess", start)

    run_priority.execute("instance")

    (arguments, named, added), event = done
    assert (arguments[0], arguments[2], named, added, event) == (
        *("job", "instance", {"inject_env_vars": False}),
        *([run_priority.NICENESS], "event"),
    )


def test_the_code_server_executes_runs_in_this_way(monkeypatch):
    for module, name in ((code_server, "preload"), (code_server, "share_instance"), (code_server, "grpc_command")):
        monkeypatch.setattr(module, name, lambda: None)
    for name in ("DagsterApiServer", "start_run_in_subprocess"):
        monkeypatch.setattr(server, name, getattr(server, name))
    monkeypatch.delenv("DAGSTER_PG_URL", raising=False)

    code_server.main()

    assert server.start_run_in_subprocess is run_priority.execute
