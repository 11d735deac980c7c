"""Ports for programs that a test starts and that open their own listening socket."""

from __future__ import annotations

import random
import socket

FIRST, LAST = 12_000, 29_999  # below those that Linux gives outgoing connections (ip_local_port_range, from 32768 on)
_generator = random.SystemRandom()  # not the seeded one: all workers of a run would take the same ports


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody uses, and that no outgoing connection takes before the program does."""
    while True:
        port = _generator.randint(FIRST, LAST)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
