"""`presage demo` from start to fresh live data, and complete clean-up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import psycopg
import pytest

from cli.stack import control
from cli.stack import demo as command
from cli.stack.display.figures import PipelineFigures
from cli.stack.display.outcome import Outcome
from cli.stack.plan import Plan
from cli.stack.ports import Ports, choose
from cli.stack.processes import guard
from cli.stack.processes.signals import EndedBySignal
from cli.stack.readiness import fetch
from config.exchanges import DEFAULT
from config.hosts import ONE_MACHINE
from orchestration.run_priority import NICENESS
from sql.embedded import Cluster
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[3]
STAGES = dict.fromkeys(["discovery", "ingestion", "settlement", "analysis", "aggregates"], "fresh")
# Who is connected to which database, but for the command itself.
USERS = """
    select distinct datname, usename from pg_stat_activity
    where datname <> 'postgres' and application_name not like 'presage demo%' and backend_type = 'client backend'
"""
LIVE = "select pid from feed_leases where feed = 'polymarket' and role in ('leader', 'standby')"
TABLES = ("trades", "book_events", "quotes", "live_books", "candles_1m", "settlements")


def demo(data_dir: Path, *options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli.main", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={
            **{name: value for name, value in os.environ.items() if name != "DATABASE_URL"},
            "PRESAGE_DATA_DIR": str(data_dir),
            **environment,
        },
    )


@pytest.fixture
def data_dir(tmp_path):
    yield tmp_path / "data"
    Cluster(tmp_path / "data/database").erase()  # as root it may lie elsewhere, where nobody would clear it away


@pytest.fixture
def base():
    return choose(None).api


@pytest.mark.timeout(900)
def test_the_demo_brings_everything_up_fresh_and_leaves_nothing_behind(tmp_path, data_dir, base):
    out = tmp_path / "out.json"

    with demo(data_dir, "--json", str(out), "--port-base", str(base), "--markets", "20", "--backfill", "0") as run:
        try:
            # Ended when all is well: on another machine any time given by `--for` might be too short.
            until(lambda: run.poll() is not None or well(out), within_s=600)
            dagster = f"{json.loads(out.read_text())['urls']['dagster']}/graphql"
            # Dagster is started last, after the first figures.
            until(lambda: run.poll() is not None or (data_dir / "dagster.password").exists())
            password = (data_dir / "dagster.password").read_text()
            until(lambda: run.poll() is not None or fetch(dagster, password=password, body={"query": "{ version }"}))
            stranger = fetch(dagster, body={"query": "{ version }"})
            until(lambda: run.poll() is not None or (data_dir / control.NAME).exists())
            before = json.loads((data_dir / "running.json").read_text())["services"]["site"]["pid"]
            restarted = control.restart(data_dir, "site")
            with psycopg.connect(Cluster(data_dir / "database").url("postgres")) as conn:
                users = set(conn.execute(USERS))
            with psycopg.connect(Cluster(data_dir / "database").url("simulated-1"), autocommit=True) as conn:
                live = {pid for (pid,) in conn.execute(LIVE)}
            until(lambda: run.poll() is not None or gives_way(data_dir))
            niceness = {niceness_of(pid) for pid in live} - {None}
        finally:
            run.send_signal(signal.SIGINT)
            said, _ = run.communicate(timeout=PATIENCE_S)
            print(said)

    told = json.loads(out.read_text())
    assert run.returncode == 0, said
    assert "problems" not in said
    assert "simulated" in said
    assert "tables made by" in said
    assert f"user presage, password {password}" in said
    assert stranger is None
    assert restarted[0], restarted[1]
    assert json.loads((data_dir / "running.json").read_text())["services"]["site"]["pid"] != before
    assert users >= {("simulated-1", "presage_api_login"), ("simulated-1", "presage_pipeline_login")}
    assert all(user.endswith("_login") for _, user in users), users
    assert niceness == {os.nice(0)}
    assert told["source"] == "simulated"
    assert told["stages"] == STAGES
    assert 0 < told["time_to_first_market_s"] <= told["time_to_first_price_s"] < 200
    assert 0 < told["live_lag_p50_s"] <= told["live_lag_p99_s"]
    assert told["rows"]["markets"] >= 20
    assert min(told["rows"][table] for table in TABLES) > 0
    assert told["quarantined"] == 0
    assert told["api_key"]
    assert set(told["urls"]) == {"api", "stream", "dagster", "site"}
    assert fetch(f"{told['urls']['api']}/health") is None
    instance = json.loads((data_dir / "running.json").read_text())["instance"]
    assert guard.marked(instance) == set()
    assert choose(base).api == base  # every port is free again
    assert not (data_dir / control.NAME).exists()


def gives_way(data_dir: Path) -> bool:
    """Return whether a run executes with a lower priority."""
    code_server = json.loads((data_dir / "running.json").read_text())["services"]["code-server"]["pid"]
    lower = min(os.nice(0) + NICENESS, 19)
    return any(niceness_of(pid) == lower for pid in guard.descendants(code_server))


def niceness_of(pid: int) -> int | None:
    """Return a process's niceness, or None if it has ended."""
    with suppress(ProcessLookupError):
        return os.getpriority(os.PRIO_PROCESS, pid)
    return None


def well(out: Path) -> bool:
    """Return whether the figures are complete and all stages fresh."""
    if not out.exists():
        return False
    told = json.loads(out.read_text())
    there = min(told["rows"].get(table, 0) for table in TABLES) > 0
    return there and told["stages"] == STAGES and told["live_lag_p99_s"] is not None


@pytest.mark.parametrize(("past", "counted"), [(None, [False] * 3), ("figures", [False, True, False, False])])
def test_all_is_counted_once_a_minute_after_the_first_price_and_never_without_a_back_fill(monkeypatch, past, counted):
    read = []
    figures = PipelineFigures(past=past)
    reader = SimpleNamespace(read=lambda *, count_all: read.append(count_all) or figures, close=lambda: None)
    outcome = Outcome(source="simulated")
    watch = command.FigureWatcher(SimpleNamespace(), outcome, None)
    monkeypatch.setattr(watch, "_save_processes", lambda: None)
    watch.reader = reader
    watch.served = {DEFAULT.name: SimpleNamespace(began=time.monotonic() - 100, market_s=1.0, price_s=2.0)}

    for _ in range(3):
        watch.update()

    assert read == counted


def test_when_its_time_is_over_it_ends_by_itself_and_says_what_is_not_well():
    looked = []
    programs = {"api": SimpleNamespace(state="up"), "daemon": SimpleNamespace(state="down")}
    stack = SimpleNamespace(
        supervisor=SimpleNamespace(watch=lambda: None, watched=programs),
        feeds=None,
        plan=SimpleNamespace(migrates=True),
    )
    watch = SimpleNamespace(
        figures=SimpleNamespace(error=None),
        outcome=Outcome(source="simulated"),
        served=object(),
        update=lambda **how: looked.append(how),
    )

    said = command._supervise(stack, watch, SimpleNamespace(show=lambda *_: None), seconds=0.1)

    assert looked == [{"count_all": True}]
    assert "daemon is down" in said
    assert "api is down" not in said


def test_a_demo_that_cannot_start_ends_with_the_reason_and_without_a_trace(data_dir, base):
    run = demo(data_dir, "--port-base", str(base), DATABASE_URL="postgresql://nobody@127.0.0.1:1/nowhere")

    said, _ = run.communicate(timeout=110)

    assert run.returncode == 1
    assert "presage: connection" in said
    assert "Traceback" not in said
    instance = json.loads((data_dir / "running.json").read_text())["instance"]
    assert guard.marked(instance) == set()


class Programs:
    """A supervisor without programs; without --for, it raises Ctrl-C."""

    instance = "none"
    interrupted = False
    retries: ClassVar[list[int]] = []

    def __init__(self, _report, *, start_retries):
        self.watched = {}
        self.retries.append(start_retries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def watch(self):
        if self.interrupted:
            raise EndedBySignal(signal.SIGINT)


class Stack(SimpleNamespace):
    """A stack that starts no programs."""

    def __init__(self, plan, supervisor, _report, *, fresh):
        database = SimpleNamespace(url="")
        super().__init__(plan=plan, supervisor=supervisor, database=database, steps={}, tape=None, feeds=None)

    def start(self, on_tables):
        on_tables()


@pytest.fixture
def plan(tmp_path):
    return Plan(source="simulated", ports=Ports.of(8080), data_dir=tmp_path / "data")


@pytest.mark.parametrize(
    ("ingestion", "seconds", "interrupted", "status"),
    [
        ("fresh", 0.01, False, 0),
        ("stale", 0.01, False, 1),
        ("stale", None, True, 0),  # nothing was promised: Ctrl-C is the way to end it
        ("fresh", 60.0, True, 130),  # ended before its time: as a shell says it of a signal
    ],
)
def test_the_exit_status_says_whether_all_was_well_when_the_time_was_over(
    plan, monkeypatch, capsys, ingestion, seconds, interrupted, status
):
    def on_tables(_stack, watch, *, with_key):
        watch.served["polymarket"] = SimpleNamespace(market_s=1.0, price_s=2.0, stop=lambda: None, began=0.0)
        watch.outcome.stages = STAGES | {"ingestion": ingestion}
        watch.outcome.live_lag_p99_s = 0.1

    monkeypatch.setattr(Programs, "interrupted", interrupted)
    monkeypatch.setattr(command, "Supervisor", Programs)
    monkeypatch.setattr(command, "Stack", Stack)
    monkeypatch.setattr(command, "_on_tables", on_tables)

    assert command.run(plan, seconds=seconds) == status
    assert ("problems:\n  stage ingestion is stale\n" in capsys.readouterr().out) is (ingestion == "stale")


def test_only_one_of_several_hosts_starts_a_service_again_that_ends_while_starting(plan, monkeypatch):
    monkeypatch.setattr(Programs, "retries", retries := [])
    monkeypatch.setattr(command, "Supervisor", Programs)
    monkeypatch.setattr(command, "Stack", Stack)
    monkeypatch.setattr(command, "_on_tables", lambda *_, **__: None)

    for roles in (ONE_MACHINE, ("api",)):
        command.run(replace(plan, roles=roles), seconds=0.01)

    assert retries == [0, command.START_RETRIES]


KEPT = {
    "exports/2026-11-20.parquet",
    "notes.txt",
    "running.lock",
    "database/17/PG_VERSION",  # each source has a database of its own on it
    "dagster/exchange/history/runs.db",
    "keys/exchange",
}


@pytest.fixture
def earlier(plan):
    """Files of an earlier run, and unrelated files beside them."""
    made = ("dagster/simulated-1/history/runs.db", "logs/api.log", "keys/simulated-1", *KEPT)
    for name in made:
        file = plan.data_dir / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return plan


def left(plan):
    return {str(path.relative_to(plan.data_dir)) for path in plan.data_dir.rglob("*") if path.is_file()}


def test_starting_over_forgets_dagster_the_logs_and_the_key_of_one_source_and_nothing_else(earlier):
    command.erase(earlier)

    assert left(earlier) == KEPT


def test_starting_over_erases_no_database_that_was_named(earlier, capsys):
    before = left(earlier)

    assert command.run(replace(earlier, database_url="postgresql:///mine"), fresh=True) == 1

    assert left(earlier) == before
    assert "--fresh does not erase the database in DATABASE_URL" in capsys.readouterr().err


def test_nothing_is_forgotten_under_one_who_runs(earlier, capsys):
    before = left(earlier)

    with command.locked(earlier.data_dir):
        assert command.run(earlier, fresh=True) == 1

    assert left(earlier) == before
    assert "another instance uses" in capsys.readouterr().err
