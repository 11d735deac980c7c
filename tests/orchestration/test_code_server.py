"""Runs begin in a process that has imported everything."""

import json
import subprocess
import sys
from functools import partial

from psycopg.conninfo import make_conninfo

from orchestration import code_server
from orchestration.code_server import wait_for_database
from sql import database
from tests.roles import PASSWORD, temporary_role


def test_a_run_begins_with_everything_imported():
    command = [sys.executable, "-m", "tests.orchestration.imported"]  # there is one such server a process
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)

    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == {"imported": [True, True, True], "exit_code": 0}


def test_it_waits_for_its_login(database_url, caplog):
    tries = []
    with (
        database.connect(database_url, autocommit=True) as conn,
        temporary_role(conn, f"nologin password '{PASSWORD}'") as name,
    ):

        def allow(_seconds):
            tries.append(1)
            if len(tries) == 20:
                conn.execute(f"alter role {name} login")
            if len(tries) == 30:
                conn.execute(f"grant create on schema public to {name}")

        url = make_conninfo(database_url, user=name, password=PASSWORD)
        wait = partial(wait_for_database, database.sqlalchemy_url(url, "psycopg2"))
        wait(allow)
        assert len(tries) == 30

        conn.execute("create table runs ()")
        wait(lambda _seconds: conn.execute(f"grant insert on runs to {name}"))
        conn.execute(f"drop owned by {name}")

    assert caplog.text.count("waiting for the database") == 3  # once for each reason
    assert PASSWORD not in caplog.text


def test_the_end_of_its_patience_is_said(monkeypatch, caplog):
    monkeypatch.setattr(code_server, "WAIT_S", 0.0)

    wait_for_database("postgresql+psycopg2://nobody@127.0.0.1:1/nowhere")

    assert "cannot be used after 0 s" in caplog.text
