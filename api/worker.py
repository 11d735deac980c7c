"""The gunicorn worker: `gunicorn -k api.worker.Worker api.app:app --no-control-socket`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import gevent
from gunicorn.workers.ggevent import GeventPyWSGIWorker

from api.handler import Handler

if TYPE_CHECKING:
    from collections.abc import Callable

farewells: list[Callable[[], None]] = []  # called once in each worker that is told to stop; must not wait


class Worker(GeventPyWSGIWorker):  # type: ignore[misc]
    """Serves HTTP and WebSockets on one event loop, and stops within a second or two."""

    wsgi_handler = Handler
    alive: bool

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
        for farewell in farewells:
            try:
                farewell()
            except Exception:
                self.log.exception("a farewell failed")
        for handler in list(Handler.idle):
            with contextlib.suppress(OSError):  # gone already
                handler.socket.shutdown(2)
