"""Catches up clients that are behind, a page at a time in turns, so that they do not delay live clients."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING

import gevent
import psycopg

from api.errors import Problem
from api.stream.frames import TRY_LATER
from api.stream.stored import WIDTH, EventStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection, Pool
    from api.stream.subscriber import Subscriber
    from sql.stream_reader import StreamEvent, StreamReader

log = logging.getLogger("presage.stream")

MAX_CONCURRENT_READS = 2  # concurrent readers: while one waits for the database, the other encodes
IDLE_S = 0.01
RETRY_S = 0.5
STALL_S = 30.0  # a replay whose client reads nothing is ended


class CatchUp:
    """A client that is catching up, in one of its turns."""

    __slots__ = ("moved_at", "subscriber", "turn")

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber, self.turn, self.moved_at = subscriber, subscriber.turn, time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the client left or changed its subscription since."""
        return self.subscriber.turn != self.turn or self.subscriber.socket.closed


class CatchUpQueue:
    """The clients that are behind. `newest` returns the hub's position; `caught_up` takes over a client there."""

    def __init__(
        self,
        pool: Pool,
        reader: StreamReader,
        newest: Callable[[], int],
        caught_up: Callable[[Subscriber], bool],
        queue_bytes: int,
    ) -> None:
        self._pool, self._reader = pool, reader
        self.stored = EventStore(self._read)
        self._newest, self._caught_up, self._room = newest, caught_up, queue_bytes // 2
        self._behind: deque[CatchUp] = deque()
        self._running = 0

    def _read(self, after: int, upto: int) -> list[StreamEvent]:
        def read(conn: Connection) -> list[StreamEvent]:
            return self._reader.read(conn, after, upto, WIDTH).events

        return self._pool.read(read)

    def add(self, subscriber: Subscriber) -> None:
        """Catch a client up, then make it live, without gaps or duplicates."""
        self._behind.append(CatchUp(subscriber))
        if self._running < MAX_CONCURRENT_READS:
            self._running += 1
            gevent.spawn(self._run)

    def _run(self) -> None:
        idle = 0  # turns without progress
        try:
            while self._behind:
                one = self._behind.popleft()
                if one.over:
                    continue
                try:
                    idle = 0 if self._step(one) else idle + 1
                except Exception:
                    log.exception("a replay failed")
                    one.subscriber.socket.close(TRY_LATER, "the stream cannot be read right now")
                if idle > len(self._behind):
                    idle = 0
                    gevent.sleep(IDLE_S)
                else:
                    gevent.sleep(0)
        finally:
            self._running -= 1

    def _step(self, one: CatchUp) -> bool:
        """Send the next page if there is one and the client has room; return whether there was progress."""
        subscriber = one.subscriber
        if subscriber.position >= self._newest():
            if self._caught_up(subscriber):
                return True
        elif subscriber.socket.owed < self._room:
            self._send(one)
            one.moved_at = time.monotonic()
            self._behind.append(one)
            return True
        elif time.monotonic() - one.moved_at > STALL_S:
            subscriber.socket.close_slow()
            return True
        self._behind.append(one)
        return False

    def _send(self, one: CatchUp) -> None:
        subscriber = one.subscriber
        try:
            page = self.stored.page(subscriber.position, self._newest())
        except (psycopg.Error, Problem) as error:
            log.warning("a replay is interrupted: %s", error)
            gevent.sleep(RETRY_S)
            return
        if one.over:
            return
        part = page.part(subscriber, subscriber.position)
        if not part.whole and subscriber.resuming is not None:  # expired from storage since the request
            subscriber.resuming = subscriber.resuming._replace(complete=False)
        for data, seq in part.packed:
            subscriber.socket.push(data, seq)
        subscriber.position = part.last
