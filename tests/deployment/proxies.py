"""Caddy with the configuration of docker-compose.yml, and plain servers behind it."""

import http.client
import os
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tests.debian_programs import debian_program
from tests.patience import PATIENCE_S
from tests.ports import free_port
from tests.processes import terminate

SECRET = "psg_dGhlIGtleSBvZiBhIGN1c3RvbWVy"


class Backend(ThreadingHTTPServer):
    """A server that keeps the paths it is asked for, and answers with a cookie."""

    def __init__(self):
        self.paths = []
        super().__init__(("127.0.0.1", 0), Handler)
        Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path != "/health":  # which the proxy asks by itself
            self.server.paths.append(self.path)
        self.send_response(200)
        self.send_header("Set-Cookie", f"session={SECRET}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Proxy:
    """A running Caddy with the file's configuration, altered where a test says so."""

    def __init__(self, config, folder, backends, scheme, *alterations):
        self.port, site = free_port(), free_port()
        text = config["configs"]["proxy"]["content"].replace("$$", "$")
        named = zip(("api-1:8080", "api-2:8080", "site:8085"), backends, strict=True)
        for old, new in (*named, *alterations):
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
        terminate(self.process)
