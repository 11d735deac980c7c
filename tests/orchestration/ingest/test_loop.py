import asyncio
import socket

import pytest

from orchestration.ingest import loop


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
