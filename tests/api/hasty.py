"""A worker with short timeouts, so that tests of timeouts are fast."""

from __future__ import annotations

from api.server import handler, worker
from api.stream.hub import StreamHub


class Handler(handler.Handler):
    idle_s = 1.0
    request_s = 0.5


class Worker(worker.Worker):
    wsgi_handler = Handler

    def init_process(self) -> None:
        StreamHub.ping_s, StreamHub.dead_s = 0.4, 2.0
        super().init_process()
