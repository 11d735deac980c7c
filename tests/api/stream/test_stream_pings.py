"""Pings of clients that read slowly are answered: many disconnect without a pong."""

from __future__ import annotations

import io
from types import SimpleNamespace

import gevent
import pytest
from gevent import socket as sockets

from api.stream.frames import PONG, TEXT, frame
from api.stream.socket import Socket
from tests.api.raw import PING, framed, read_frame

LARGE = 4 << 20  # more than the kernel takes


class Connection:
    """A connection to a client that has sent these frames, and reads when it is told to."""

    def __init__(self, *said: bytes) -> None:
        self.ours, self.theirs = sockets.socketpair()
        handler = SimpleNamespace(socket=self.ours, rfile=io.BytesIO(b"".join(said) + framed(b"over")))
        self.socket = Socket({}, handler)

    def read_pings(self) -> None:
        assert self.socket.receive() == "over"

    def received(self) -> list[tuple[int, int, bytes]]:
        """Return the opcode, size and beginning of all frames that are sent until nothing more is owed."""
        self.theirs.settimeout(0.01)
        data = b""
        while True:
            try:
                data += self.theirs.recv(1 << 20)
            except TimeoutError:
                if not self.socket.owed:
                    break
        frames, sent = [], io.BytesIO(data)
        while sent.tell() < len(data):
            each = read_frame(sent.read)
            frames.append((each.opcode, len(each.payload), each.payload[:4]))
        return frames


@pytest.fixture
def connected():
    opened = []

    def connect(*said: bytes) -> Connection:
        opened.append(Connection(*said))
        return opened[-1]

    yield connect
    for each in opened:
        each.socket.finish()
        each.ours.close()
        each.theirs.close()


def text(payload: bytes) -> bytes:
    return frame(payload, TEXT)


def test_a_ping_is_answered_before_all_that_is_owed_but_for_what_was_begun(connected):
    client = connected(framed(b"here", PING))
    client.socket.push(text(b"x" * LARGE), 1, 0)
    client.socket.push(text(b"y" * 10), 2, 1)
    owed = client.socket.owed
    client.read_pings()
    assert client.socket.owed == owed + len(frame(b"here", PONG))
    assert client.received() == [(TEXT, LARGE, b"xxxx"), (PONG, 4, b"here"), (TEXT, 10, b"yyyy")]
    assert client.socket.sent_seq == 2


def test_of_pings_that_wait_only_the_newest_is_answered(connected):
    client = connected(*(framed(b"%04d" % at, PING) for at in range(500)))
    client.socket.push(text(b"x" * LARGE), 1, 0)
    owed = client.socket.owed
    client.read_pings()
    assert client.socket.owed == owed + len(frame(b"0499", PONG))
    assert client.received() == [(TEXT, LARGE, b"xxxx"), (PONG, 4, b"0499")]


def test_what_is_taken_back_leaves_the_answer(connected):
    client = connected(framed(b"here", PING))
    client.socket.push(text(b"x" * LARGE), 1, 0)
    client.socket.push(text(b"y" * LARGE), 2, 1)
    client.socket.push(text(b"z" * LARGE), 3, 2)
    client.read_pings()
    assert client.socket.take_back() == 1
    assert client.received() == [(TEXT, LARGE, b"xxxx"), (PONG, 4, b"here")]
    assert client.socket.owed == 0


def test_each_ping_of_a_client_that_reads_is_answered(connected):
    client = connected(*(framed(b"%04d" % at, PING) for at in range(50)))
    client.read_pings()
    gevent.sleep(0)
    assert client.received() == [(PONG, 4, b"%04d" % at) for at in range(50)]
