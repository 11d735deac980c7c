"""Small WebSocket servers of the stream, and the events that either client reads from them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import threading

import pytest
from websockets.sync.server import serve

from presage_client import AsyncStream, Stream

KEY = "psg_secret+key"


def numbers(events, count):
    return [event.seq for event in itertools.islice(events, count)]


async def numbers_of(stream, count):
    return [(await anext(stream)).seq for _ in range(count)]


def event(seq):
    return json.dumps({"type": "trade", "seq": seq, "ts": 1, "market_id": None, "data": {}})


def say(kind, **said):
    return json.dumps({"type": kind, **said})


@contextlib.contextmanager
def serving_sockets(answer, **options):
    """A WebSocket server; gives its port."""
    with serve(answer, "127.0.0.1", 0, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


def greet_and_send(socket):
    """Send one event, the one after the position that the client has, and wait for the end."""
    socket.send(say("hello", seq=0, oldest_seq=1, ts=1))
    after = json.loads(socket.recv())["resume_from"]
    socket.send(say("subscribed"))
    socket.send(event(after + 1))
    for _ in socket:
        pass


def by_threads(url, count=1, **options):
    with Stream(url, KEY, **options) as events:
        events._session.pause = lambda _=None: 0.0
        return numbers(events, count)


def by_asyncio(url, count=1, **options):
    async def read():
        async with AsyncStream(url, KEY, **options) as events:
            events._session.pause = lambda _=None: 0.0
            return await numbers_of(events, count)

    return asyncio.run(read())


EITHER = pytest.mark.parametrize("read", [by_threads, by_asyncio])
