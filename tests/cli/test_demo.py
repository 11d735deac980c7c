"""`presage demo` from nothing to fresh live data, and gone without a trace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cli import guard
from cli.ports import choose
from cli.readiness import fetch
from sql.embedded import Cluster

ROOT = Path(__file__).parents[2]


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


def test_the_demo_brings_everything_up_fresh_and_leaves_nothing_behind(tmp_path, data_dir, base):
    out = tmp_path / "out.json"

    run = demo(data_dir, "--for", "45", "--json", str(out), "--port-base", str(base), "--markets", "20")
    said, _ = run.communicate(timeout=110)

    told = json.loads(out.read_text())
    assert run.returncode == 0, said
    assert "simulated" in said
    assert told["source"] == "simulated"
    assert told["stages"] == dict.fromkeys(["discovery", "ingestion", "settlement", "analysis", "aggregates"], "fresh")
    assert 0 < told["time_to_first_market_s"] <= told["time_to_first_price_s"] < 60
    assert 0 < told["live_lag_p50_s"] <= told["live_lag_p99_s"]
    assert told["rows"]["markets"] >= 20
    tables = ("trades", "book_events", "quotes", "live_books", "candles_1m", "settlements")
    assert min(told["rows"][table] for table in tables) > 0
    assert (told["coverage_gaps"], told["quarantined"]) == (0, 0)
    assert told["api_key"]
    assert set(told["urls"]) == {"api", "stream", "dagster", "site"}
    assert fetch(f"{told['urls']['api']}/health") is None
    instance = json.loads((data_dir / "running.json").read_text())["instance"]
    assert guard.marked(instance) == set()
    assert choose(base).api == base  # every port is free again


def test_a_demo_that_cannot_start_ends_with_the_reason_and_without_a_trace(data_dir, base):
    run = demo(data_dir, "--port-base", str(base), DATABASE_URL="postgresql://nobody@127.0.0.1:1/nowhere")

    said, _ = run.communicate(timeout=60)

    assert run.returncode == 1
    assert "presage: connection" in said
    assert "Traceback" not in said
    instance = json.loads((data_dir / "running.json").read_text())["instance"]
    assert guard.marked(instance) == set()
