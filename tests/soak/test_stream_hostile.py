"""Hostile or faulty clients: the others receive events as soon as before, and memory stays bounded."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from benchmarks.database import Bench
from benchmarks.processes import resident_mb
from benchmarks.stream.stream import measure_hostile_clients, peak_mb
from tests.api.conftest import generous, serving

MAX_TURN_MS = 25  # of the worker's CPU, without yielding to other clients


@pytest.mark.soak
def test_others_hear_as_soon_as_before_whatever_some_clients_do(database_url, conn, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    key = generous(conn, "someone@example.com", max_connections=2000)
    turns = tmp_path / "turns"
    try:
        with serving(database_url, worker="tests.soak.turns.Worker", TURNS=str(turns)) as server:
            bench = Bench(tmp_path, database_url, Path("psql"))
            (worker,) = server.workers()
            memory = resident_mb(worker)
            measured = measure_hostile_clients(bench, worker, server.port, f"/stream?api_key={key}")
            peak = peak_mb(worker)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    turn = json.loads(turns.read_text())
    loads = {
        "without": measured.calm,
        "while a bare server has them": measured.elsewhere,
        "beside them": measured.during,
    }
    print(
        f"\n{measured.times}; memory {memory:.0f} MB, then {peak:.0f} MB at most; the longest turn of the loop: {turn}"
    )
    for name, load in loads.items():
        print(
            f"{name}: p50 {load.quantile(0.5):.1f} ms, p99 {load.quantile(0.99):.1f} ms, at most"
            f" {load.quantile(1):.1f} ms, {load.cpu:.3f} cores, {load.waited:.3f} s a second without one"
        )
    assert all(measured.times.values())
    assert measured.calm.even
    assert measured.during.even
    assert turn["cpu_ms"] < MAX_TURN_MS
    assert measured.during.quantile(0.99) < 1.5 * measured.baseline_ms + 5
    assert peak < memory + 200
