"""A worker that reports the longest turn of its event loop, during which no other client is served.

It measures CPU time, which excludes other processes' load, and wall time.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import gevent

from api.server import worker


class Worker(worker.Worker):
    """The API's worker with its event loop timed."""

    def init_process(self) -> None:
        loop = gevent.get_hub().loop
        self.before, self.after = loop.prepare(), loop.check()
        self.began: tuple[float, float] | None = None
        self.longest, self.longest_wall = 0.0, 0.0
        self.before.start(self._turn_ends)
        self.after.start(self._turn_begins)
        worker.on_drained.append(self._report)
        super().init_process()

    def _turn_begins(self) -> None:
        self.began = time.thread_time(), time.monotonic()

    def _turn_ends(self) -> None:
        if self.began is not None and self.alive:
            self.longest = max(self.longest, time.thread_time() - self.began[0])
            self.longest_wall = max(self.longest_wall, time.monotonic() - self.began[1])

    def _report(self) -> None:
        longest = {"cpu_ms": self.longest * 1000, "clock_ms": self.longest_wall * 1000}
        Path(os.environ["TURNS"]).write_text(json.dumps(longest))
