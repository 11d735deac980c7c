"""The proxy's configuration in docker-compose.yml, run by the real Caddy in front of plain servers."""

import http.client
import os
import socket
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.debian_programs import debian_program
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

SECRET = "psg_dGhlIGtleSBvZiBhIGN1c3RvbWVy"
SESSION = "dGhlIHNlc3Npb24gb2YgYW4gYWdlbnQ"
HEADERS = ("X-Api-Key", "X-Debug-Token", "Authorization", "Cookie", "Referer", "User-Agent", "Sec-WebSocket-Protocol")
PATHS = [
    f"/v1/markets?api_key={SECRET}",
    f"/stream?token={SECRET}&types=trade",
    f"/sse?key={SECRET}",
    f"/sse/{SESSION}/messages/",
    f"/%73s%65/{SESSION}/messages/?x={SECRET}",
    f"/nowhere/{SECRET}",
]


class Backend(ThreadingHTTPServer):
    """A server that keeps the paths it is asked for, and answers with a cookie."""

    def __init__(self):
        self.paths = []
        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.paths.append(self.path)
        self.send_response(200)
        self.send_header("Set-Cookie", f"session={SECRET}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Proxy:
    """A running Caddy with the file's configuration, altered where a test says so."""

    def __init__(self, config, folder, backend, scheme, *alterations):
        self.port, site = free_port(), free_port()
        text = config["configs"]["proxy"]["content"].replace("$$", "$")
        for old, new in (("api:8080", backend), ("site:8085", backend), *alterations):
            assert old in text
            text = text.replace(old, new)
        folder.mkdir()
        self.file, self.log, self.scheme = folder / "Caddyfile", folder / "log", scheme
        self.file.write_text(text)
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "XDG_DATA_HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "PRESAGE_API_ADDRESS": f"{scheme}://localhost:{self.port}",
            "PRESAGE_SITE_ADDRESS": f"{scheme}://localhost:{site}",
        }
        options = ["--config", self.file, "--adapter", "caddyfile"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [debian_program("caddy"), "run", *options], env=self.environment, stdout=log, stderr=log
            )

    def request(self, path, headers=None):
        """Return status and headers, as soon as the proxy answers."""
        if self.scheme == "https":
            connection = http.client.HTTPSConnection(
                "localhost", self.port, timeout=PATIENCE_S, context=ssl._create_unverified_context()
            )
        else:
            connection = http.client.HTTPConnection("localhost", self.port, timeout=PATIENCE_S)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            connection.close()

    def listens(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            self.request("/")
        except OSError:
            return False
        return True

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE_S)


@pytest.fixture
def backend():
    with Backend() as server:
        yield server
        server.shutdown()


@pytest.fixture
def proxy(config, tmp_path, backend):
    """Start proxies; stop them at the end."""
    started = []

    def start(*alterations, scheme="http", to=None):
        folder = tmp_path / f"caddy-{len(started)}"
        started.append(Proxy(config, folder, to or f"127.0.0.1:{backend.server_port}", scheme, *alterations))
        until(started[-1].listens)
        return started[-1]

    yield start
    for each in started:
        each.stop()


def test_the_configuration_is_valid(config, proxy):
    command = [debian_program("caddy"), "validate", "--adapter", "caddyfile", "--config", proxy().file]

    done = subprocess.run(command, env=proxy().environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_no_key_is_logged_when_the_service_behind_fails(proxy):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        broken = proxy(to=f"127.0.0.1:{nobody.getsockname()[1]}")
        for path in PATHS:
            assert broken.request(path, dict.fromkeys(HEADERS, SECRET))[0] == 502
    broken.stop()

    logged = broken.log.read_text()
    assert logged.count('"uri":"/') >= len(PATHS)
    assert SECRET not in logged
    assert SESSION not in logged
    assert "/v1/marketsREDACTED" in logged


def test_no_key_is_logged_by_an_access_log_either(proxy):
    asked = proxy(("reverse_proxy", "log\n  reverse_proxy"))
    for path in PATHS:
        assert asked.request(path, dict.fromkeys(HEADERS, SECRET))[0] == 200
    asked.stop()

    logged = asked.log.read_text()
    assert logged.count("http.log.access") >= len(PATHS)
    assert SECRET not in logged
    assert SESSION not in logged


METRICS = ["/metrics", "/metrics/", "/METRICS", "/Metrics/", "/%6detrics", "/metrics%2f", "//metrics", "/x/../metrics"]
METRICS += ["/./metrics", "/metrics?x", "/metrics/?x", "/metrics/x", "/%2fmetrics", "/metrics//"]


@pytest.mark.parametrize("path", METRICS)
def test_the_metrics_are_not_shown_to_the_outside_however_they_are_asked_for(proxy, backend, path):
    asked = proxy()
    backend.paths.clear()

    assert asked.request(path)[0] == 404
    assert asked.request("/v1/metrics_of_nothing")[0] == 200
    assert backend.paths == ["/v1/metrics_of_nothing"]


def test_browsers_are_told_to_stay_with_tls_where_there_is_tls(proxy):
    local = ("admin off", "admin off\n  skip_install_trust\n  auto_https disable_redirects")

    assert proxy(local, scheme="https").request("/")[1]["Strict-Transport-Security"] == "max-age=31536000"
    assert proxy().request("/")[1]["Strict-Transport-Security"] is None
