"""A stream client based on a third-party library, and a function that writes events as the feed does."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager

from websockets.sync.client import connect

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
    """Store events as the feed does, numbered last within the transaction; return their numbers."""
    with conn.transaction():
        (last,) = conn.execute(
            "update stream_head set last_seq = last_seq + %s returning last_seq", [len(events)]
        ).fetchone()
        first = last - len(events) + 1
        with conn.cursor().copy("copy stream_events (seq, type, market_id, wallet, message) from stdin") as copy:
            for seq, (kind, market_id, data, *wallet) in enumerate(events, start=first):
                message = {
                    "type": kind,
                    "seq": seq,
                    "ts": int(time.time() * 1000),
                    "market_id": market_id,
                    "data": data,
                }
                copy.write_row((seq, kind, market_id, wallet[0] if wallet else None, json.dumps(message)))
    return list(range(first, last + 1))


def trades(count, market_id="0x" + "1" * 64):
    return [("trade", market_id, {"price": 0.5}) for _ in range(count)]


def seqs(messages):
    return [message["seq"] for message in messages]
