"""Clients that mean ill, or know no better: the others hear of events as soon as before, and memory stays bounded."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from cli.bench.database import Bench
from cli.bench.stream import beside_mischief, peak_mb
from cli.bench.sustained import resident_mb
from tests.api.conftest import generous, serving


@pytest.mark.soak
def test_others_hear_as_soon_as_before_whatever_some_clients_do(database_url, conn, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    key = generous(conn, "someone@example.com", max_connections=2000)
    try:
        with serving(database_url) as server:
            bench = Bench(tmp_path, database_url, Path("psql"))
            (worker,) = server.workers()
            memory = resident_mb(worker)
            calm, during, times = beside_mischief(bench, worker, server.port, f"/stream?api_key={key}")
            peak = peak_mb(worker)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(
        f"\nwithout: p50 {calm.quantile(0.5):.1f} ms, p99 {calm.quantile(0.99):.1f} ms, {memory:.0f} MB;"
        f" beside {times}: p50 {during.quantile(0.5):.1f} ms, p99 {during.quantile(0.99):.1f} ms, {peak:.0f} MB"
    )
    assert all(times.values())
    assert calm.even
    assert during.even
    assert during.quantile(0.99) < 1.5 * calm.quantile(0.99) + 5
    assert peak < memory + 200
