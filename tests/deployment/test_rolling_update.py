"""Two API processes behind the real proxy are restarted one after the other, as the documented update does it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from cli.stack import readiness
from sql.roles.rights import API
from tests.api.conftest import ROOT, generous
from tests.api.listening import listening, seqs, trades, write
from tests.patience import PATIENCE_S, until
from tests.ports import free_port
from tests.roles import login_url
from tests.soak.rolling import HttpClient


class Replica:
    """An API container's process on an address of its own."""

    def __init__(self, database_url, drain_s, log):
        self.port, self.log = free_port(), log
        self.environment = {
            **os.environ,
            "DATABASE_URL": login_url(database_url, API),
            "PRESAGE_API_PORT": str(self.port),
            "PRESAGE_API_WORKERS": "1",
            "PRESAGE_API_DRAIN_S": drain_s,
        }
        self.start()

    def start(self):
        command = [sys.executable, "-m", "gunicorn", "-c", "python:api.server.gunicorn_conf", "api.app:app"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    def healthy(self):
        assert self.process.poll() is None, self.log.read_text()
        return readiness.answers(f"http://127.0.0.1:{self.port}/health")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE_S)


@pytest.mark.timeout(300)
def test_no_request_fails_when_one_api_after_the_other_is_restarted(config, proxy, database_url, conn, tmp_path):
    key = generous(conn, "someone@example.com")
    drain_s = config["services"]["api"]["environment"]["PRESAGE_API_DRAIN_S"]
    replicas = [Replica(database_url, drain_s, tmp_path / f"api-{number}.log") for number in (1, 2)]
    try:
        for replica in replicas:
            until(replica.healthy, within_s=2 * PATIENCE_S)
        ports = [replica.port for replica in replicas]
        asked = proxy(to=[f"127.0.0.1:{port}" for port in (*ports, ports[0])])
        calls = [("GET", "/v1/time", None), ("POST", "/v1/wallets/watch", json.dumps({"address": "0x" + "7" * 40}))]
        clients = [HttpClient(asked.port, calls, key, 0.02, keep=keep) for keep in (True, False)]
        for client in clients:
            client.start()
        received = []
        stream = f"ws://localhost:{asked.port}/stream?api_key={key}"
        for replica in replicas:
            written = write(conn, trades(3))
            resume_from = received[-1] if received else written[0] - 1
            with listening(f"{stream}&resume_from={resume_from}") as client:
                received += seqs(each for each in client.until("replay_completed")[0] if "data" in each)
                replica.stop()
                replica.start()
                until(replica.healthy, within_s=2 * PATIENCE_S)
        for client in clients:
            client.stop()
    finally:
        for replica in replicas:
            replica.process.kill()
            replica.process.wait()

    assert received == list(range(1, 7))
    for client in clients:
        assert len(client.requests) > 20
        assert [request for request in client.requests if request.error] == []
