"""A stream client based on a third-party library, and a function that writes events as the feed does."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

from websockets.sync.client import connect

from orchestration import stream
from tests.patience import PATIENCE_S


class Listener:
    """A client of the stream."""

    def __init__(self, socket):
        self.socket = socket
        self.waiting = []
        self.hello = self.next()
        assert self.hello["type"] == "hello"

    def say(self, action, **said):
        self.socket.send(json.dumps({"action": action, **said}))

    def next(self, timeout=PATIENCE_S):
        while not self.waiting:
            self.waiting += [json.loads(line) for line in self.socket.recv(timeout).split("\n")]
        return self.waiting.pop(0)

    def until(self, kind, timeout=PATIENCE_S):
        """Return the messages before the next one of a kind, and that message."""
        before = []
        while (message := self.next(timeout))["type"] != kind:
            before.append(message)
        return before, message

    def events(self, count, timeout=PATIENCE_S):
        return [self.next(timeout) for _ in range(count)]


@contextmanager
def listening(url):
    with connect(url, compression=None, open_timeout=PATIENCE_S) as socket:
        yield Listener(socket)


def write(conn, events):
    """Publish events, later than all that was done before, by milliseconds too; return their numbers."""
    before = now_ms = int(time.time() * 1000)
    while now_ms == before:
        now_ms = int(time.time() * 1000)
    with conn.transaction():
        last = stream.publish(conn, [stream.message(kind, now_ms, *event) for kind, *event in events], now_ms)
    return list(range(last - len(events) + 1, last + 1))


def trades(count, market_id="0x" + "1" * 64):
    return [("trade", market_id, {"price": 0.5}) for _ in range(count)]


def seqs(messages):
    return [message["seq"] for message in messages]
