"""The capacity benchmark's subscriber, over a real socket: what it counts, and its priority."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

from websockets.sync.server import serve

from benchmarks.capacity import subscriber as listening
from benchmarks.capacity.subscriber import NICE, Subscriber
from tests.patience import until


def frame(*seqs):
    """Return the messages of some numbers as the stream sends them: an array."""
    return "[" + ",".join(f'{{"type":"trade","seq":{seq},"data":{{}}}}' for seq in seqs) + "]"


@contextmanager
def stream(first, resumed):
    """Serve the frames of a first connection, and those of one that resumes; yield the URL and the requested paths."""
    paths = []

    def handle(socket):
        paths.append(socket.request.path)
        for each in resumed if "resume_from" in socket.request.path else first:
            socket.send(each)
        for _ in socket:  # until the client leaves
            pass

    with serve(handle, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/stream?api_key=k", paths
        finally:
            server.shutdown()


def test_a_subscriber_counts_what_it_misses_after_it_resumed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(listening, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    ended = '{"type":"replay_completed","seq":7,"complete":false}'
    with stream([frame(1, 2), frame(3)], [frame(4, 6), ended, frame(7)]) as (url, paths):
        subscriber = Subscriber(url, leaves_after_s=10, away_s=0.01)
        subscriber.start()
        until(lambda: subscriber.last == 3)
        now[0] = 10.0
        until(lambda: subscriber.last == 7)
        niceness = os.getpriority(os.PRIO_PROCESS, subscriber.native_id)
        got = subscriber.end(7)

    assert paths == ["/stream?api_key=k", "/stream?api_key=k&resume_from=3"]
    assert (got.messages, got.missing, got.resumed, got.incomplete, got.behind) == (6, 1, 4, 1, 0)
    assert niceness == max(NICE, ours)
    assert os.getpriority(os.PRIO_PROCESS, 0) == ours
