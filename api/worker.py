"""The gunicorn worker: `gunicorn -k api.worker.Worker api.app:app --no-control-socket`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import gevent
from gunicorn.workers.ggevent import GeventPyWSGIWorker

from api import host  # noqa: F401 (made in gunicorn's master, shared by its workers)
from api.handler import Handler

if TYPE_CHECKING:
    from collections.abc import Callable

farewells: list[Callable[[], object]] = []  # called in a worker that is told to stop; must not wait
last_words: list[Callable[[], object]] = []  # called when it has answered what it was asked


class Worker(GeventPyWSGIWorker):  # type: ignore[misc]
    """Serves HTTP and WebSockets on one event loop, and stops within a second or two."""

    wsgi_handler = Handler
    alive: bool

    def run(self) -> None:
        """Serve until told to stop."""
        try:
            super().run()
        finally:
            self._call(last_words)

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002 (a signal's)
        """Stop: finish what is being answered, close the rest."""
        if self.alive:
            gevent.spawn(self._say_goodbye)
        self.alive = False

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Stop at once, though not without a word."""
        gevent.spawn(self._say_goodbye)
        gevent.spawn_later(0.2, super().handle_quit, sig, frame)

    def _say_goodbye(self) -> None:
        Handler.stopping = True
        self._call(farewells)
        for handler in list(Handler.idle):
            with contextlib.suppress(OSError):  # gone already
                handler.socket.shutdown(2)

    def _call(self, several: list[Callable[[], object]]) -> None:
        for each in several:
            try:
                each()
            except Exception:
                self.log.exception("stopping, something failed")
