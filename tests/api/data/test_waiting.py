"""While one greenlet waits for the database, others go on."""

from __future__ import annotations

import subprocess
import sys

from tests.patience import PATIENCE_S

BEGINNING = """
import psycopg  # as in gunicorn's master: before gevent has patched anything
from gevent import monkey
monkey.patch_all()
import gevent, socket, sys
from api.data import waiting
waiting.install()
"""
CONNECTING = """
mute = socket.create_server(("127.0.0.1", 0))
def refuse():
    while True:
        mute.accept()[0].close()
gevent.spawn(refuse)
try:
    psycopg.connect(host="127.0.0.1", port=mute.getsockname()[1], user="x", dbname="x", connect_timeout=30)
except psycopg.OperationalError as error:
    print(type(error).__name__)
"""
SHARING = """
with psycopg.connect(sys.argv[1], autocommit=True) as conn:
    asking = [gevent.spawn(conn.execute, "select pg_sleep(0.05)") for _ in range(2)]
    print(len([each.get() for each in asking]))
"""


def said_by(code, *given):
    command = [sys.executable, "-c", BEGINNING + code, *given]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S).stdout


def test_a_connection_that_is_waited_for_blocks_nobody():
    assert said_by(CONNECTING) == "OperationalError\n"  # not ConnectionTimeout: the other greenlet has closed it


def test_two_that_use_one_connection_wait_for_each_other_alone(database_url):
    assert said_by(SHARING, database_url) == "2\n"
