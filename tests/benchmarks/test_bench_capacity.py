"""The capacity benchmark: a small run of everything, what it cleans up, and how it counts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from benchmarks import harness
from benchmarks.capacity import capacity, rows
from benchmarks.capacity.feeds import Feeds, Lease
from benchmarks.processes import cpu_s, memory_mb, parent, tree
from cli.main import app
from cli.stack.processes import guard
from cli.stack.processes.program import StartError
from orchestration.ingest.lag import Lag
from tests import factories
from tests.patience import until

FIGURES = {
    "changes and prints/s sent": "events/s",
    "events/s committed": "events/s",
    "leader CPU per event": "µs",
    "standby CPU per event": "µs",
    "database CPU per event": "µs",
    "exchange CPU per event": "µs",
    "lag p99": "s",
    "memory": "MB",
    "growth of all leaders' memory": "MB/min",
    "seconds to ready": "s",
    "tokens followed": "tokens",
    "gaps recorded": "gaps",
    "rows lost": "rows",
    "seconds to catch up after the burst": "s",
    "messages that a resumed subscriber misses": "messages",
    "a quality pass": "s",
}
TARGETS = {
    "leader CPU per event": "value <= 30",
    "standby CPU per event": "value <= 8",
    "database CPU per event": "value <= 12",
    "lag p99": "value < 1",
    "memory": "value <= 1000",
    "rows lost": "value == 0",
    "seconds to catch up after the burst": "value <= 60",
    "messages that a resumed subscriber misses": "value == 0",
    "a quality pass": "value <= 120",
}
LEADING = Lease(
    pid=1,
    role="leader",
    ready=True,
    beat_at=100.0,
    ready_for_s=9.0,
    tokens=2,
    backlog=0,
    written_ms=88_000,  # one of its connections has received nothing since
    newest_ms=99_750,
)
SMALL = ("--rate", "50", "--markets", "20", "--seconds", "6", "--burst", "2", "1")


def start(*options):
    """Start a small run."""
    return subprocess.Popen(
        [sys.executable, "-m", "cli.main", "bench", "capacity", *SMALL, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "COLUMNS": "200", "PRESAGE_LOG_FORMAT": "text"},
    )


def folder_of(progress):
    """Return the folder of a run, from its progress."""
    return Path(re.search(r"database in (\S+)", progress).group(1))


@pytest.mark.soak
def test_a_small_run_measures_every_figure_and_leaves_nothing(tmp_path):
    running = start("--quiet-start", "--subscriber", "--json", str(tmp_path / "out.json"))
    table, progress = running.communicate(timeout=280)

    assert running.returncode == 0, progress
    figures = {figure["figure"]: figure for figure in json.loads((tmp_path / "out.json").read_text())}
    assert {name: figure["unit"] for name, figure in figures.items()} == FIGURES
    assert {name: figures[name]["target"] for name in TARGETS} == TARGETS
    resumed = figures["messages that a resumed subscriber misses"]
    assert resumed["value"] == 0
    assert 0 < resumed["detail"]["received since it resumed"] < resumed["detail"]["received"]
    for name in FIGURES.keys() - {"gaps recorded", "rows lost", "growth of all leaders' memory", resumed["figure"]}:
        assert figures[name]["value"] > 0, name
        assert name in table
    assert figures["gaps recorded"]["value"] is not None
    assert figures["database CPU per event"]["detail"]["WAL MB/s"] > 0
    lag = figures["lag p99"]
    assert lag["detail"]["p50"] <= lag["value"] <= lag["detail"]["greatest"] * 1.06  # a bucket's edge is 5 % off
    assert 0 <= lag["detail"]["intervals with a p99 of a second or more"] <= lag["detail"]["intervals"] > 0
    assert figures["rows lost"]["detail"]["rows sent"] > 0
    assert figures["rows lost"]["value"] < figures["rows lost"]["detail"]["rows sent"]
    assert figures["tokens followed"]["value"] >= 38  # of 20 markets, one of which may have resolved
    assert len([line for line in progress.splitlines() if " ready after " in line]) == 4
    assert not folder_of(progress).exists()


@pytest.mark.soak
def test_an_interrupted_run_ends_all_that_it_started():
    running = start()
    progress = ""
    while "of shard 0 ready after" not in progress:
        line = running.stderr.readline()
        assert line, progress
        progress += line
    started = {(pid, guard.start_time(pid)) for pid in guard.descendants(running.pid)}
    commands = [Path(f"/proc/{pid}/cmdline").read_text() for pid, _ in started]
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=120)

    assert running.returncode != 0
    for program, count in (("upstream.sandbox", 1), ("orchestration.ingest", 2), ("postgres", 1)):
        assert sum(program in command for command in commands) >= count
    until(lambda: not [pid for pid, at in started if guard.alive(pid) and guard.start_time(pid) == at])
    assert not folder_of(progress).exists()


def test_options_that_cannot_be_served_are_named():
    runner = CliRunner()

    for option, *values in (
        ("--markets", "9"),
        ("--rate", "0"),
        ("--shards", "0"),
        ("--seconds", "soon"),
        ("--burst", "0.5", "10"),
        ("--burst", "10", "0"),
    ):
        refused = runner.invoke(app, ["bench", "capacity", option, *values], env={"COLUMNS": "200"})
        assert refused.exit_code == 2
        assert option in refused.output


@pytest.mark.parametrize(("given", "quality_pass"), [((), True), (("--no-quality-pass",), False)])
def test_a_quality_pass_may_be_left_out(monkeypatch, given, quality_pass):
    options = []
    monkeypatch.setattr(harness, "run", lambda _, given, __: options.append(given) or [])

    assert CliRunner().invoke(app, ["bench", "capacity", *given]).exit_code == 0
    assert [each.quality_pass for each in options] == [quality_pass]


BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"
WITH_CHILDREN = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BUSY!r}])
held = bytearray(b"x" * 40_000_000)
living = subprocess.Popen([sys.executable, "-c", {BUSY!r} + "import time; time.sleep(600)"])
print(living.pid, flush=True)
sys.stdin.read()
living.kill()
"""


def test_a_warm_up_ends_on_time_or_when_something_has_ended(monkeypatch):
    now, looks, said = [0.0], [], []
    monkeypatch.setattr(capacity.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(capacity.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    supervisor = SimpleNamespace(check_started=lambda: looks.append(now[0]))

    capacity.warm_up(supervisor, 2.5, said.append)
    assert (now[0], looks, said[-1]) == (2.5, [1, 2, 2.5], "2 of 2 s until it is measured")

    monkeypatch.setattr(supervisor, "check_started", lambda: (_ for _ in ()).throw(StartError("the feed has ended")))
    with pytest.raises(StartError):
        capacity.warm_up(supervisor, 2.5, said.append)


def test_a_quiet_connection_does_not_make_a_shard_late():
    feeds = Feeds(None, 2, print)
    for shard in range(2):
        feeds.programs[shard, "first"] = SimpleNamespace(pid=shard + 1)
        feeds.leases[shard + 1] = LEADING._replace(pid=shard + 1)
    assert feeds.late_s() == pytest.approx(0.25)

    feeds.leases[2] = feeds.leases[2]._replace(newest_ms=97_000)
    assert feeds.late_s() == pytest.approx(3)

    feeds.leases[2] = feeds.leases[2]._replace(role="standby")
    assert feeds.late_s() == float("inf")  # nobody writes that shard


def stats_row(at, lag):
    """Return what a feed writes of an interval."""
    return {
        "ts": at,
        "feed": "polymarket",
        "run_id": "a run",
        "messages": 0,
        "rows": 0,
        "lag_counts": lag.trimmed(),
        "lag_p99_ms": lag.quantile(0.99),
        "lag_max_ms": lag.max_ms if len(lag) else None,
    }


def test_lag_is_that_of_the_intervals_in_the_window(conn):
    late, punctual = Lag(), Lag()
    late.add(10_000, [4_000, 9_900])
    punctual.add(10_000, [9_900] * 98)
    at = datetime(2026, 5, 4, 12, tzinfo=UTC)
    for second, counted in ((-1, late), (5, punctual), (10, late), (15, Lag()), (21, punctual), (26, late)):
        factories.insert(conn, "feed_stats", stats_row(at + timedelta(seconds=second), counted))
    window = SimpleNamespace(from_s=at.timestamp(), to_s=at.timestamp() + 20)

    figure = capacity.lag(conn, window)

    assert figure.value == pytest.approx(0.1, rel=0.06)
    assert figure.detail["greatest"] == 6
    assert figure.detail["intervals"] == 3
    assert figure.detail["intervals with a p99 of a second or more"] == 1
    assert figure.detail["greatest p99 of an interval"] == pytest.approx(6, rel=0.06)
    assert figure.detail["seconds until that interval's end"] == 10


def test_cpu_time_and_memory_are_those_of_a_process_and_its_children():
    with subprocess.Popen(
        [sys.executable, "-c", WITH_CHILDREN], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        child = int(process.stdout.readline())

        assert list(tree(process.pid)) == [process.pid, child]
        assert parent(child) == process.pid
        until(lambda: cpu_s(process.pid) >= 0.6)  # of the child that has ended and of the living one
        assert cpu_s(process.pid, without=[process.pid]) == pytest.approx(cpu_s(child), abs=0.05)
        assert cpu_s(process.pid, without=[child]) >= 0.3
        assert memory_mb(process.pid) > 40


def test_rows_that_someone_was_sent_and_that_are_not_stored_are_lost(conn, tmp_path):
    market, gapped = factories.add_market(conn), factories.add_market(conn)
    at = datetime(2026, 5, 4, 12, tzinfo=UTC)
    from_ms = int(at.timestamp() * 1000) - 1
    token, other, known = *market["token_ids"], gapped["token_ids"][0]
    row = {"market_key": market["market_key"], "outcome": 0, "ts": at, "side": 1, "price": 500_000, "size": 1}
    factories.add_trades(conn, market, [{"ts": at}])
    factories.insert(conn, "book_events", {**row, "event_id": 1, "seq": 1})
    gap = {"kind": "books", "cause": "test", "to_ts": at}
    factories.insert(conn, "coverage_gaps", {**gap, "market_key": gapped["market_key"], "from_ts": at})
    earlier = at - timedelta(minutes=1)
    factories.insert(
        conn, "coverage_gaps", {**gap, "market_key": market["market_key"], "from_ts": earlier, "to_ts": earlier}
    )
    sent = [
        {"kind": "trade", "token": token, "ts_ms": from_ms, "sent": 2},  # before
        {"kind": "trade", "token": token, "ts_ms": from_ms + 1, "sent": 2},
        {"kind": "level", "token": token, "ts_ms": from_ms + 1, "sent": 1},
        {"kind": "book", "token": token, "ts_ms": from_ms + 1, "sent": 2},
        {"kind": "level", "token": token, "ts_ms": from_ms + 2, "sent": 1},  # lost
        {"kind": "level", "token": other, "ts_ms": from_ms + 2, "sent": 2},  # lost
        {"kind": "level", "token": known, "ts_ms": from_ms + 2, "sent": 1},  # lost, in a recorded gap
        {"kind": "level", "token": other, "ts_ms": from_ms + 2},  # sent to nobody
        {"kind": "trade", "token": token, "ts_ms": from_ms + 3, "sent": 2},  # after
    ]
    log = tmp_path / "sent.jsonl"
    log.write_bytes(b'{"kind":"cut off\n' + b"".join(json.dumps(line).encode() + b"\n" for line in sent))

    for offset in (5, len(b'{"kind":"cut off\n')):
        counted = rows.compare(conn, log, offset, from_ms=from_ms, to_ms=from_ms + 2)
        assert counted == rows.Rows(sent=5, stored=2, lost=3, known=1, unheard=1)
