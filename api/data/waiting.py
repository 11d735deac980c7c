"""Makes psycopg wait on gevent's loop: gunicorn's master imports it before gevent has patched anything.

A query waits on a loop watcher, a third cheaper than the poll object that psycopg would create.
"""

from __future__ import annotations

import threading
import time
from select import POLLIN, POLLOUT
from typing import TYPE_CHECKING, Any

import psycopg.connection
import psycopg.waiting
from gevent import Timeout, get_hub, monkey
from gevent.selectors import GeventSelector
from psycopg import errors

if TYPE_CHECKING:
    from collections.abc import Generator

_poll = monkey.get_original("select", "poll")


def install() -> None:
    """Make every connection of this process wait on gevent's loop, if gevent has patched the socket module."""
    if monkey.is_module_patched("socket"):
        psycopg.waiting.wait = wait
        psycopg.waiting.DefaultSelector = GeventSelector  # type: ignore[attr-defined]  # of new connections
        psycopg.connection.Lock = threading.Lock  # type: ignore[attr-defined]  # of two users of one connection


def wait(gen: Generator[Any, Any, Any], fileno: int, interval: float = 0.0, timeout: float | None = None) -> Any:  # noqa: ARG001
    """Run a psycopg generator to completion; the signature is psycopg's."""
    until = None if timeout is None else time.monotonic() + timeout
    try:
        wanted = int(next(gen))
        hub = get_hub()
        while True:
            watcher = hub.loop.io(fileno, wanted)
            try:
                if not _waited(hub, watcher, until):
                    gen.send(psycopg.waiting.READY_NONE)
                    raise errors._WaitTimeout("wait timeout expired")  # noqa: SLF001 (what psycopg's own raise)
            finally:
                watcher.close()
            wanted = int(gen.send(wanted if wanted != psycopg.waiting.WAIT_RW else _ready(fileno)))
    except StopIteration as ended:
        return ended.value


def _waited(hub: Any, watcher: Any, until: float | None) -> bool:
    if until is None:
        hub.wait(watcher)
        return True
    with Timeout(max(until - time.monotonic(), 0.0)) as limit:
        try:
            hub.wait(watcher)
        except Timeout as over:
            if over is not limit:
                raise
            return False
    return True


def _ready(fileno: int) -> int:
    """Return which directions are ready: 1 for reading, 2 for writing."""
    poll = _poll()
    poll.register(fileno, POLLIN | POLLOUT)
    found = poll.poll(0)
    events = found[0][1] if found else POLLIN
    return (1 if events & ~POLLOUT else 0) | (2 if events & POLLOUT else 0)
