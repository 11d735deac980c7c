"""The stream's hub in this process, with sockets that take as much as a test wants."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections import Counter
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import gevent
import pytest

from api.stream.hub import StreamHub
from api.stream.subscriber import Subscriber, SubscriptionFilter
from sql import database
from sql.stream_reader import StreamEvent
from tests.api.listening import seqs, write
from tests.patience import PATIENCE_S


class Pool:
    """A new connection each time, as the hub keeps its own."""

    def __init__(self, url):
        self.url = url

    @contextmanager
    def connection(self):
        with database.connect(self.url, autocommit=True, name="presage test") as conn:
            yield conn

    def read(self, work):
        with self.connection() as conn:
            return work(conn)


class Socket:
    """A client that has heard all that was pushed."""

    def __init__(self):
        self.owed = self.sent_seq = 0
        self.closed = False
        self.received_at = time.monotonic()
        self.messages = []

    def push(self, data, seq=0):
        text = data[{126: 4, 127: 10}.get(data[1], 2) :].decode()
        self.messages += [json.loads(line) for line in text.split("\n") if line]

    @property
    def heard(self):
        return [message for message in self.messages if "data" in message]


def eventually(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        gevent.sleep(0.01)


@pytest.fixture
def hub(database_url):
    hub = StreamHub(Pool(database_url), lambda: 0)
    hub.ping_s = 0.05
    yield hub
    hub.end()


def joined(hub, socket, after=None):
    subscriber = hub.add(lambda last: Subscriber(socket, last, 1, lambda: True))
    if after is None:
        hub.restart(subscriber)
    else:
        hub.resume(subscriber, SubscriptionFilter(), after)
    return subscriber


def test_who_resumes_after_the_database_went_back_unseen_gets_what_it_has_now(hub, conn):
    events = [("trade", None, {"price": price}) for price in (0.1, 0.2, 0.3)]
    before = write(conn, events)
    first = Socket()
    subscriber = joined(hub, first, before[0] - 1)
    eventually(lambda: seqs(first.heard) == before)
    hub.remove(subscriber)
    eventually(lambda: hub._running.dead)
    conn.execute("delete from stream_blocks")
    conn.execute("update stream_head set last_seq = %s", [before[0] - 1])
    again = write(conn, [("trade", None, {"price": 0.9})])

    second = Socket()
    joined(hub, second, before[0] - 1)
    eventually(lambda: second.heard)

    assert again == before[:1]
    assert [message["data"]["price"] for message in second.heard] == [0.9]


def test_a_batch_is_encoded_for_one_filter_after_the_other():
    hub = StreamHub(None, lambda: 0)
    text = b"x" * 10_000
    events = [StreamEvent(seq, "trade", None, None, None, text) for seq in range(1, 201)]
    heard = Counter()
    for number in range(32):
        push = partial(lambda number, data, seq: heard.update({number: len(data)}), number)
        subscriber = Subscriber(SimpleNamespace(push=push, owed=0), 0, number, lambda: True)
        subscriber.wants = SubscriptionFilter(types=frozenset({"trade", str(number)}))
        hub._go_live(subscriber)

    tracemalloc.start()
    try:
        hub._deliver(events)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(heard) == 32
    assert set(heard.values()) == {max(heard.values())}
    assert most < 8 << 20  # each filter's frames have 2 MB
