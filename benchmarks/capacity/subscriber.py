"""A subscriber of the stream that goes away in the middle of the measurement, comes back, and counts what it got."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import NamedTuple

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from cli.stack.processes.program import StartError

EVENT = re.compile(r'"type":"(?!replay_completed")\w+","seq":(\d+)')
INCOMPLETE = '"complete":false'
RECEIVE_S = 1.0
CATCH_UP_S = 120.0
NICE = 10  # it stands for a program on another machine, as far as the kernel can be told: within this session


class Received(NamedTuple):
    """What a subscriber has received."""

    messages: int
    missing: int  # numbers between the first and the last one that did not come, or came in another order
    resumed: int  # of them, those since it came back: replayed ones, then live ones
    incomplete: int  # replays that were
    behind: int  # messages after the last one that did not come in time


class Subscriber(threading.Thread):
    """Receives all messages from its start on, but for one absence, after which it resumes where it was."""

    def __init__(self, url: str, *, leaves_after_s: float, away_s: float) -> None:
        super().__init__(name="subscriber", daemon=True)
        self.last = 0
        self._url = url
        self._leaves_after_s, self._away_s = leaves_after_s, away_s
        self._messages = self._missing = self._resumed = self._incomplete = 0
        self._ended = threading.Event()
        self._failure: Exception | None = None

    def run(self) -> None:
        """Listen, leave, resume, and listen until the end."""
        niceness = max(NICE, os.getpriority(os.PRIO_PROCESS, 0))
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)  # Linux: of this thread alone
        try:
            self._listen(time.monotonic() + self._leaves_after_s)
            self._ended.wait(self._away_s)
            left = self.last
            self._listen(float("inf"))
            self._resumed = self.last - left
        except (ConnectionClosed, OSError, TimeoutError) as error:
            self._failure = error

    def end(self, head: int) -> Received:
        """Wait until the newest message has come, if that takes no minutes; return what was received."""
        deadline = time.monotonic() + CATCH_UP_S
        while self.last < head and time.monotonic() < deadline and self.is_alive():
            time.sleep(0.1)
        self._ended.set()
        self.join()
        if self._failure is not None:
            raise StartError(f"the subscriber's stream has ended: {self._failure}")
        return Received(self._messages, self._missing, self._resumed, self._incomplete, max(0, head - self.last))

    def _listen(self, until: float) -> None:
        resumed = f"&resume_from={self.last}" if self.last else ""
        with connect(f"{self._url}{resumed}", compression=None, max_size=None) as socket:
            while time.monotonic() < until and not self._ended.is_set():
                try:
                    frame = str(socket.recv(RECEIVE_S))
                except TimeoutError:
                    continue
                self._take([int(seq) for seq in EVENT.findall(frame)])
                self._incomplete += frame.count(INCOMPLETE)

    def _take(self, seqs: list[int]) -> None:
        for seq in seqs:
            if self.last and seq != self.last + 1:
                self._missing += abs(seq - self.last - 1)
            self.last = seq
        self._messages += len(seqs)
