"""The stream's hub in this process, with sockets that take as much as a test wants."""

from __future__ import annotations

import json
import random
import time
import tracemalloc
from collections import Counter, deque
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import gevent
import gevent.event
import pytest

from api.metrics.counts import Counter as Count
from api.stream import hub as hub_module
from api.stream import messages, replay
from api.stream.hub import StreamHub
from api.stream.subscriber import Subscriber, SubscriptionFilter
from sql import database
from sql.roles.rights import API
from sql.stream_reader import StreamEvent
from tests.api.listening import seqs, write
from tests.patience import PATIENCE_S
from tests.roles import login_url

QUEUE = 1 << 20
BIG = ("trade", None, {"padding": "x" * 20_000})


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
    """A client's socket; what was pushed is owed until it is taken."""

    def __init__(self):
        self.frames = deque()  # owed: bytes left, whether a part was taken, number of messages, position before them
        self.owed = self.sent_seq = self.most = 0
        self.closed = self.slow = False
        self.received_at = time.monotonic()
        self.messages = []

    def close_slow(self):
        self.closed = self.slow = True

    def take(self, size):
        while size and self.frames:
            left, _, *rest = self.frames.popleft()
            if left > size:
                self.frames.appendleft((left - size, True, *rest))
            size -= min(size, left)
        self.owed = sum(left for left, *_ in self.frames)

    def take_back(self):
        position = None
        while self.frames and not self.frames[-1][1] and self.frames[-1][3] is not None:
            left, _, count, position = self.frames.pop()
            self.owed -= left
            del self.messages[-count:]
        return position

    def push(self, data, seq=0, after=None):
        text = data[{126: 4, 127: 10}.get(data[1], 2) :].decode()
        found = [json.loads(line) for line in text.split("\n") if line]
        self.messages += found
        self.frames.append((len(data), False, len(found), after))
        self.owed += len(data)
        self.most = max(self.most, self.owed)

    @property
    def heard(self):
        return [message for message in self.messages if "data" in message]


def eventually(condition, meanwhile=lambda: None):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        meanwhile()
        gevent.sleep(0.001)


@pytest.fixture
def hub(database_url):
    hub = StreamHub(Pool(login_url(database_url, API)), lambda: 0, queue_bytes=QUEUE)
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
    eventually(lambda: hub._running is None)
    conn.execute("delete from stream_blocks")
    conn.execute("update stream_head set last_seq = %s", [before[0] - 1])
    again = write(conn, [("trade", None, {"price": 0.9})])

    second = Socket()
    joined(hub, second, before[0] - 1)
    eventually(lambda: second.heard)

    assert again == before[:1]
    assert [message["data"]["price"] for message in second.heard] == [0.9]


def test_who_is_closed_before_it_was_sent_what_it_resumes_from_is_told_no_number(hub, conn):
    class Closing(Socket):
        def close(self, code, reason, *, linger_s):
            self.closed, self.reason = True, reason.replace("{seq}", str(self.sent_seq))

    before = write(conn, [("trade", None, {"price": price}) for price in (0.1, 0.2, 0.3)])
    early, resumed, late = Closing(), Closing(), Closing()
    hub.add(lambda last: Subscriber(early, last, 1, lambda: True))  # it may be about to resume
    joined(hub, resumed, before[0])
    hub.stop(1012)
    hub.add(lambda last: Subscriber(late, last, 1, lambda: True))

    assert early.reason == late.reason == resumed.reason == "the service is stopping"


def test_who_joins_when_the_reading_has_just_begun_is_served(hub, conn):
    hub.ping_s = 0  # as if connecting had taken longer than the time between two pings
    socket = Socket()

    joined(hub, socket)
    written = write(conn, [BIG])

    eventually(lambda: socket.heard)
    assert seqs(socket.heard) == written


def test_who_joins_while_the_reading_ends_is_served(database_url, conn):
    closing = gevent.event.Event()

    class SlowlyClosing(Pool):
        @contextmanager
        def connection(self):
            with super().connection() as conn:
                yield conn
                closing.set()
                gevent.sleep(0.1)

    hub = StreamHub(SlowlyClosing(database_url), lambda: 0)
    hub.ping_s = 0
    hub.remove(joined(hub, Socket()))
    assert closing.wait(PATIENCE_S)

    socket = Socket()
    joined(hub, socket)
    written = write(conn, [BIG])

    eventually(lambda: socket.heard)
    assert seqs(socket.heard) == written
    hub.end()


def test_a_batch_is_encoded_for_one_filter_after_the_other():
    hub = StreamHub(None, lambda: 0)
    text = b"x" * 10_000
    events = [StreamEvent(seq, "trade", None, None, None, text) for seq in range(1, 201)]
    heard = Counter()
    for number in range(32):
        push = partial(lambda number, data, seq, after: heard.update({number: len(data)}), number)
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


def test_who_reads_gets_a_batch_of_many_times_the_queue_and_owes_little(hub, conn):
    socket = Socket()
    subscriber = joined(hub, socket)
    written = write(conn, [BIG] * 500)

    eventually(lambda: len(socket.heard) == 500 and subscriber.live, lambda: socket.take(1 << 20))
    written += write(conn, [BIG] * 3)
    eventually(lambda: len(socket.heard) == 503)

    assert seqs(socket.heard) == written
    assert not socket.closed
    assert socket.most < QUEUE + (300 << 10)


def test_a_client_that_reads_nothing_is_disconnected(hub, conn, monkeypatch):
    monkeypatch.setattr(replay, "STALL_S", 0.3)
    socket = Socket()
    subscriber = joined(hub, socket)
    written = write(conn, [BIG] * 100)

    eventually(lambda: socket.closed)

    assert socket.slow
    assert subscriber not in hub.subscribers
    assert hub._counts.of(Count.SLOW_CLOSED) == 1
    assert seqs(socket.heard) == written[: len(socket.heard)]
    assert socket.most < QUEUE + (300 << 10)


def test_a_client_that_reads_nothing_owes_no_more_than_a_frame(hub, conn):
    sockets = [Socket() for _ in range(5)]
    subscribers = [joined(hub, socket) for socket in sockets]
    before = hub.last
    written = write(conn, [BIG] * 100)

    eventually(lambda: all(each.behind_since for each in subscribers) and all(each.owed for each in sockets))
    gevent.sleep(0.05)  # several turns

    assert max(socket.owed for socket in sockets) < 300 << 10
    assert all(before <= each.position < written[-1] for each in subscribers)
    eventually(
        lambda: all(len(each.heard) == 100 for each in sockets), lambda: [each.take(1 << 18) for each in sockets]
    )
    assert [seqs(socket.heard) for socket in sockets] == [written] * 5


def test_answers_keep_their_place_among_what_is_sent_again(hub, conn):
    socket = Socket()
    subscriber = joined(hub, socket)
    first = write(conn, [BIG] * 10)
    eventually(lambda: len(socket.heard) == 10)
    subscriber.send(messages.encode("pong"))
    write(conn, [BIG] * 100)
    eventually(lambda: not subscriber.live)

    eventually(lambda: len(socket.heard) == 110, lambda: socket.take(1 << 20))

    assert [message["type"] for message in socket.messages[:11]] == ["trade"] * 10 + ["pong"]
    assert seqs(socket.heard)[:10] == first


def test_a_client_that_reads_too_little_to_catch_up_is_disconnected(hub, conn, monkeypatch):
    monkeypatch.setattr(replay, "BEHIND_S", 0.5)
    monkeypatch.setattr(replay, "STALL_S", PATIENCE_S)
    socket = Socket()
    joined(hub, socket)
    write(conn, [BIG] * 500)

    eventually(lambda: socket.closed, lambda: socket.take(1))

    assert socket.slow


def test_who_resumes_may_take_its_time(hub, conn, monkeypatch):
    monkeypatch.setattr(replay, "BEHIND_S", 0.2)
    socket = Socket()
    written = write(conn, [BIG] * 200)
    joined(hub, socket, written[0] - 1)
    began = time.monotonic()

    eventually(lambda: len(socket.heard) == 200, lambda: socket.take(5000))

    assert not socket.closed
    assert time.monotonic() - began > 0.4


def test_a_command_while_catching_up_is_answered_but_not_without_end(hub, conn):
    socket = Socket()
    subscriber = joined(hub, socket)
    write(conn, [BIG] * 100)
    eventually(lambda: socket.owed and not subscriber.live)

    for _ in range(10):
        subscriber.send(messages.encode("pong"))
        hub.check(subscriber)
    assert not socket.closed

    while not socket.closed and socket.owed < 10 * QUEUE:
        subscriber.send(messages.encode("subscribed", markets="x" * 100_000))
        hub.check(subscriber)
    assert socket.slow
    assert socket.owed < 3 * QUEUE


def test_nobody_misses_or_gets_twice_what_it_wants_however_fast_it_reads(hub, conn, monkeypatch):
    monkeypatch.setattr(hub_module, "TURN", 2)
    dice, clients, written = random.Random(1), [], []
    for number in range(12):
        socket = Socket()
        subscriber = joined(hub, socket)
        if number % 3:
            hub.restart(subscriber, SubscriptionFilter(types=frozenset({"trade", f"price{number % 2}"})))
        clients.append((socket, subscriber))

    def read():
        for number, (socket, subscriber) in enumerate(clients):
            socket.take(dice.randrange(1 + (200_000 << number % 4)))
            if dice.random() < 0.02:  # a command that changes nothing
                hub.restart(subscriber)

    def behind():
        return [subscriber for _, subscriber in clients if not subscriber.live]

    fell = 0
    for _ in range(40):
        kinds = [dice.choice(["trade", "price0", "price1"]) for _ in range(dice.randrange(1, 150))]
        events = [(kind, None, {"padding": "x" * dice.choice([10, 5000, 40_000])}) for kind in kinds]
        written += zip(write(conn, events), kinds, strict=True)
        for _ in range(dice.randrange(30)):
            read()
            gevent.sleep(0.001)
        fell = max(fell, len(behind()))
    eventually(lambda: not behind() and hub._delivered == written[-1][0], read)

    assert fell > 3
    for socket, subscriber in clients:
        types = subscriber.wants.types
        assert not socket.closed
        assert seqs(socket.heard) == [seq for seq, kind in written if types is None or kind in types]
