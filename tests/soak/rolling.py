"""Clients of the API and the site that never try again, and readers of the stream that resume by its sequence."""

from __future__ import annotations

import http.client
import itertools
import json
import re
import threading
import time
from typing import NamedTuple

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.patience import PATIENCE_S


class Request(NamedTuple):
    """A request, and what came of it; `error` is empty if it was answered."""

    began: float
    ended: float
    what: str
    error: str


class HttpClient(threading.Thread):
    """Sends one request after the other on a connection that it keeps while the server does. It never tries again."""

    def __init__(
        self, port: int, calls: list[tuple[str, str, str | None]], key: str, pause_s: float, *, keep: bool
    ) -> None:
        super().__init__(daemon=True)
        self.port, self.calls, self.pause_s, self.keep = port, itertools.cycle(calls), pause_s, keep
        self.headers = {"X-API-Key": key, "Accept": "application/json, text/event-stream, text/html"}
        self.requests: list[Request] = []
        self._over = threading.Event()

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        while not self._over.wait(self.pause_s):
            method, path, body = next(self.calls)
            began, error = time.monotonic(), ""
            try:
                sent = {"Content-Type": "application/json"} if body else {}
                connection.request(method, path, body, self.headers | sent)
                answer = connection.getresponse()
                said = answer.read()
                if answer.status >= 400:
                    error = f"{answer.status} {said[:200]!r}"
            except (OSError, http.client.HTTPException) as failed:
                error = repr(failed)
            if error or not self.keep:
                connection.close()
            self.requests.append(Request(began, time.monotonic(), f"{method} {path}", error))
        connection.close()

    def stop(self) -> None:
        self._over.set()
        self.join(PATIENCE_S)


class HintReader(threading.Thread):
    """Reads everything, and resumes from the number in the reason of the close frame, nothing else."""

    def __init__(self, url: str, last: int) -> None:
        super().__init__(daemon=True)
        self.url, self.last = url, last
        self.received: list[int] = []
        self.closed: list[tuple[int, str]] = []
        self.failed: BaseException | None = None
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._over.is_set():
                self._read()
        except BaseException as error:  # noqa: BLE001 (reported by the test)
            self.failed = error

    def _read(self) -> None:
        with connect(f"{self.url}&resume_from={self.last}", compression=None, open_timeout=PATIENCE_S) as socket:
            try:
                while not self._over.is_set():
                    try:
                        said = socket.recv(0.5)
                    except TimeoutError:
                        continue
                    messages = [json.loads(line) for line in said.split("\n")]
                    self.received += [message["seq"] for message in messages if "data" in message]
            except ConnectionClosed as closed:
                code, reason = (0, "cut") if closed.rcvd is None else (closed.rcvd.code, closed.rcvd.reason)
                self.closed.append((code, reason))
                if hint := re.search(r"last_seq=(\d+)$", reason):  # none: nothing was sent on this connection
                    self.last = int(hint[1])

    def stop(self) -> None:
        self._over.set()
        self.join(PATIENCE_S)
