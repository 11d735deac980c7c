"""A worker that tells how long one turn of its event loop took at most: nobody else is served meanwhile.

By the processor's clock, in which it does not show that the machine is busy with others, and by the wall's.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import gevent

from api.server import worker


class Worker(worker.Worker):
    """Ours, watched."""

    def init_process(self) -> None:
        loop = gevent.get_hub().loop
        self.before, self.after = loop.prepare(), loop.check()
        self.began: tuple[float, float] | None = None
        self.longest, self.longest_by_the_clock = 0.0, 0.0
        self.before.start(self._wait)
        self.after.start(self._wake)
        worker.last_words.append(self._tell)
        super().init_process()

    def _wake(self) -> None:
        self.began = time.thread_time(), time.monotonic()

    def _wait(self) -> None:
        if self.began is not None and self.alive:
            self.longest = max(self.longest, time.thread_time() - self.began[0])
            self.longest_by_the_clock = max(self.longest_by_the_clock, time.monotonic() - self.began[1])

    def _tell(self) -> None:
        longest = {"cpu_ms": self.longest * 1000, "clock_ms": self.longest_by_the_clock * 1000}
        Path(os.environ["TURNS"]).write_text(json.dumps(longest))
