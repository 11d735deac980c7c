"""The gunicorn worker: `gunicorn -k api.server.worker.Worker api.app:app --no-control-socket`.

Asked to stop (SIGTERM), it drains: `/health` answers 503 at once, and for `api_drain_s` all else goes on, so that a
load balancer can choose another server first. Then it closes streams with 1012, accepts nothing more, answers what is
under way, and ends each connection with its next answer. Connections that stay idle are closed last.
"""

from __future__ import annotations

import contextlib
import fcntl
import termios
import time
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.pool import Pool
from gunicorn.http.wsgi import base_environ
from gunicorn.sock import ssl_context
from gunicorn.workers.ggevent import VERSION, GeventPyWSGIWorker

from api.server import host  # noqa: F401 (created in gunicorn's master, shared by its workers)
from api.server.handler import Handler
from api.stream.frames import GOING_AWAY, RESTARTING
from config import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from gevent.pywsgi import WSGIServer

on_draining: list[Callable[[], object]] = []  # called when a worker is asked to stop; must not wait
on_shutdown: list[Callable[[int], object]] = []  # called with a close code when a worker stops; must not wait
on_drained: list[Callable[[], object]] = []  # called when all requests are answered

HEARTBEAT_S = 1.0  # between two heartbeats
DRAIN_POLL_S = 0.02  # between two checks whether all requests are answered
IDLE_S = 2.0  # for the next request on an idle connection, whose answer ends it: closing it might cross that request
CLOSING_S = 1.0  # of gunicorn's `graceful_timeout`, left for `on_drained`


class Worker(GeventPyWSGIWorker):  # type: ignore[misc]
    """Serves HTTP and WebSockets on one event loop, and stops as soon as all requests are answered."""

    wsgi_handler = Handler
    alive: bool

    def init_process(self) -> None:
        """Initialise the forked process."""
        self.stop_requested = Event()
        self.draining_since: float | None = None  # by the monotonic clock
        super().init_process()

    def run(self) -> None:
        """Serve until asked to stop."""
        try:
            self._serve()
        finally:
            self._call(on_drained)

    def _serve(self) -> None:
        # gunicorn's own loop checks only once a second whether it should stop, and once a second whether it can.
        servers = [self._listen(each) for each in self.sockets]
        while self.alive:
            self.notify()
            self.stop_requested.wait(HEARTBEAT_S)
        for server in servers:
            server.close()
        idle_until = time.monotonic() + IDLE_S
        until = (self.draining_since or time.monotonic()) + self.cfg.graceful_timeout - CLOSING_S
        while any(server.pool.free_count() != server.pool.size for server in servers):
            if time.monotonic() > idle_until:
                _close_idle()
            if time.monotonic() > until:
                self.log.warning(
                    "not all requests were answered within %s s (process %s)", self.cfg.graceful_timeout, self.pid
                )
                return
            self.notify()
            gevent.sleep(DRAIN_POLL_S)

    def _listen(self, socket: Any) -> WSGIServer:
        socket.setblocking(1)
        environ = base_environ(self.cfg) | {"wsgi.multithread": True, "SERVER_SOFTWARE": VERSION}
        tls = {"ssl_context": ssl_context(self.cfg)} if self.cfg.is_ssl else {}
        server = self.server_class(
            socket,
            application=self.wsgi,
            spawn=Pool(self.worker_connections),
            log=self.log,
            error_log=self.log,
            handler_class=self.wsgi_handler,
            environ=environ,
            **tls,
        )
        server.max_accept = 1  # so that workers share new connections, and a burst of them does not block the worker
        server.start()
        return server

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Drain, then stop."""
        if self.draining_since is None:
            self.draining_since = time.monotonic()
            gevent.spawn(self._drain)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Stop immediately, after notifying clients."""
        gevent.spawn(self._announce_shutdown, GOING_AWAY)
        gevent.spawn_later(0.2, super().handle_quit, sig, frame)

    def _drain(self) -> None:
        self._call(on_draining)
        gevent.sleep(settings.get().api_drain_s)
        self._announce_shutdown(RESTARTING)

    def _announce_shutdown(self, code: int) -> None:
        self.alive = False
        self.stop_requested.set()
        Handler.stopping = True
        self._call(on_shutdown, code)

    def _call(self, several: list[Callable[..., object]], *arguments: int) -> None:
        for each in several:
            try:
                each(*arguments)
            except Exception:
                self.log.exception("a shutdown hook failed")


def _close_idle() -> None:
    """Close idle connections, but those on which a request has just arrived."""
    for handler in list(Handler.idle):
        with contextlib.suppress(OSError):  # gone already
            if not any(fcntl.ioctl(handler.socket.fileno(), termios.FIONREAD, b"\0" * 4)):
                handler.socket.shutdown(2)
