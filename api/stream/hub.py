"""Reads each event once per worker and delivers it to all subscribers; slow ones catch up, or are disconnected."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, ClassVar

import gevent
import psycopg
from gevent.event import Event as Signal

from api.data import statements
from api.data.pool import NO_PARAMETERS
from api.errors import Problem
from api.metrics.counts import Counter, SharedCounters
from api.stream import messages
from api.stream.audience import Audience
from api.stream.frames import GOING_AWAY, NOT_ALLOWED, RESTARTING, TRY_LATER
from api.stream.replay import CatchUpQueue
from api.stream.socket import PING
from api.stream.subscriber import Resuming, Subscriber, SubscriptionFilter
from sql.queries import stream as queries
from sql.stream_reader import StreamReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection, Pool
    from api.stream.subscriber import Packed
    from sql.stream_reader import StreamEvent

log = logging.getLogger("presage.stream")

BATCH = 5000  # events per read, and the rest of the last one's block
TURN = 200  # sends before yielding to other greenlets
HOLD_S = 0.25
RETRY_S = 0.5
MAX_PAUSE_S = 0.1
BUSY_S = 0.1  # after an event, during which more are expected
REFOLLOW_S = 600.0  # between two renewals of followed wallets, each of which lasts for a day
ANSWERS = 1 << 20  # bytes that a client may owe beyond `queue_bytes`: a frame of events, and answers to its commands
STOP_S = 0.3  # to wait for a client's close frame when the server stops


class StreamHub:
    """Delivers events to the subscribers of one worker. Runs while there are any."""

    ping_s: ClassVar[float] = 25.0
    dead_s: ClassVar[float] = 60.0  # nothing received for this long, despite two pings

    def __init__(
        self,
        pool: Pool,
        keys_ended: Callable[[], int],
        *,
        poll_ms: int = 10,
        queue_bytes: int = 2 << 20,  # the setting `stream_queue_bytes`
        counts: SharedCounters | None = None,
    ) -> None:
        self._counts = counts or SharedCounters()
        self._pool, self._poll_s, self._queue_bytes = pool, poll_ms / 1000, queue_bytes
        self._keys_ended = keys_ended
        self.keep_following: Callable[[list[tuple[int, bytes]]], object] = lambda _: None
        self.subscribers: set[Subscriber] = set()
        self._audience = Audience()
        self._reader = StreamReader(statements.run)
        self._replays = CatchUpQueue(
            pool,
            self._reader,
            lambda: self.last,
            caught_up=self._caught_up,
            too_slow=self._disconnect_slow,
        )
        self._stopping: int | None = None  # with a close code
        self._ready = Signal()
        self._running: gevent.Greenlet | None = None  # which reads; None while nobody subscribes
        self._joining = 0  # clients that wait for the reading to begin
        self.last = 0  # the seq of the newest event read
        self._last_event_at = 0.0  # when the last event was read, by the monotonic clock
        self._delivered = 0  # the seq up to which all live subscribers have been served
        self.oldest = 0  # the oldest seq that can be replayed
        self._polls = self._complete_poll = 0  # polls begun, and the last one that has read everything

    # --- Subscribing

    def add(self, subscriber_at: Callable[[int], Subscriber]) -> Subscriber:
        """Add a client, positioned at the newest event."""
        self._joining += 1
        try:
            if self._running is None or self._running.dead:
                self._ready.clear()
                self._running = gevent.spawn(self._run)
            if not self._ready.wait(timeout=5):
                raise Problem("overloaded", "The stream cannot be read right now", headers={"Retry-After": "1"})
            subscriber = subscriber_at(self.last)
            subscriber.socket.sent_seq = self.last
            self.subscribers.add(subscriber)
        finally:
            self._joining -= 1
        if self._stopping is not None:  # it was accepted just before the stop
            self.stop(self._stopping)
        self._counts.put(Counter.SUBSCRIBERS, len(self.subscribers))
        return subscriber

    def remove(self, subscriber: Subscriber) -> None:
        """Remove a client."""
        self.subscribers.discard(subscriber)
        self._counts.put(Counter.SUBSCRIBERS, len(self.subscribers))
        self._leave(subscriber)

    def release(self, subscriber: Subscriber) -> None:
        """Start sending to a client that was held for its first command."""
        if subscriber.held and subscriber in self.subscribers:
            self.restart(subscriber)

    def restart(self, subscriber: Subscriber, wants: SubscriptionFilter | None = None) -> None:
        """Continue from a client's position, with a new filter if given."""
        self._leave(subscriber)
        subscriber.held = False
        subscriber.wants = wants or subscriber.wants
        up_to_date = subscriber.resuming is None and subscriber.position >= self.last
        if up_to_date and not subscriber.socket.owed:
            self._go_live(subscriber)
        else:
            self._replays.add(subscriber)

    def resume(self, subscriber: Subscriber, wants: SubscriptionFilter, after: int) -> None:
        """Replay the events after a seq, then continue live."""
        self._leave(subscriber)
        # Everything committed by now is read by the next poll. Events no longer stored cannot be replayed.
        subscriber.resuming = Resuming(after, self._polls + 1, self.oldest <= after + 1)
        # They are skipped at once: in a restored database, numbers start far behind those it had issued.
        subscriber.position = max(after, min(self.oldest - 1, self.last))
        subscriber.socket.sent_seq = min(subscriber.position, self.last)
        subscriber.behind_since = None
        self.restart(subscriber, wants)

    def follow(self, subscriber: Subscriber, wallets: frozenset[bytes]) -> None:
        """Change the followed wallets; a client that is still held for its first command stays held."""
        held = subscriber.held
        self._leave(subscriber)
        subscriber.wallets = wallets
        if not held:
            self.restart(subscriber)

    def delivered_up_to(self, subscriber: Subscriber) -> int:
        """Return the seq up to which a client has been served."""
        return max(subscriber.position, self._delivered) if subscriber.live else subscriber.position

    def check(self, subscriber: Subscriber) -> None:
        """Let a live client that owes too much catch up; disconnect one that goes on sending commands."""
        if subscriber.socket.owed > self._queue_bytes + ANSWERS:
            self._disconnect_slow(subscriber)
        elif subscriber.live and subscriber.socket.owed > self._queue_bytes:
            self._fall_behind(subscriber)

    def stop(self, code: int = GOING_AWAY) -> None:
        """Close all subscribers."""
        self._stopping = code
        self._close_all(code, "the service is stopping", linger_s=STOP_S)

    def end(self) -> None:
        """Stop reading. Call when no client is served any more."""
        if self._running is not None:
            self._running.kill(block=False)

    def _fall_behind(self, subscriber: Subscriber) -> None:
        """Continue from what a live client was sent, as fast as it reads; what it owes is read again then."""
        self._leave(subscriber)
        position = subscriber.socket.take_back()
        if position is not None:
            subscriber.position = position
        subscriber.behind_since = time.monotonic()
        self._replays.add(subscriber)

    def _disconnect_slow(self, subscriber: Subscriber) -> None:
        """Disconnect a client that reads too slowly."""
        self.remove(subscriber)
        subscriber.socket.close_slow()
        self._counts.add(Counter.SLOW_CLOSED)

    def _close_all(self, code: int, why: str, *, linger_s: float = 1.0) -> None:
        for subscriber in list(self.subscribers):
            # Who is held may be about to resume from long ago; who resumes was not told yet whether events are missing.
            unsettled = subscriber.held or subscriber.resuming is not None
            reason = why if unsettled else f"{why}; last_seq={{seq}}"
            subscriber.socket.close(code, reason, linger_s=linger_s)

    def _caught_up(self, subscriber: Subscriber) -> bool:
        """Make a caught-up client live, unless events may have been committed that were not read yet."""
        ready = subscriber.resuming is None or subscriber.resuming.poll <= self._complete_poll
        if ready:
            self._go_live(subscriber)
        return ready

    def _go_live(self, subscriber: Subscriber) -> None:
        """Make an up-to-date client live; nothing may wait between that check and this call."""
        subscriber.turn += 1
        if subscriber.resuming is not None:
            resuming, subscriber.resuming = subscriber.resuming, None
            complete = resuming.complete and resuming.after <= self.last  # nor if `after` never existed
            subscriber.send(messages.encode("replay_completed", seq=self.last, complete=complete))
        subscriber.live, subscriber.position, subscriber.behind_since = True, self.last, None
        self._audience.join(subscriber)

    def _leave(self, subscriber: Subscriber) -> None:
        subscriber.turn += 1
        if subscriber.live:
            subscriber.live = False
            subscriber.position = max(subscriber.position, self._delivered)
            self._audience.leave(subscriber)

    # --- Reading and delivering

    def _run(self) -> None:
        """Poll for events until no subscriber is left."""
        pinged = followed = time.monotonic()
        ended = self._keys_ended()
        while self._running is gevent.getcurrent():
            try:
                with self._pool.connection() as conn:
                    if not self._ready.is_set():
                        self._begin(conn)
                    while True:
                        worked, now = self._poll(conn), time.monotonic()
                        if now - pinged > self.ping_s or self._keys_ended() != ended:
                            pinged, ended = now, self._keys_ended()
                            self._read_oldest(conn)
                            self._ping()
                            gevent.spawn(self._check_keys)
                            if now - followed > REFOLLOW_S:
                                followed = now
                                gevent.spawn(self._keep_following)
                            if self._unused():
                                return
                        gevent.sleep(self._pause_s(worked, now))
            except (psycopg.Error, Problem) as error:
                log.warning("the stream is interrupted: %s", error)
                if self._ready.is_set() and self._unused():
                    return
                gevent.sleep(RETRY_S)
            except Exception:  # live subscribers must not miss events that were read and not delivered
                log.exception("the stream is interrupted")
                self._close_all(TRY_LATER, "the stream was interrupted")
                gevent.sleep(RETRY_S)

    def _unused(self) -> bool:
        """Whether nobody subscribes: the reading ends then, and whoever subscribes from now on begins it again."""
        if self._running is not gevent.getcurrent():
            return True  # it had ended, and its connection failed while it was being closed
        if self.subscribers or self._joining:
            return False
        self._running = None  # now: closing the connection lets others run
        self._counts.put(Counter.STREAM_POSITION, 0)
        return True

    def _begin(self, conn: Connection) -> None:
        """Take up the newest position of the database."""
        self._polls += 1
        head: int = queries.head(conn) or 0
        if head < self.last:  # it went back while nobody listened
            self._reset(head)
        self.last = self._delivered = head
        self._read_oldest(conn)
        self._ready.set()

    def _pause_s(self, worked: float, now: float) -> float:
        """Return how long to wait before the next poll, in seconds.

        While events arrive, a third of the idle interval, growing with the work up to the full interval; beyond it, as
        long as the work took: under load there are fewer and larger frames, not more work. Work is measured in CPU time
        of this greenlet only: other busy greenlets are no reason to wait longer.
        """
        if now - self._last_event_at > BUSY_S:
            return self._poll_s
        return min(max(worked, min(self._poll_s, self._poll_s / 3 + 2 * worked)), MAX_PAUSE_S)

    def _poll(self, conn: Connection) -> float:
        """Deliver new events; return the CPU time that took, in seconds."""
        worked = 0.0
        self._polls = poll = self._polls + 1
        head: int = statements.run(conn, queries.head, NO_PARAMETERS) or 0
        if head < self.last:
            self._reset(head)
        while self.last < head:
            page = self._reader.read(conn, self.last, head, BATCH)
            # Advanced first: a client that joins while this batch is sent has had it, or reads it itself.
            self.last = page.reached
            self._last_event_at = time.monotonic()
            if page.missing:  # whoever comes back resumes where it was, and learns that its replay is not complete
                log.error("events are missing: %s", page.missing)
                self._close_all(TRY_LATER, "events are missing")
            worked += self._deliver(page.events)
        self._complete_poll = poll
        self._counts.put(Counter.STREAM_POSITION, self._delivered)
        return worked

    def _reset(self, head: int) -> None:
        """Continue with a database that went back, restored or replaced. Clients' positions are no longer valid."""
        log.warning("the newest event was %d and is %d", self.last, head)
        self.last = self._delivered = head
        self._replays.stored.forget()
        self._reader.forget()
        self._close_all(RESTARTING, "the event numbers were reset")

    def _read_oldest(self, conn: Connection) -> None:
        self.oldest = queries.oldest(conn) or self.last + 1

    def _deliver(self, events: list[StreamEvent]) -> float:
        """Send events to their subscribers; return the CPU time used, without other greenlets' turns."""
        began, worked = time.thread_time(), 0.0
        upto, sent = self.last, 0
        for subscribers, packed in self._audience.due(events):
            for subscriber, turn in subscribers:
                if subscriber.turn == turn:  # otherwise it changed or left meanwhile
                    sent += self._send(subscriber, packed, upto)
                if sent >= TURN:
                    sent = 0
                    worked += time.thread_time() - began
                    gevent.sleep(0)
                    began = time.thread_time()
        self._delivered = upto
        return worked + time.thread_time() - began

    def _send(self, subscriber: Subscriber, packed: Packed, upto: int) -> int:
        """Send frames while not too much is owed; return how many."""
        sent = 0
        subscriber.position = max(subscriber.position, self._delivered)  # of what came since, it wanted nothing
        for data, seq in packed:
            subscriber.socket.push(data, seq, subscriber.position)
            subscriber.position = seq
            sent += 1
            if subscriber.socket.owed > self._queue_bytes:
                self._fall_behind(subscriber)  # which sends the rest
                break
        else:
            subscriber.position = upto
        self._counts.add(Counter.FRAMES, sent)
        return sent

    # --- Maintenance

    def _check_keys(self) -> None:
        """Disconnect clients whose key was revoked."""
        for subscriber in list(self.subscribers):
            try:
                if not subscriber.allowed():
                    subscriber.socket.close(NOT_ALLOWED, "the key is no longer valid")
            except (psycopg.Error, Problem):
                return  # cannot be checked now; checked again soon

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
            if now - subscriber.socket.received_at > self.dead_s:
                subscriber.socket.disconnect()
            else:
                subscriber.socket.push(PING)
