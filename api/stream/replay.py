"""Catches up clients that are behind, at most a page at a time in turns, so that they do not delay live clients."""

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
STALL_S = 30.0  # a client that reads nothing for this long is disconnected
BEHIND_S = 60.0  # and one that fell behind the live events and has not caught up with them by then


class CatchUp:
    """A client that is catching up, in one of its turns."""

    __slots__ = ("moved_at", "owed", "subscriber", "turn")

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber, self.turn = subscriber, subscriber.turn
        self.owed, self.moved_at = subscriber.socket.owed, time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the client left or changed its subscription since."""
        return self.subscriber.turn != self.turn or self.subscriber.socket.closed

    @property
    def too_slow(self) -> bool:
        """Whether a client that owes bytes reads nothing, or too little to catch up; to be asked at each turn."""
        owed, now, since = self.subscriber.socket.owed, time.monotonic(), self.subscriber.behind_since
        if owed < self.owed:
            self.moved_at = now
        self.owed = owed
        return now - self.moved_at > STALL_S or (since is not None and now - since > BEHIND_S)


class CatchUpQueue:
    """The clients that are behind.

    `newest` returns the hub's position; `caught_up` takes over a client there, `too_slow` one that reads too slowly.
    """

    def __init__(
        self,
        pool: Pool,
        reader: StreamReader,
        newest: Callable[[], int],
        *,
        caught_up: Callable[[Subscriber], bool],
        too_slow: Callable[[Subscriber], None],
    ) -> None:
        self._pool, self._reader = pool, reader
        self.stored = EventStore(self._read)
        self._newest, self._caught_up, self._too_slow = newest, caught_up, too_slow
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
        """Send of the next page what the kernel takes, if there is one; return whether there was progress."""
        subscriber = one.subscriber
        if subscriber.socket.owed:
            if one.too_slow:
                self._too_slow(subscriber)
                return True
        elif subscriber.position < self._newest():
            self._send(one)
            one.owed, one.moved_at = subscriber.socket.owed, time.monotonic()
            self._behind.append(one)
            return True
        elif self._caught_up(subscriber):
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
        if not part.whole:  # expired from storage since the request
            if subscriber.resuming is None:
                subscriber.socket.close(TRY_LATER, "events are missing; last_seq={seq}")
                return
            subscriber.resuming = subscriber.resuming._replace(complete=False)
        for data, seq in part.packed:
            if subscriber.socket.owed:
                return
            subscriber.socket.push(data, seq, subscriber.position)
            subscriber.position = seq
        subscriber.position = part.last
