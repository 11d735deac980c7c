"""Of the daemons of several hosts one runs; another takes over when that is gone."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest

from orchestration.daemon import EVERY_S, VANISHED_S, Lead
from sql import database
from tests import replicas
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[2]
DAEMON = """
import logging, sys, time
from orchestration import daemon
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s", force=True)
daemon.lead(sys.argv[1], lambda: time.sleep(3600))
"""
RUNS, WAITS = "this host's daemon runs", "another host's daemon runs"
END = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'presage daemon' and datname = current_database()
"""


class Daemon:
    """A process whose daemon does nothing once it may run."""

    def __init__(self, url, log):
        self._log = log
        with log.open("w") as file:
            command = [sys.executable, "-c", DAEMON, url]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)

    def has_said(self, what):
        return what in self._log.read_text()

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def daemons(database_url, tmp_path):
    with ExitStack() as stack:

        def start(name):
            made = Daemon(database_url, tmp_path / name)
            stack.callback(made.kill)
            return made

        yield start


def test_a_second_daemon_waits_until_the_first_is_gone(daemons):
    first = daemons("first")
    until(lambda: first.has_said(RUNS))
    second = daemons("second")
    until(lambda: second.has_said(WAITS))
    assert not second.has_said(RUNS)

    first.kill()

    until(lambda: second.has_said(RUNS))


def test_a_daemon_whose_session_is_gone_ends(daemons, conn):
    first = daemons("first")
    until(lambda: first.has_said(RUNS))
    conn.execute(END)

    assert first.process.wait(PATIENCE_S) == 1
    assert first.has_said("the database has ended this daemon's session")


def test_a_stopped_process_that_goes_on_after_another_has_taken_over_ends(daemons, conn):
    first = daemons("first")
    until(lambda: first.has_said(RUNS))
    first.process.send_signal(signal.SIGSTOP)
    try:
        conn.execute(END)
        second = daemons("second")
        until(lambda: second.has_said(RUNS))
    finally:
        first.process.send_signal(signal.SIGCONT)

    assert first.process.wait(PATIENCE_S) == 1
    assert second.process.poll() is None


def test_a_database_that_does_not_answer_is_waited_for_and_said_once(caplog, monkeypatch, database_url):
    answers = [psycopg.OperationalError("refused"), psycopg.OperationalError("refused")]
    connect = database.connect_for_lock

    def sometimes(url, **options):
        if answers:
            raise answers.pop()
        return connect(url, **options)

    monkeypatch.setattr(database, "connect_for_lock", sometimes)
    caplog.set_level("INFO", "orchestration.daemon")

    Lead(database_url, sys.exit, sleep=lambda _: None).wait().close()

    assert caplog.messages == ["waiting for the database: refused", RUNS]


def test_a_replica_is_not_led_on(caplog, database_url):
    sleeps = []

    def stop(seconds):
        sleeps.append(seconds)
        raise KeyboardInterrupt

    caplog.set_level("INFO", "orchestration.daemon")
    with replicas.standby() as url:
        until(lambda: replicas.connected(url)).close()
        with pytest.raises(KeyboardInterrupt):
            Lead(url, sys.exit, sleep=stop).wait()

    assert caplog.messages == ["waiting for the database: it is a replica"]


def test_a_daemon_that_has_waited_lets_the_former_notice_first(conn, database_url):
    sleeps = []
    with psycopg.connect(database_url, autocommit=True) as former:
        former.execute("select pg_advisory_lock(hashtextextended('presage.daemon', 0))")

        def sleep(seconds):
            sleeps.append(seconds)
            former.close()

        Lead(database_url, sys.exit, sleep=sleep).wait().close()

    assert sleeps[0] == EVERY_S
    assert sleeps[-1] == VANISHED_S + EVERY_S
    assert set(sleeps[:-1]) == {EVERY_S}


def test_whatever_ends_the_look_ends_the_daemon():
    class Broken:
        def execute(self, _):
            raise RuntimeError("no psycopg error")

    with pytest.raises(SystemExit):
        Lead("", lambda: sys.exit(1), sleep=lambda _: None).hold(Broken())
