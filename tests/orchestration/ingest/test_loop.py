import asyncio
import socket

import pytest

from orchestration.feeds.shards import Shard
from orchestration.ingest import loop
from orchestration.ingest.session import flush_ms


@pytest.fixture
def waits(monkeypatch):
    """Record how long the selector lets events gather, instead of waiting."""
    recorded = []
    monkeypatch.setattr(loop.time, "sleep", recorded.append)
    return recorded


def test_events_gather_before_they_are_looked_for(waits):
    ours, theirs = socket.socketpair()
    with loop.GatheringSelector() as selector, ours, theirs:
        selector.register(ours, 1)
        theirs.send(b"x")

        assert [key.fileobj for key, _ in selector.select(None)] == [ours]
        assert [key.fileobj for key, _ in selector.select(5)] == [ours]
    assert waits == [loop.GATHER_S, loop.GATHER_S]


def test_a_timer_is_not_late_for_it_and_work_at_hand_does_not_wait(waits):
    with loop.GatheringSelector() as selector:
        assert selector.select(0.002) == []
        assert selector.select(0) == []
    assert waits == [0.002]


def test_the_loop_runs_timers_sockets_and_threads():
    async def work():
        reader, writer = await asyncio.open_connection(*server.getsockname())
        accepted, _ = await asyncio.to_thread(server.accept)
        with accepted:
            await asyncio.to_thread(accepted.sendall, b"line\n")
            async with asyncio.timeout(60):
                line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return line

    with socket.create_server(("127.0.0.1", 0)) as server, asyncio.Runner(loop_factory=loop.new_event_loop) as runner:
        assert runner.run(work()) == b"line\n"


def test_how_long_events_gather_changes_while_the_loop_runs():
    async def change():
        loop.gather(0.25)
        return getattr(asyncio.get_running_loop(), "selector", None)

    with asyncio.Runner(loop_factory=loop.new_event_loop) as runner:
        assert runner.run(change()).gather_s == 0.25
    with asyncio.Runner() as runner:
        assert runner.run(change()) is None, "any other loop stays as it is"


@pytest.mark.parametrize(
    ("flush_ms", "sockets", "deferring", "gathers_ms"),
    [
        (150, 2, False, 50),
        (150, 2, True, 100),
        (150, 80, False, 80),
        (150, 186, False, 150),
        (300, 50, False, 100),
        (500, 10, True, 150),
        (50, 2, False, 16.7),
    ],
)
def test_events_gather_longer_between_rarer_commits_and_over_more_sockets(flush_ms, sockets, deferring, gathers_ms):
    seconds = loop.gather_s(flush_ms / 1000, sockets, ready=True, deferring=deferring)

    assert seconds * 1000 == pytest.approx(gathers_ms, abs=0.1)


def test_sockets_are_opened_without_waiting_for_more_events():
    assert loop.gather_s(0.5, 800, ready=False, deferring=True) == loop.OPENING_GATHER_S


@pytest.mark.parametrize(("shards", "milliseconds"), [(1, 150), (2, 150), (3, 225), (4, 300), (8, 500), (64, 500)])
def test_more_shards_commit_less_often_each(shards, milliseconds):
    assert flush_ms(Shard(1, shards)) == milliseconds
