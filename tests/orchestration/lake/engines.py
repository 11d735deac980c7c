"""Engines that are not ours, to read the lake with."""

from __future__ import annotations

from importlib import resources

import duckdb
import pytest


@pytest.fixture
def duck():
    """Return a function that runs DuckDB's SQL over a table of the lake, named LAKE."""
    conn = duckdb.connect()
    for name in ("avro", "iceberg"):
        (file,) = resources.files(f"duckdb_extension_{name}").rglob("*.duckdb_extension")
        conn.execute(f"load '{file}'")
    yield lambda query, stored: conn.execute(
        query.replace("LAKE", f"iceberg_scan('{stored.metadata_location.removeprefix('file://')}')")
    ).fetchall()
    conn.close()
