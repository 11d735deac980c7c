"""Reads each event once in a worker, and hands it to all who want it; those who lag are let go."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, ClassVar

import gevent
import psycopg
from gevent.event import Event as Signal

from api.data import statements
from api.data.pool import NONE
from api.errors import Problem
from api.metrics.counts import Counts, Number
from api.stream import messages
from api.stream.audience import Audience
from api.stream.frames import GOING_AWAY, NOT_ALLOWED, RESTARTING, TRY_LATER
from api.stream.replay import Replays
from api.stream.socket import PING
from api.stream.stored import between
from api.stream.subscriber import Filter, Resuming, Subscriber
from sql.queries import stream as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection, Pool
    from api.stream.subscriber import Event, Packed

log = logging.getLogger("presage.stream")

BATCH = 5000  # events read at once
TURN = 200  # sends before others get a turn
HOLD_S = 0.25
RETRY_S = 0.5
MOST_PAUSE_S = 0.1
BUSY_S = 0.1  # since the last event: more may be on their way
FOLLOWED_S = 600.0  # between two looks after the wallets that are followed: what they do is told for a day after each
STOP_S = 0.3  # for a client's own close, when the server stops


class Hub:
    """The subscribers of one worker. Runs while there are any."""

    ping_s: ClassVar[float] = 25.0
    dead_s: ClassVar[float] = 60.0  # nothing heard for so long, although pinged twice

    def __init__(
        self,
        pool: Pool,
        keys_ended: Callable[[], int],
        *,
        poll_ms: int = 10,
        queue_bytes: int = 2 << 20,
        counts: Counts | None = None,
    ) -> None:
        self._counts = counts or Counts()
        self._pool, self._poll_s, self._queue_bytes = pool, poll_ms / 1000, queue_bytes
        self._keys_ended = keys_ended
        self.keep_following: Callable[[list[tuple[int, bytes]]], object] = lambda _: None
        self.subscribers: set[Subscriber] = set()
        self._audience = Audience()
        self._replays = Replays(pool, lambda: self.last, self._caught_up, queue_bytes)
        self._stopping: int | None = None  # with a close code
        self._ready = Signal()
        self._running: gevent.Greenlet | None = None
        self.last = 0  # the newest event read
        self._heard_at = 0.0  # when there was something new, by the monotonic clock
        self._handed_out = 0  # the newest event that everyone live has been sent, who wants it
        self.oldest = 0  # the oldest that can be replayed
        self._looks = self._seen = 0  # looks begun, and the last of them that has read all there was

    # --- Coming and going

    def add(self, subscriber_at: Callable[[int], Subscriber]) -> Subscriber:
        """Take in a client, who stands at the newest event."""
        if self._running is None or self._running.dead:
            self._ready.clear()
            self._running = gevent.spawn(self._run)
        if not self._ready.wait(timeout=5):
            raise Problem("overloaded", "The stream cannot be read right now", headers={"Retry-After": "1"})
        subscriber = subscriber_at(self.last)
        subscriber.socket.sent_seq = self.last
        self.subscribers.add(subscriber)
        if self._stopping is not None:  # it was let in just before
            self.stop(self._stopping)
        self._counts.put(Number.SUBSCRIBERS, len(self.subscribers))
        return subscriber

    def remove(self, subscriber: Subscriber) -> None:
        """Forget a client."""
        self.subscribers.discard(subscriber)
        self._counts.put(Number.SUBSCRIBERS, len(self.subscribers))
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
            self._replays.add(subscriber)

    def resume(self, subscriber: Subscriber, wants: Filter, after: int) -> None:
        """Go on after an event, up to the newest there is now and on from there."""
        self._leave(subscriber)
        # Whatever is committed by now is seen by the look that begins next. What is no longer kept cannot be told.
        subscriber.resuming = Resuming(after, self._looks + 1, self.oldest <= after + 1)
        # Nor is it looked for page by page: numbers of a restored database begin far behind those that it had given.
        subscriber.position = max(after, min(self.oldest - 1, self.last))
        self.restart(subscriber, wants)

    def follow(self, subscriber: Subscriber, wallets: frozenset[bytes]) -> None:
        """Go on with other wallets; whoever has not said yet what it wants of the rest is held for longer."""
        held = subscriber.held
        self._leave(subscriber)
        subscriber.wallets = wallets
        if not held:
            self.restart(subscriber)

    def standing(self, subscriber: Subscriber) -> int:
        """Tell up to which event a client has been sent all that it wants."""
        return max(subscriber.position, self._handed_out) if subscriber.live else subscriber.position

    def check(self, subscriber: Subscriber) -> None:
        """Let a client go that does not take in what it asked for."""
        if subscriber.socket.owed > self._queue_bytes:
            self.remove(subscriber)
            subscriber.socket.let_go()
            self._counts.add(Number.SLOW_CLOSED)

    def stop(self, code: int = GOING_AWAY) -> None:
        """Send everyone away."""
        self._stopping = code
        self._close_all(code, "the service stops", linger_s=STOP_S)

    def end(self) -> None:
        """Read no more; for when nobody is served any longer."""
        if self._running is not None:
            self._running.kill(block=False)

    def _close_all(self, code: int, why: str, *, linger_s: float = 1.0) -> None:
        for subscriber in list(self.subscribers):
            subscriber.socket.close(code, f"{why}; last_seq={{seq}}", linger_s=linger_s)

    def _caught_up(self, subscriber: Subscriber) -> bool:
        """Feed a client that has come so far, unless something may have been committed that was not seen yet."""
        ready = subscriber.resuming is None or subscriber.resuming.look <= self._seen
        if ready:
            self._go_live(subscriber)
        return ready

    def _go_live(self, subscriber: Subscriber) -> None:
        """Feed a client that is up to date; nothing may wait between finding that out and this."""
        subscriber.turn += 1
        if subscriber.resuming is not None:
            resuming, subscriber.resuming = subscriber.resuming, None
            complete = resuming.complete and resuming.after <= self.last  # nor what never was
            subscriber.tell(messages.say("replay_completed", seq=self.last, complete=complete))
        subscriber.live, subscriber.position = True, self.last
        self._audience.join(subscriber)

    def _leave(self, subscriber: Subscriber) -> None:
        subscriber.turn += 1
        if subscriber.live:
            subscriber.live = False
            subscriber.position = max(subscriber.position, self._handed_out)
            self._audience.leave(subscriber)

    # --- Reading and handing out

    def _run(self) -> None:
        """Follow the events until nobody is left to hear them."""
        pinged = followed = time.monotonic()
        ended = self._keys_ended()
        while True:
            try:
                with self._pool.connection() as conn:
                    if not self._ready.is_set():
                        self._looks += 1
                        self.last = self._handed_out = queries.head(conn) or 0
                        self._look_back(conn)
                        self._ready.set()
                    while True:
                        worked, now = self._look(conn), time.monotonic()
                        if now - pinged > self.ping_s or self._keys_ended() != ended:
                            pinged, ended = now, self._keys_ended()
                            self._look_back(conn)
                            self._ping()
                            gevent.spawn(self._check_keys)
                            if now - followed > FOLLOWED_S:
                                followed = now
                                gevent.spawn(self._keep_following)
                            if not self.subscribers:
                                self._counts.put(Number.STREAM_POSITION, 0)
                                return
                        gevent.sleep(self._pause_s(worked, now))
            except (psycopg.Error, Problem) as error:
                log.warning("the stream is interrupted: %s", error)
                if not self.subscribers and self._ready.is_set():
                    return
                gevent.sleep(RETRY_S)
            except Exception:  # what was read and not handed out must not be missed by those who are live
                log.exception("the stream is interrupted")
                self._close_all(TRY_LATER, "the stream was interrupted")
                gevent.sleep(RETRY_S)

    def _pause_s(self, worked: float, now: float) -> float:
        """Give how long to wait before the next look.

        While events come, a third of what it is otherwise, and more with the work that they are, up to all of it; then
        as long as the work took: under load there are fewer and larger frames, not more work. By the processor's clock,
        and without what others did meanwhile: that they were busy is no reason to wait longer.
        """
        if now - self._heard_at > BUSY_S:
            return self._poll_s
        return min(max(worked, min(self._poll_s, self._poll_s / 3 + 2 * worked)), MOST_PAUSE_S)

    def _look(self, conn: Connection) -> float:
        """Hand out what is new, and give how much of the processor's time that took."""
        worked = 0.0
        self._looks = look = self._looks + 1
        head: int = statements.run(conn, queries.head, NONE) or 0
        if head < self.last:
            self._begin_again(head)
        while self.last < head:
            events = between(conn, self.last, head, BATCH)
            # Advanced first: a client that joins while this batch is sent has had it, or will read it itself.
            self.last = events[-1].seq if events else head
            self._heard_at = time.monotonic()
            worked += self._hand_out(events)
        self._seen = look
        self._counts.put(Number.STREAM_POSITION, self._handed_out)
        return worked

    def _begin_again(self, head: int) -> None:
        """Go on with a database that is behind: restored, or another. What clients have had of it no longer holds."""
        log.warning("the newest event was %d and is %d", self.last, head)
        self.last = self._handed_out = head
        self._replays.stored.forget()
        self._close_all(RESTARTING, "events were taken back")

    def _look_back(self, conn: Connection) -> None:
        self.oldest = queries.oldest(conn) or self.last + 1

    def _hand_out(self, events: list[Event]) -> float:
        """Send events to those who want them, and give the processor's time that it took, without others' turns."""
        began, worked = time.thread_time(), 0.0
        upto, sent = self.last, 0
        for subscribers, packed in list(self._audience.due(events)):
            for subscriber, turn in subscribers:
                if subscriber.turn == turn:  # otherwise it left meanwhile
                    self._send(subscriber, packed)
                    subscriber.position = upto
                    sent += len(packed)
                if sent >= TURN:
                    sent = 0
                    worked += time.thread_time() - began
                    gevent.sleep(0)
                    began = time.thread_time()
        self._handed_out = upto
        return worked + time.thread_time() - began

    def _send(self, subscriber: Subscriber, packed: Packed) -> None:
        for data, seq in packed:
            subscriber.socket.push(data, seq)
        self._counts.add(Number.FRAMES, len(packed))
        self.check(subscriber)

    # --- Looking after clients

    def _check_keys(self) -> None:
        """Send those away whose key has ended since."""
        for subscriber in list(self.subscribers):
            try:
                if not subscriber.allowed():
                    subscriber.socket.close(NOT_ALLOWED, "the key is no longer valid")
            except (psycopg.Error, Problem):
                return  # not to be known right now; the next look is soon

    def _keep_following(self) -> None:
        followed = {(each.account_id, wallet) for each in self.subscribers for wallet in each.wallets}
        try:
            if followed:
                self.keep_following(sorted(followed))
        except (psycopg.Error, Problem) as error:
            log.warning("followed wallets: %s", error)

    def _ping(self) -> None:
        now = time.monotonic()
        for subscriber in list(self.subscribers):
            if now - subscriber.socket.heard_at > self.dead_s:
                subscriber.socket.hang_up()
            else:
                subscriber.socket.push(PING)
