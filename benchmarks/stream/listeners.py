"""Many WebSocket clients in one process, as cheap as possible: `python -m benchmarks.stream.listeners …`.

Each parses frame headers and counts payloads; a few also record when they received which event.
"""

from __future__ import annotations

import array
import json
import select
import socket
import sys
import time
from pathlib import Path

READ = 1 << 18
SEQ = b'"seq":'
HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Listener:
    """A connected client."""

    def __init__(self, port: int, path: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.sendall(HANDSHAKE.format(path=path).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = self.socket.recv(READ)
            if not more:
                raise SystemExit(f"refused: {answer!r}")
            answer += more
        head, _, rest = answer.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise SystemExit(f"refused: {answer!r}")
        self.socket.setblocking(False)
        self.left = 0  # bytes of the current frame still to come
        self.head = b""  # of a frame whose header is incomplete
        self.frames = self.payload = 0
        self.take(rest)

    def take(self, data: bytes | memoryview) -> None:
        """Process received bytes frame by frame."""
        at, size = 0, len(data)
        while at < size:
            if self.left:
                step = min(self.left, size - at)
                self.left -= step
                self.payload += step
                at += step
                continue
            head = self.head + bytes(data[at : at + 10 - len(self.head)])
            needed = 2 if len(head) < 2 or head[1] < 126 else 4 if head[1] == 126 else 10
            if len(head) < needed:
                self.head = head
                return
            at += needed - len(self.head)
            self.head = b""
            self.left = head[1] if needed == 2 else int.from_bytes(head[2:needed], "big")
            if head[0] & 0x0F == 1:
                self.frames += 1
            else:
                self.payload -= self.left  # a ping: not counted


def main(port: int, path: str, count: int, sampled: int, file: Path) -> None:
    """Connect, print that, and listen until stdin closes; write the samples to the file."""
    listeners: dict[int, Listener] = {}
    poll = select.epoll()
    for _ in range(count):
        one = Listener(port, path)
        listeners[one.socket.fileno()] = one
        poll.register(one.socket, select.EPOLLIN)
    samplers = dict.fromkeys(list(listeners)[:sampled], array.array("q"))
    samplers = {fd: array.array("q") for fd in samplers}
    poll.register(sys.stdin.fileno(), select.EPOLLIN)
    print("ready", flush=True)
    buffer = memoryview(bytearray(READ))
    closed = 0
    while True:
        for fd, _ in poll.poll():
            if fd not in listeners:
                if not sys.stdin.buffer.readline():
                    finish(listeners, samplers, closed, file)
                    return
                print(json.dumps(counted(listeners)), flush=True)
                continue
            one = listeners[fd]
            try:
                size = one.socket.recv_into(buffer)
            except BlockingIOError:
                continue
            except OSError:
                size = 0
            if not size:
                closed += 1
                poll.unregister(fd)
                continue
            if (samples := samplers.get(fd)) is not None:
                note(samples, bytes(buffer[max(0, size - 2000) : size]))
            one.take(buffer[:size])


def note(samples: array.array[int], end: bytes) -> None:
    """Record the newest event received by now."""
    at = end.rfind(SEQ)
    stop = end.find(b",", at)
    if at >= 0 and stop > at:
        samples.extend((int(end[at + len(SEQ) : stop]), time.monotonic_ns()))


def counted(listeners: dict[int, Listener]) -> dict[str, int]:
    """Return the totals received."""
    return {
        "frames": sum(each.frames for each in listeners.values()),
        "payload": sum(each.payload for each in listeners.values()),
        "least": min(each.payload + each.frames for each in listeners.values()),
        "most": max(each.payload + each.frames for each in listeners.values()),
    }


def finish(listeners: dict[int, Listener], samplers: dict[int, array.array[int]], closed: int, file: Path) -> None:
    """Write all results."""
    print(json.dumps(counted(listeners) | {"closed": closed}), flush=True)
    with file.open("wb") as out:
        for samples in samplers.values():
            out.write(len(samples).to_bytes(8, "little"))
            out.write(samples.tobytes())


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
