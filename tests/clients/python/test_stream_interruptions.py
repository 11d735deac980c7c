"""The stream client's interruptions: lost connections, malformed frames, and its own end."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading

import pytest

from presage_client import AsyncStream, Stream
from tests.clients.python.stream_servers import EITHER, KEY, event, greet_and_send, say, serving_sockets
from tests.patience import PATIENCE_S


@EITHER
def test_a_server_that_keeps_disconnecting_is_resumed(read):
    turns = itertools.count(1)

    def answer(socket):
        turn = next(turns)
        socket.send(say("hello", seq=0, oldest_seq=1, ts=1))
        after = json.loads(socket.recv())["resume_from"]
        socket.send(say("subscribed"))
        socket.send(event(after + 1))
        if turn % 3 == 0:
            socket.close(1013, f"too slow; last_seq={after + 1}")

    with serving_sockets(answer) as port:
        assert read(f"http://127.0.0.1:{port}", 7) == list(range(1, 8))


MALFORMED = [
    b"\xff",
    "[]",
    "1",
    "[" * 100_000,
    "{}",
    '{"type": "trade", "data": {}}',
    '{"type": "trade", "seq": "9", "ts": 1, "data": {}}',
    '{"type": "trade", "seq": 9, "ts": 1, "data": []}',
    '{"type": "error", "code": [], "detail": 1}',
    '{"type": "error", "code": "x"}',
    '{"type": "hello", "seq": "9"}',
]


@EITHER
@pytest.mark.parametrize("frame", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_frame_is_an_interruption(read, frame):
    turns = itertools.count()

    def answer(socket):
        if next(turns) == 0:
            socket.send(frame, text=True)
            for _ in socket:
                pass
        else:
            greet_and_send(socket)

    resume = None if '"hello"' in str(frame) else 4
    with serving_sockets(answer) as port:
        assert read(f"http://127.0.0.1:{port}", resume_from=resume) == [5 if resume else 1]
    assert next(turns) == 2


def test_closing_ends_a_pause():
    waiting = threading.Event()

    def pause(_=None):
        waiting.set()
        return 3600.0

    events = Stream("http://127.0.0.1:9", KEY)
    events._session.pause = pause
    thread = threading.Thread(target=list, args=(events,))
    thread.start()
    waiting.wait()
    events.close()
    thread.join()

    async def read():
        stream = AsyncStream("http://127.0.0.1:9", KEY)
        stream._session.pause = pause
        reading = asyncio.create_task(anext(stream, None))
        await asyncio.to_thread(waiting.wait)
        await stream.close()
        return await reading

    waiting.clear()
    assert asyncio.run(read()) is None


@pytest.mark.parametrize("asynchronous", [False, True])
def test_closing_while_connecting_leaves_no_socket(asynchronous):
    connecting, closed, over = threading.Event(), threading.Event(), threading.Event()

    def hold(connection, request):
        connecting.set()
        closed.wait()

    def answer(socket):
        for _ in socket:
            pass
        over.set()

    async def read(url):
        stream = AsyncStream(url, KEY)
        reading = asyncio.ensure_future(anext(stream, None))
        await asyncio.to_thread(connecting.wait)
        await stream.close()
        closed.set()
        assert await reading is None

    with serving_sockets(answer, process_request=hold) as port:
        url = f"http://127.0.0.1:{port}"
        if asynchronous:
            asyncio.run(read(url))
        else:
            stream = Stream(url, KEY)
            thread = threading.Thread(target=list, args=(stream,))
            thread.start()
            connecting.wait()
            stream.close()
            closed.set()
            thread.join()
        assert over.wait(PATIENCE_S)
