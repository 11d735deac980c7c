"""Selection of tests by the TimescaleDB licence of the tests' server; others are skipped and counted."""

from __future__ import annotations

import os
from typing import Any

import pytest

from sql import database

SERVER = pytest.StashKey[tuple[str, str]]()
LEFT_OUT = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    """Return the server's licence: the embedded one has only Apache's."""
    config.stash[LEFT_OUT] = 0
    given = os.environ.get("PRESAGE_TEST_DATABASE_URL")
    config.stash[SERVER] = _server(given) if given else ("apache", "embedded")


def _server(url: str) -> tuple[str, str]:
    with database.connect(url, name="presage test licence") as conn:  # rolled back: the extension is not kept
        conn.execute("create extension if not exists timescaledb")
        found = conn.execute(
            "select extversion, current_setting('server_version') from pg_extension where extname = 'timescaledb'"
        ).fetchone()
        assert found is not None
        license_ = database.license(conn)
        conn.rollback()
    return license_, f"given, TimescaleDB {found[0]} on PostgreSQL {found[1]}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests of the TimescaleDB licence that the server does not have."""
    license_, _ = config.stash[SERVER]
    about = [item.get_closest_marker("license") for item in items]
    others = [
        item for item, marker in zip(items, about, strict=True) if marker is not None and marker.args != (license_,)
    ]
    if others:
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]
        config.stash[LEFT_OUT] += len(others)
        config.hook.pytest_deselected(items=others)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Report the deselected count of a worker process to the session; it is the same in each."""
    workeroutput = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput["left_out"] = session.config.stash[LEFT_OUT]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Read the count from a worker process."""
    node.config.stash[LEFT_OUT] = max(node.config.stash[LEFT_OUT], getattr(node, "workeroutput", {}).get("left_out", 0))


def pytest_report_header(config: pytest.Config) -> str:
    """Print which server the tests run on."""
    license_, server = config.stash[SERVER]
    return f"TimescaleDB: licence {license_} ({server})"


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print how many tests of the other licence were skipped."""
    other = "timescale" if config.stash[SERVER][0] == "apache" else "apache"
    terminalreporter.write_line(
        f"{config.stash[LEFT_OUT]} tests of the licence {other} left out: the server has another"
    )
