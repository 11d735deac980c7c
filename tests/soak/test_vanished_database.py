"""A database whose machine vanishes costs the API's clients an error at once, not a time-out each."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from api.data.pool import CONNECT_TIMEOUT_S, RETRY_S, VANISHED_S, Pool
from api.errors import Problem
from sql.roles.rights import API
from tests import namespaces
from tests.patience import until
from tests.roles import login_url

pytestmark = pytest.mark.soak

CLIENTS = 8


def test_of_a_vanished_database_the_first_requests_wait_and_no_others(database_url):
    at = conninfo_to_dict(database_url)

    def server():
        if str(at["host"]).startswith("/"):
            made = socket.socket(socket.AF_UNIX)
            made.connect(f"{at['host']}/.s.PGSQL.{at.get('port', 5432)}")
            return made
        return socket.create_connection((at["host"], int(at.get("port", 5432))))

    with namespaces.hosts("database") as (host,), host.relay(server) as port:
        parts = urlsplit(login_url(database_url, API))
        user = parts.netloc.rpartition("@")[0]
        url = parts._replace(netloc=f"{user}@{host.address}:{port}", query="").geturl()
        pool = Pool(url, CLIENTS, {"statement_timeout": 5000})
        ended, answered, refused, faults = threading.Event(), [], [], []

        def ask():
            while not ended.is_set():
                began = time.monotonic()
                try:
                    pool.read(lambda conn: conn.execute("select pg_sleep(0.01)"))
                    answered.append(time.monotonic())
                except (Problem, psycopg.OperationalError):
                    refused.append((began, time.monotonic() - began))
                    time.sleep(0.05)
                except Exception as fault:  # noqa: BLE001
                    faults.append(repr(fault))

        clients = [threading.Thread(target=ask) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            until(lambda: len(answered) > 100)
            cut = time.monotonic()
            host.cut()
            time.sleep(VANISHED_S + 2 * CONNECT_TIMEOUT_S + 15)
            healed = time.monotonic()
            host.heal()
            back = until(lambda: next((at for at in list(answered) if at > healed), None))
        finally:
            ended.set()
            for client in clients:
                client.join()
            with suppress(psycopg.Error):
                pool.close()

    noticed = cut + VANISHED_S + CONNECT_TIMEOUT_S + 2
    first = [took for began, took in refused if began < noticed]
    later = sorted(took for began, took in refused if noticed <= began < healed)
    slow = [took for took in later if took > 0.5]
    p99_ms = later[int(len(later) * 0.99)] * 1000
    print(f"the first {len(first)} requests took up to {max(first):.1f} s")
    print(f"of {len(later)} later ones {len(slow)} tried to connect; p99 {p99_ms:.0f} ms")
    print(f"answers {back - healed:.1f} s after the network was back")
    assert faults == []
    assert max(first) < VANISHED_S + CONNECT_TIMEOUT_S + 5
    assert len(later) > 100
    assert len(slow) <= (healed - noticed) / (CONNECT_TIMEOUT_S + RETRY_S) + 1
    assert back - healed < CONNECT_TIMEOUT_S + RETRY_S + 5
