"""Clients who mean ill: `python -m benchmarks.stream.mischief PORT PATH [KIND…]`, until its input ends.

They take what all others leave of one core: what those notice is to be the server's doing, not that the machine is
busy. Being nice is too little for that: also a nice process runs to the end of its slice before others get the core.
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

PAUSE_S = 0.2  # between two times of one kind
PATIENCE_S = 5.0
ENDLESS_S = 3.0
BEGUN = b"GET /stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
FIN = 0x80
CONTINUATION, TEXT, PING = 0, 1, 9


def framed(payload: bytes, first: int = FIN | TEXT, *, size: int | None = None) -> bytes:
    """Give a frame as a client sends it, by a mask that changes nothing; `size` is what it claims to hold."""
    size = len(payload) if size is None else size
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 65_536:
        head = bytes([first, 0x80 | 126]) + size.to_bytes(2, "big")
    else:
        head = bytes([first, 0x80 | 127]) + size.to_bytes(8, "big")
    return head + bytes(4) + payload


class Mischief(threading.Thread):
    """One kind of it, over and over."""

    def __init__(self, name: str, act: Callable[[], None], enough: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.act, self.enough, self.times = act, enough, 0

    def run(self) -> None:
        """Begin again until it is enough."""
        while not self.enough.wait(PAUSE_S):
            with contextlib.suppress(OSError, SystemExit):
                self.act()
                self.times += 1


class Idle:
    """Connections whose handshake never ends: silent ones, and ones that send a little more of it each second."""

    def __init__(self, port: int, count: int, more: bytes) -> None:
        self._port, self._more = port, more
        self.opened = 0
        self._sockets = [self._open() for _ in range(count)]

    def _open(self) -> socket.socket:
        one = socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE_S)
        one.sendall(BEGUN)
        one.setblocking(False)
        self.opened += 1
        return one

    def tend(self) -> None:
        """Say a little more, and open those anew that the server has closed."""
        for number, one in enumerate(self._sockets):
            with contextlib.suppress(OSError):
                if closed(one):
                    one.close()
                    self._sockets[number] = self._open()
                elif self._more:
                    one.send(self._more)


def closed(one: socket.socket) -> bool:
    """Tell whether the server has had enough; it says nothing otherwise."""
    try:
        one.recv(1 << 16)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def main(port: int, path: str, chosen: list[str]) -> None:
    """Do it all at once, or what is chosen of it, and tell how often."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    enough = threading.Event()
    threads = [Mischief(name, partial(act, port, path), enough) for name, act in KINDS.items() if name in chosen]
    idle = {name: Idle(port, count, more) for name, (count, more) in UNFINISHED.items() if name in chosen}
    for thread in threads:
        thread.start()
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 1.0)[0]:
        for each in idle.values():
            each.tend()
    enough.set()
    for thread in threads:
        thread.join(timeout=PATIENCE_S)
    told = {thread.name: thread.times for thread in threads}
    print(json.dumps(told | {name: each.opened for name, each in idle.items()}))


def refused(data: bytes) -> Callable[[int, str], None]:
    """Say what is refused, and wait to be closed."""

    def act(port: int, path: str) -> None:
        with Listener(port, path).socket as one:
            one.settimeout(PATIENCE_S)
            with contextlib.suppress(ConnectionError):  # closed at the first bytes of many
                one.sendall(data)
            while one.recv(1 << 18):
                pass

    return act


def flood(data: bytes) -> Callable[[int, str], None]:
    """Say what is allowed, though not so often, and go."""

    def act(port: int, path: str) -> None:
        with Listener(port, path).socket as one:
            one.settimeout(PATIENCE_S)
            one.sendall(data)

    return act


def endless(port: int, path: str) -> None:
    """Break the rules, and send on without heeding the answer."""
    until = time.monotonic() + ENDLESS_S
    with Listener(port, path).socket as one, contextlib.suppress(OSError):
        one.settimeout(PATIENCE_S)
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
