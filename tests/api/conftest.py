"""Fixtures: an application on a transaction that is rolled back, and a server on a real port."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from falcon import testing

from api.app import create_app
from api.metering import keys
from api.metering.ledger_location import LazyLedger
from api.service import Service
from api.stream.hub import StreamHub
from sql import database
from sql.roles.rights import API
from tests.api.endpoints.wallets.settled import chain, market  # noqa: F401 (fixtures of those who ask about wallets)
from tests.api.listening import Listener, listening
from tests.patience import PATIENCE_S
from tests.roles import login_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psycopg

ROOT = Path(__file__).parent.parent.parent


class OneConnection:
    """A pool with the test's connection only, so that the application sees uncommitted data; with the API's rights."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self.conn = conn
        conn.prepare_threshold = (
            None  # on a rollback psycopg would drop all prepared statements, including the application's
        )

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        with self.conn.transaction():  # whose rollback resets the role, too
            self.conn.execute(f"set role {API}")
            yield self.conn
            self.conn.execute("reset role")

    def read(self, work: Callable[[Any], Any]) -> Any:
        with self.connection() as conn:
            return work(conn)


class Client(testing.TestClient):
    """A test client that sends an API key by default."""

    key: str

    def ask(self, path: str, *, key: str | None = "", headers: dict[str, str] | None = None, **params: Any) -> Any:
        sent = dict(headers or {})
        if key is not None:
            sent["X-API-Key"] = key or self.key
        named = {name.rstrip("_"): str(value) for name, value in params.items()}
        return self.simulate_get(path, params=named, headers=sent)


@pytest.fixture
def present(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set NOW of the test's module to the start of the test, since modules are imported long before."""
    monkeypatch.setattr(request.module, "NOW", dt.datetime.now(dt.UTC))


@pytest.fixture
def service(conn: psycopg.Connection[Any]) -> Service:
    pool: Any = OneConnection(conn)
    ledger = LazyLedger()
    service = Service(reads=pool, writes=pool, hub=StreamHub(pool, ledger.ended), ledger=ledger)
    service.meter.leases.in_background = lambda call: call()  # one connection is for one thread
    return service


@pytest.fixture
def client(service: Service, conn: psycopg.Connection[Any]) -> Client:
    client = Client(create_app(service))
    client.key = generous(conn, "someone@example.com")
    return client


def generous(conn: psycopg.Connection[Any], email: str, **limits: int | None) -> str:
    """Create a key of the pro tier with a very high burst limit, or with the given limits."""
    key = keys.create(conn, email, "tests", "pro")
    limits = {"credits_burst": 1_000_000, **limits}
    columns = ", ".join(f"{name} = %({name})s" for name in limits)
    conn.execute(
        f"update api_keys set {columns} where key_hash = %(key_hash)s", {**limits, "key_hash": keys.digest(key)}
    )
    return key


class Server:
    """A gunicorn process with our worker, on its own port."""

    def __init__(
        self, database_url: str, *, workers: int = 1, worker: str = "api.server.worker.Worker", **env: str
    ) -> None:
        self.database_url, self.count = database_url, workers
        # Not a pipe, which nobody reads meanwhile: a full pipe blocks the writer.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by stop)
        # Bound here and inherited, since another test could take a port that is only chosen.
        with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
            self.port = listener.getsockname()[1]
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "gunicorn", "-c", "python:api.server.gunicorn_conf", "-k", worker),
                    *("-b", f"fd://{listener.fileno()}", "-w", str(workers), "--access-logfile", "-", "api.app:app"),
                ],
                cwd=ROOT,
                env={**os.environ, "DATABASE_URL": login_url(database_url, API), **env},
                stdout=self._log,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
            )
        self.log = ""

    def wait(self) -> None:
        """Wait until the server answers and all workers have started."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            with (
                contextlib.suppress(OSError),
                urllib.request.urlopen(f"{self.url}/health", timeout=PATIENCE_S) as answer,
            ):
                if answer.status == 200 and len(self.workers()) == self.count:
                    return
            assert self.process.poll() is None, self.stop()
            time.sleep(0.05)
        raise AssertionError(self.stop())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stream(self, key: str, **params: Any) -> str:
        more = "".join(f"&{name}={value}" for name, value in params.items())
        return f"ws://127.0.0.1:{self.port}/stream?api_key={key}{more}"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def workers(self) -> list[int]:
        """The process ids of its workers."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in children.split()]

    def stop(self) -> str:
        """Stop the server and return its log."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            if not self._log.closed:
                self._log.seek(0)
                self.log = self._log.read()
                self._log.close()
        return self.log


@contextmanager
def serving(database_url: str, **how: Any) -> Iterator[Server]:
    """Run a server during the block."""
    server = Server(database_url, **how)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def server(new_database: Any) -> Iterator[Server]:
    """A server shared by a module's tests."""
    with new_database() as url, serving(url) as running:
        yield running


@pytest.fixture(scope="module")
def short_timeout_server(new_database: Any) -> Iterator[Server]:
    """A server with short timeouts, only for tests that trigger them: a slow test would trigger them too."""
    with new_database() as url, serving(url, worker="tests.api.short_timeout_worker.ShortTimeoutWorker") as running:
        yield running


@pytest.fixture(scope="module")
def server_conn(server: Server) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the server's database; each statement commits."""
    with database.connect(server.database_url, autocommit=True, name="presage test") as conn:
        yield conn


@pytest.fixture(scope="module")
def server_key(server_conn: psycopg.Connection[Any]) -> str:
    return generous(server_conn, "someone@example.com")


@pytest.fixture
def listen(server: Server, server_conn: psycopg.Connection[Any], server_key: str) -> Callable[..., Any]:
    """`with listen() as client:` yields a stream client positioned after all events written so far."""
    return listener(server, server_conn, server_key)


def listener(server: Server, conn: psycopg.Connection[Any], server_key: str) -> Callable[..., Any]:
    """Return the `listen` function for a server."""

    @contextmanager
    def connected(*, key: str = "", **params: Any) -> Iterator[Listener]:
        head = conn.execute("select last_seq from stream_head").fetchone()
        assert head is not None
        while True:
            with listening(server.stream(key or server_key, **params)) as client:
                if client.hello["seq"] >= head[0]:  # otherwise the server has not read all events yet
                    yield client
                    return

    return connected
