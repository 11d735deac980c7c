"""Hostile clients: `python -m benchmarks.stream.hostile_clients PORT PATH [KIND…]`, until stdin closes.

They use only a core's idle time: what other clients notice should be caused by the server, not by a busy machine.
Niceness alone is not enough for that: a nice process too runs to the end of its slice before others get the core.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.stream.listeners import Listener

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSE_S = 0.2  # between two attempts of one kind
TIMEOUT_S = 5.0
ENDLESS_S = 3.0
BEGUN = b"GET /stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
FIN = 0x80
CONTINUATION, TEXT, PING = 0, 1, 9


def framed(payload: bytes, first: int = FIN | TEXT, *, size: int | None = None) -> bytes:
    """Return a client's frame, with a mask that changes nothing; `size` is the length it claims."""
    size = len(payload) if size is None else size
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 65_536:
        head = bytes([first, 0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([first, 0x80 | 127]) + size.to_bytes(8, "big")
    return head + bytes(4) + payload


class HostileClient(threading.Thread):
    """One kind of hostile behaviour, repeated."""

    def __init__(self, name: str, act: Callable[[], None], enough: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.act, self.enough, self.times = act, enough, 0

    def run(self) -> None:
        """Repeat until stopped."""
        while not self.enough.wait(PAUSE_S):
            with contextlib.suppress(OSError, SystemExit):
                self.act()
                self.times += 1


class Idle:
    """Connections whose handshake never completes: silent ones, and ones that send a little more each second."""

    def __init__(self, port: int, count: int, more: bytes) -> None:
        self._port, self._more = port, more
        self.opened = 0
        self._sockets = [self._open() for _ in range(count)]

    def _open(self) -> socket.socket:
        one = socket.create_connection(("127.0.0.1", self._port), timeout=TIMEOUT_S)
        one.sendall(BEGUN)
        one.setblocking(False)
        self.opened += 1
        return one

    def tend(self) -> None:
        """Send a little more, and reopen connections that the server closed."""
        for number, one in enumerate(self._sockets):
            with contextlib.suppress(OSError):
                if closed(one):
                    one.close()
                    self._sockets[number] = self._open()
                elif self._more:
                    one.send(self._more)


def closed(one: socket.socket) -> bool:
    """Return whether the server closed the connection; it sends nothing otherwise."""
    try:
        one.recv(1 << 16)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def main(port: int, path: str, chosen: list[str]) -> None:
    """Run all kinds at once, or the chosen ones, and print how often each ran."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    enough = threading.Event()
    threads = [HostileClient(name, partial(act, port, path), enough) for name, act in KINDS.items() if name in chosen]
    idle = {name: Idle(port, count, more) for name, (count, more) in UNFINISHED.items() if name in chosen}
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 1.0)[0]:
        for each in idle.values():
            each.tend()
    enough.set()
    for thread in threads:
        thread.join(timeout=TIMEOUT_S)
    counts = {thread.name: thread.times for thread in threads}
    print(json.dumps(counts | {name: each.opened for name, each in idle.items()}))


def refused(data: bytes) -> Callable[[int, str], None]:
    """Return a client that sends invalid data and waits to be closed."""

    def act(port: int, path: str) -> None:
        with Listener(port, path).socket as one:
            one.settimeout(TIMEOUT_S)
            with contextlib.suppress(ConnectionError):  # closed at the first bytes of many
                one.sendall(data)
            while one.recv(1 << 18):
                pass

    return act


def flood(data: bytes) -> Callable[[int, str], None]:
    """Return a client that sends valid data too often, and leaves."""

    def act(port: int, path: str) -> None:
        with Listener(port, path).socket as one:
            one.settimeout(TIMEOUT_S)
            one.sendall(data)

    return act


def endless(port: int, path: str) -> None:
    """Break the protocol, and keep sending without reading the response."""
    until = time.monotonic() + ENDLESS_S
    with Listener(port, path).socket as one, contextlib.suppress(OSError):
        one.settimeout(TIMEOUT_S)
        one.sendall(COMPRESSED)
        while time.monotonic() < until:
            one.sendall(LARGE)


LARGE = framed(b"x" * (8 << 20))
COMPRESSED = framed(b"x", FIN | 0x40 | TEXT)
KINDS: dict[str, Callable[[int, str], None]] = {
    "8 MiB frame": refused(LARGE),
    "compressed frame": refused(COMPRESSED),
    "fragment flood": refused(framed(b" ", TEXT) + framed(b"", CONTINUATION) * 5000),
    "wrong UTF-8": refused(framed(b"\xff" * 60_000)),
    "ping flood": flood(framed(b"p" * 125, FIN | PING) * 2000),
    "resume flood": flood(framed(b'{"action":"subscribe","resume_from":0}') * 500),
    "endless sender": endless,
}
UNFINISHED = {"half-open handshakes": (1000, b""), "slow handshakes": (50, b"X-A: b\r\n")}


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:] or [*KINDS, *UNFINISHED])
