"""Reads each event once in a worker, and hands it to all who want it; those who lag are let go."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from typing import TYPE_CHECKING

import gevent
import psycopg
from gevent.event import Event as Signal

from api.errors import Problem
from api.stream import messages
from api.stream.socket import GOING_AWAY, NOT_ALLOWED, PING, TRY_LATER
from api.stream.subscriber import Event, Filter, Resuming, Subscriber, frames
from sql.queries import stream as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.pool import Connection, Pool

log = logging.getLogger("presage.stream")

BATCH = 5000  # events read at once
REPLAYED = 1000  # the same for one client's replay
TURN = 200  # sends before others get a turn
PING_S = 25.0
DEAD_S = 60.0  # nothing heard for so long, although pinged twice
HOLD_S = 0.25
STALL_S = 30.0  # a replay that the client does not take in ends
RETRY_S = 0.5


class Hub:
    """The subscribers of one worker. Runs while there are any."""

    def __init__(
        self, pool: Pool, keys_ended: Callable[[], int], *, poll_ms: int = 15, queue_bytes: int = 2 << 20
    ) -> None:
        self._pool, self._poll_s, self._queue_bytes = pool, poll_ms / 1000, queue_bytes
        self._keys_ended = keys_ended
        self.subscribers: set[Subscriber] = set()
        self._live: dict[Filter, set[Subscriber]] = {}
        self._by_market: dict[str, set[Filter]] = defaultdict(set)
        self._of_all: set[Filter] = set()
        self._ready = Signal()
        self._running: gevent.Greenlet | None = None
        self.last = 0  # the newest event read
        self._handed_out = 0  # the newest event that everyone live has been sent, who wants it
        self.oldest = 0  # the oldest that can be replayed

    # --- Coming and going

    def add(self, subscriber_at: Callable[[int], Subscriber]) -> Subscriber:
        """Take in a client, who stands at the newest event."""
        if self._running is None or self._running.dead:
            self._ready.clear()
            self._running = gevent.spawn(self._run)
        if not self._ready.wait(timeout=5):
            raise Problem("overloaded", "The stream cannot be read right now", headers={"Retry-After": "1"})
        subscriber = subscriber_at(self.last)
        self.subscribers.add(subscriber)
        return subscriber

    def remove(self, subscriber: Subscriber) -> None:
        """Forget a client."""
        self.subscribers.discard(subscriber)
        self._leave(subscriber)

    def release(self, subscriber: Subscriber) -> None:
        """Begin to send to a client that was held back."""
        if subscriber.held and subscriber in self.subscribers:
            self.restart(subscriber)

    def restart(self, subscriber: Subscriber, wants: Filter | None = None) -> None:
        """Go on from where a client stands, with what it wants from now on."""
        self._leave(subscriber)
        subscriber.held = False
        subscriber.wants = wants or subscriber.wants
        if subscriber.resuming is None and subscriber.position >= self.last:
            self._go_live(subscriber)
        else:
            gevent.spawn(self._catch_up, subscriber)

    def resume(self, subscriber: Subscriber, wants: Filter, after: int) -> None:
        """Go on after an event, up to the newest there is now and on from there."""
        self._leave(subscriber)
        subscriber.wants = wants
        try:
            newest: int = self._pool.read(queries.head) or 0
            # What is no longer kept, or never was, cannot be told.
            subscriber.resuming = Resuming(upto=newest, complete=self.oldest <= after + 1 and after <= newest)
            subscriber.position = min(after, newest)
        finally:
            self.restart(subscriber)

    def stop(self) -> None:
        """Send everyone away."""
        for subscriber in list(self.subscribers):
            subscriber.socket.close(GOING_AWAY, "the service restarts: come again")

    def _join(self, subscriber: Subscriber) -> None:
        subscriber.live, subscriber.position = True, self.last
        wants = subscriber.wants
        self._live.setdefault(wants, set()).add(subscriber)
        if wants.markets is None:
            self._of_all.add(wants)
        else:
            for market_id in wants.markets:
                self._by_market[market_id].add(wants)

    def _leave(self, subscriber: Subscriber) -> None:
        subscriber.turn += 1
        if not subscriber.live:
            return
        subscriber.live = False
        subscriber.position = max(subscriber.position, self._handed_out)
        wants = subscriber.wants
        group = self._live[wants]
        group.discard(subscriber)
        if group:
            return
        del self._live[wants]
        self._of_all.discard(wants)
        for market_id in wants.markets or ():
            self._by_market[market_id].discard(wants)
            if not self._by_market[market_id]:
                del self._by_market[market_id]

    # --- Reading and handing out

    def _run(self) -> None:
        """Follow the events until nobody is left to hear them."""
        pinged, ended = time.monotonic(), self._keys_ended()
        while True:
            try:
                with self._pool.connection() as conn:
                    if not self._ready.is_set():
                        self.last = self._handed_out = queries.head(conn) or 0
                        self._look_back(conn)
                        self._ready.set()
                    while True:
                        self._look(conn)
                        if time.monotonic() - pinged > PING_S or self._keys_ended() != ended:
                            pinged, ended = time.monotonic(), self._keys_ended()
                            self._look_back(conn)
                            self._ping()
                            gevent.spawn(self._check_keys)
                            if not self.subscribers:
                                return
                        gevent.sleep(self._poll_s)
            except (psycopg.Error, Problem) as error:
                log.warning("the stream is interrupted: %s", error)
                if not self.subscribers and self._ready.is_set():
                    return
                gevent.sleep(RETRY_S)

    def _look(self, conn: Connection) -> None:
        head: int = queries.head(conn) or 0
        if head < self.last:  # another database took this one's place
            self.last = self._handed_out = head
        while self.last < head:
            events = [Event(*row) for row in queries.between(conn, after=self.last, upto=head, limit=BATCH)]
            # Advanced first: a client that joins while this batch is sent has had it, or will read it itself.
            self.last = events[-1].seq if events else head
            self._hand_out(events)

    def _look_back(self, conn: Connection) -> None:
        self.oldest = queries.oldest(conn) or self.last + 1

    def _hand_out(self, events: list[Event]) -> None:
        # Listed before the first pause: whoever joins meanwhile is not among them, and whoever leaves has another turn.
        due = [
            ([(subscriber, subscriber.turn) for subscriber in self._live.get(wants, ())], frames(chosen))
            for wants, chosen in self._wanted(events).items()
        ]
        upto, sent = self.last, 0
        for subscribers, packed in due:
            for subscriber, turn in subscribers:
                if subscriber.turn == turn:
                    self._send(subscriber, packed)
                    subscriber.position = upto
                    sent += len(packed)
                if sent >= TURN:
                    sent = 0
                    gevent.sleep(0)
        self._handed_out = upto

    def _wanted(self, events: list[Event]) -> dict[Filter, list[Event]]:
        wanted: dict[Filter, list[Event]] = defaultdict(list)
        for event in events:
            for group in (self._of_all, self._by_market.get(event.market_id or "", ())):
                for wants in group:
                    if wants.types is None or event.type in wants.types:
                        wanted[wants].append(event)
        return wanted

    def _send(self, subscriber: Subscriber, packed: list[tuple[bytes, int]]) -> None:
        for data, seq in packed:
            subscriber.socket.push(data, seq)
        if subscriber.socket.owed > self._queue_bytes:
            self._let_go(subscriber)

    def _let_go(self, subscriber: Subscriber) -> None:
        self.remove(subscriber)
        subscriber.socket.close(TRY_LATER, "too slow; last_seq={seq}", linger_s=10.0)

    def _catch_up(self, subscriber: Subscriber) -> None:
        """Replay what lies between a client's place and the newest event, then go live: no gap, nothing twice."""
        turn, moved_at = subscriber.turn, time.monotonic()
        while subscriber.turn == turn and not subscriber.socket.closed:
            if subscriber.position >= self.last:
                if subscriber.resuming is not None and subscriber.position < subscriber.resuming.upto:
                    gevent.sleep(self._poll_s)  # the hub has not looked since
                else:
                    self._go_live(subscriber)
            elif subscriber.socket.owed < self._queue_bytes // 2:
                moved_at = time.monotonic()
                self._replay(subscriber, turn)
            elif time.monotonic() - moved_at < STALL_S:
                gevent.sleep(0.02)
            else:
                self._let_go(subscriber)

    def _go_live(self, subscriber: Subscriber) -> None:
        if subscriber.resuming is not None:
            complete, subscriber.resuming = subscriber.resuming.complete, None
            subscriber.tell(messages.say("replay_completed", seq=self.last, complete=complete))
        self._join(subscriber)
        subscriber.turn += 1

    def _replay(self, subscriber: Subscriber, turn: int) -> None:
        """Send the next stored events."""
        span = {"after": subscriber.position, "upto": self.last, "limit": REPLAYED}
        try:
            events = self._pool.read(lambda conn: [Event(*row) for row in queries.between(conn, **span)])
        except (psycopg.Error, Problem) as error:
            log.warning("a replay is interrupted: %s", error)
            gevent.sleep(RETRY_S)
            return
        if subscriber.turn == turn:
            for data, seq in frames(filter(subscriber.wants.passes, events)):
                subscriber.socket.push(data, seq)
            subscriber.position = events[-1].seq if events else span["upto"]

    def _check_keys(self) -> None:
        """Send those away whose key has ended since."""
        for subscriber in list(self.subscribers):
            try:
                if not subscriber.allowed():
                    subscriber.socket.close(NOT_ALLOWED, "the key is no longer valid")
            except (psycopg.Error, Problem):
                return  # not to be known right now; the next look is soon

    def _ping(self) -> None:
        now = time.monotonic()
        for subscriber in list(self.subscribers):
            if now - subscriber.socket.heard_at > DEAD_S:
                subscriber.socket.hang_up()
            else:
                subscriber.socket.push(PING)
