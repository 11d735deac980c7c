"""Benchmark clients, and the machine cost of a request: CPU seconds of processes, from /proc."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
TIMEOUT_S = 10.0


class Answer(NamedTuple):
    """A response's status, size and duration."""

    status: int
    size: int
    seconds: float


class LoadClient:
    """One keep-alive connection; sends one request at a time."""

    def __init__(self, port: int, address: str = "") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S, source_address=(address, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head, self._due = b"", -1
        self.status = self.size = 0
        self.body: list[bytes] = []

    def ask(self, request: bytes) -> Answer:
        """Send a request and wait for the complete response."""
        began = time.perf_counter()
        self.send(request)
        while not self.receive():
            pass
        return Answer(self.status, self.size, time.perf_counter() - began)

    def send(self, request: bytes) -> None:
        """Send a request."""
        self._head, self._due = b"", -1
        self.body = []
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Read available data; return whether the response is complete."""
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the server has closed the connection")
        if self._due < 0:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end:
                return False
            self.status = int(head[9:12])
            _, _, rest = head.lower().partition(b"\r\ncontent-length:")
            self._due = self.size = int(rest.partition(b"\r\n")[0] or 0)
        self._due -= len(data)
        self.body.append(data)
        return self._due <= 0

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()


def request(method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
    """Return an HTTP request as bytes."""
    given = {"Host": "127.0.0.1", **headers, **({"Content-Length": str(len(body))} if body else {})}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def press(port: int, requests: Sequence[bytes], *, clients: int, seconds: float) -> int:
    """Send requests from several clients as fast as they are answered; return the number of responses."""
    turns: Iterator[bytes] = cycle(requests)
    answered, until = 0, time.monotonic() + seconds
    several = [LoadClient(port) for _ in range(clients)]
    with selectors.DefaultSelector() as selector:
        for client in several:
            selector.register(client.socket, selectors.EVENT_READ, client)
            client.send(next(turns))
        open_ = len(several)
        while open_:
            ready = selector.select(TIMEOUT_S)
            if not ready:
                raise TimeoutError("the server does not answer")
            for key, _ in ready:
                client = key.data
                if not client.receive():
                    continue
                if client.status != 200:
                    raise ValueError(f"status {client.status}: {b''.join(client.body)[:300]!r}")
                answered += 1
                if time.monotonic() < until:
                    client.send(next(turns))
                else:
                    selector.unregister(client.socket)
                    client.close()
                    open_ -= 1
    return answered


def cpu_s(pids: Iterable[int]) -> float:
    """Return the CPU time used by processes, kernel time included."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(FileNotFoundError):  # a connection closed meanwhile
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) * TICK_S
    return total


def children(pid: int) -> list[int]:
    """Return a process's child processes."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
