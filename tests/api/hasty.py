"""The worker with little patience, so that tests need not wait for it to run out."""

from __future__ import annotations

from api.server import handler, worker
from api.stream.hub import Hub


class Handler(handler.Handler):
    idle_s = 1.0
    request_s = 0.5


class Worker(worker.Worker):
    wsgi_handler = Handler

    def init_process(self) -> None:
        Hub.ping_s, Hub.dead_s = 0.4, 2.0
        super().init_process()
