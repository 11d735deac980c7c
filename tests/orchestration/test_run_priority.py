"""Feeds and discovery go before other runs where processor time is scarce."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from dagster._grpc import server

from orchestration import code_server, run_priority
from orchestration.definitions import defs

URGENT = {"live", "live_kalshi", "discovery", "discovery_kalshi", "settlement", "delivery"}


def test_all_runs_that_live_data_does_not_need_give_way(monkeypatch):
    given = []
    monkeypatch.setattr(os, "nice", given.append)
    keeping = set()
    for job in defs().get_repository_def().get_all_jobs():
        given.clear()
        run_priority.give_way(job.tags)
        if not given:
            keeping.add(job.name)
        assert given in ([], [run_priority.NICENESS])

    assert keeping == URGENT


def test_a_process_that_gives_way_has_a_lower_priority():
    program = "import os\nfrom orchestration.run_priority import give_way\ngive_way({})\nprint(os.nice(0))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=100)

    assert int(said.stdout) == os.nice(0) + run_priority.NICENESS


@pytest.mark.parametrize("tags", [{"dagster/priority": "7"}, {"dagster/priority": "10"}])
def test_an_urgent_one_keeps_its_priority(tags, monkeypatch):
    monkeypatch.setattr(os, "nice", lambda _: pytest.fail("it gave way"))

    run_priority.give_way(tags)


def test_the_code_server_executes_runs_in_this_way(monkeypatch):
    for module, name in ((code_server, "preload"), (code_server, "share_instance"), (code_server, "grpc_command")):
        monkeypatch.setattr(module, name, lambda: None)
    for name in ("DagsterApiServer", "start_run_in_subprocess"):
        monkeypatch.setattr(server, name, getattr(server, name))
    monkeypatch.delenv("DAGSTER_PG_URL", raising=False)

    code_server.main()

    assert server.start_run_in_subprocess is run_priority.execute
