"""While one greenlet waits for the database, others go on."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import psycopg  # as in gunicorn's master: before gevent has patched anything
from gevent import monkey
monkey.patch_all()
import gevent, socket
from api.data import waiting
waiting.install()
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


def test_a_connection_that_is_waited_for_blocks_nobody():
    said = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout

    assert said == "OperationalError\n"  # not ConnectionTimeout: the other greenlet has closed it
