"""The gunicorn worker: `gunicorn -k api.server.worker.Worker api.app:app --no-control-socket`."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import gevent
from gevent.event import Event
from gevent.pool import Pool
from gunicorn.http.wsgi import base_environ
from gunicorn.sock import ssl_context
from gunicorn.workers.ggevent import VERSION, GeventPyWSGIWorker

from api.server import host  # made in gunicorn's master, shared by its workers
from api.server.handler import Handler
from api.stream.frames import GOING_AWAY, RESTARTING

if TYPE_CHECKING:
    from collections.abc import Callable

    from gevent.pywsgi import WSGIServer

farewells: list[
    Callable[[int], object]
] = []  # called in a worker that is told to stop, with a close code; must not wait
last_words: list[Callable[[], object]] = []  # called when it has answered what it was asked

BEAT_S = 1.0  # between two signs of life
LOOK_S = 0.02  # between two looks whether all is answered


class Worker(GeventPyWSGIWorker):  # type: ignore[misc]
    """Serves HTTP and WebSockets on one event loop, and stops at once when all is answered."""

    wsgi_handler = Handler
    alive: bool

    def init_process(self) -> None:
        """Begin in the forked process."""
        self.told = Event()
        super().init_process()

    def run(self) -> None:
        """Serve until told to stop."""
        try:
            self._serve()
        finally:
            self._call(last_words)

    def _serve(self) -> None:
        # gunicorn's own looks once a second whether it is told to stop, and once a second whether it may.
        servers = [self._listen(each) for each in self.sockets]
        while self.alive:
            self.notify()
            self.told.wait(BEAT_S)
        for server in servers:
            server.close()
        until = time.monotonic() + self.cfg.graceful_timeout
        while any(server.pool.free_count() != server.pool.size for server in servers):
            if time.monotonic() > until:
                self.log.warning("not all was answered within %s s (process %s)", self.cfg.graceful_timeout, self.pid)
                return
            self.notify()
            gevent.sleep(LOOK_S)

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
        server.max_accept = 1  # at once, so that workers share what comes, and a crowd at the door holds nobody up
        server.start()
        return server

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop: finish what is being answered, close the rest."""
        if self.alive:
            gevent.spawn(self._say_goodbye)
        self.alive = False

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Stop at once, though not without a word."""
        gevent.spawn(self._say_goodbye)
        gevent.spawn_later(0.2, super().handle_quit, sig, frame)

    def _say_goodbye(self) -> None:
        self.told.set()
        Handler.stopping = True
        code = RESTARTING if host.shared.restarts.include(self.age) else GOING_AWAY
        self._call(farewells, code)
        for handler in list(Handler.idle):
            with contextlib.suppress(OSError):  # gone already
                handler.socket.shutdown(2)

    def _call(self, several: list[Callable[..., object]], *arguments: int) -> None:
        for each in several:
            try:
                each(*arguments)
            except Exception:
                self.log.exception("stopping, something failed")
