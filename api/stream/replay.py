"""Replays: clients that are behind take turns, a page each, so that many of them do not keep the live ones waiting."""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING

import gevent
import psycopg

from api.errors import Problem
from api.stream.frames import TRY_LATER
from api.stream.stored import Stored, between

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Pool
    from api.stream.subscriber import Subscriber

log = logging.getLogger("presage.stream")

AT_ONCE = 2  # while one waits for the database, the other packs
IDLE_S = 0.01
RETRY_S = 0.5
STALL_S = 30.0  # a replay that the client does not take in ends


class Behind:
    """A client that catches up, in one of its turns."""

    __slots__ = ("moved_at", "subscriber", "turn")

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber, self.turn, self.moved_at = subscriber, subscriber.turn, time.monotonic()

    @property
    def over(self) -> bool:
        """Whether this is no longer wanted."""
        return self.subscriber.turn != self.turn or self.subscriber.socket.closed


class Replays:
    """Those who are behind. `newest` tells up to where the hub has read; `caught_up` takes in who has come so far."""

    def __init__(
        self, pool: Pool, newest: Callable[[], int], caught_up: Callable[[Subscriber], bool], queue_bytes: int
    ) -> None:
        self.stored = Stored(lambda after, upto: pool.read(lambda conn: between(conn, after, upto)))
        self._newest, self._caught_up, self._room = newest, caught_up, queue_bytes // 2
        self._behind: deque[Behind] = deque()
        self._running = 0

    def add(self, subscriber: Subscriber) -> None:
        """Have a client catch up, and go live then: no gap, nothing twice."""
        self._behind.append(Behind(subscriber))
        if self._running < AT_ONCE:
            self._running += 1
            gevent.spawn(self._run)

    def _run(self) -> None:
        idle = 0  # turns without anything to do
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

    def _step(self, one: Behind) -> bool:
        """Go a page further, if there is one and the client takes it in."""
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
            subscriber.socket.let_go()
            return True
        self._behind.append(one)
        return False

    def _send(self, one: Behind) -> None:
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
        if not part.whole and subscriber.resuming is not None:  # dropped with its age since it was asked for
            subscriber.resuming = subscriber.resuming._replace(complete=False)
        for data, seq in part.packed:
            subscriber.socket.push(data, seq)
        subscriber.position = part.last
