"""What a replay keeps for a client is bounded, whatever the client sends."""

from __future__ import annotations

import datetime as dt
import json
import tracemalloc

import gevent

from api.replay.market_channel import ReplayChannel
from api.replay.player import ReplaySpan
from api.replay.sessions import MAX_OWED, MAX_QUEUED, ReplaySession, ReplaySessions
from tests.api.replay.past import START

OURS = tracemalloc.Filter(inclusive=True, filename_pattern="*/api/replay/*")


class Client:
    """A socket whose client sends a number of commands."""

    def __init__(self, commands):
        self.commands, self.owed, self.closed, self.slow = commands, 0, False, False

    def receive(self):
        self.commands -= 1
        return None if self.closed or self.commands < 0 else "PING"

    def close(self, *_):
        self.closed = True

    def close_slow(self):
        self.closed = self.slow = True


class Busy:
    """A player that applies a few of the queued changes each turn."""

    def __init__(self):
        self.queued, self.over = 0, False

    def play(self):
        while not self.over:
            self.queued = max(0, self.queued - 20)
            gevent.sleep(0)
        return False

    def stop(self):
        self.over = True


def run(client, player, on_message):
    ReplaySessions().run(ReplaySession(client, player, lambda: True), on_message)


def test_a_client_that_reads_no_answers_is_let_go():
    client = Client(commands=100)

    def answer(_):
        client.owed += MAX_OWED // 10

    run(client, Busy(), answer)

    assert client.slow
    assert client.commands == 100 - 11 - 1


def test_a_client_that_asks_for_more_than_is_done_is_read_more_slowly():
    client, player, most = Client(commands=1000), Busy(), 0

    def change(_):
        nonlocal most
        player.queued += 2
        most = max(most, player.queued)

    run(client, player, change)

    assert client.commands == -1  # all were read
    assert not client.slow
    assert most == MAX_QUEUED + 2


def channel(rows=lambda *_, **__: []):
    span = ReplaySpan(START, START + dt.timedelta(seconds=1), 0)
    return ReplayChannel(rows, span, send=lambda _: None, push=lambda _: None)


def test_of_a_request_only_the_tokens_are_kept():
    opened = channel()
    junk = json.dumps({"type": "market", "assets_ids": [f"no token {n}" for n in range(4000)]})
    numbers = json.dumps({"operation": "unsubscribe", "assets_ids": [str(n) for n in range(8000)]})
    opened.receive(junk)
    tracemalloc.start()
    try:
        for _ in range(10):
            opened.receive(junk)
            opened.receive(numbers)
        assert opened.player.queued == 21
        kept = tracemalloc.take_snapshot().filter_traces([OURS])  # other threads of this process allocate, too
        assert sum(trace.size for trace in kept.traces) < 100_000
    finally:
        tracemalloc.stop()


def test_a_number_that_is_too_long_is_no_token():
    asked = []

    def rows(_, token_ids):
        asked.extend(token_ids)
        opened.player.stop()
        return []

    opened = channel(rows)
    opened.receive(json.dumps({"type": "market", "assets_ids": ["7" * 78, "7" * 79, "x"]}))
    opened.player.play()

    assert asked == ["7" * 78]
