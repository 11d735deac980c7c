"""A worker with short timeouts, so that tests of timeouts are fast."""

from __future__ import annotations

from api.server.handler import Handler
from api.server.worker import Worker
from api.stream import replay
from api.stream.hub import StreamHub


class ShortTimeoutHandler(Handler):
    idle_s = 1.0
    request_s = 0.5


class ShortTimeoutWorker(Worker):
    wsgi_handler = ShortTimeoutHandler

    def init_process(self) -> None:
        StreamHub.ping_s, StreamHub.dead_s = 0.4, 2.0
        super().init_process()


class ShortStallWorker(Worker):
    def init_process(self) -> None:
        replay.STALL_S = 1.0
        super().init_process()
