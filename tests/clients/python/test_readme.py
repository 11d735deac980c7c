"""The examples of the client's README, each a program that runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sql import database
from tests.api.conftest import generous, serving
from tests.api.listening import trades, write
from tests.factories import add_market, add_trades
from tests.patience import PATIENCE_S

README = Path(__file__).parents[3] / "clients/python/README.md"
BLOCKS = re.findall(r"## ([^\n]+)\n\n```python\n(.*?)```", README.read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def environment(new_database):
    """Where the service is, and a key; something is traded all the time."""
    over = threading.Event()
    with new_database() as url, database.connect(url, autocommit=True) as conn, serving(url) as server:
        add_trades(conn, add_market(conn), [{"price": "0.5"}, {"price": "0.6"}])
        key = generous(conn, "reader@example.com")

        def trade():
            with database.connect(url, autocommit=True) as own:
                while not over.wait(0.2):
                    write(own, trades(3))

        writer = threading.Thread(target=trade)
        writer.start()
        yield {**os.environ, "PRESAGE_URL": server.url, "PRESAGE_API_KEY": key}
        over.set()
        writer.join()


@pytest.mark.parametrize(("title", "code"), BLOCKS, ids=[title for title, _ in BLOCKS])
def test_an_example_runs(environment, title, code):
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S)

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_example_was_found():
    assert len(BLOCKS) == README.read_text().count("```python") == 6
