"""Leading and standing by: batches go to the database when this run leads, and into the ring when it does not."""

from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any

import psycopg

from orchestration.feeds.lease import Held, anybody_else, progress
from orchestration.ingest.gaps.from_standby import Helping
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.lag import Lag
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import Batch, LiveBook, Token
from orchestration.ingest.storage.writer import Written
from orchestration.ingest.token_state import Track

MAX_BYTES = 9_000_000  # of one transaction, when there is much to catch up with: some 20,000 level changes
MOST_BOOKS = 400  # live books of one transaction: the others wait their turn
BEGINNING = "recording began before every book stood"
MARGIN_MS = 2_000  # by how much the delays of two runs, or of two sockets, may differ
BEGINNING_MS = 5_000  # recording counts from the first figures of a leader, which are written later than this
RETRY_S = 0.1
MOST_RETRY_S = 2.0

InThread = Callable[..., Awaitable[Any]]


class Recording:
    """Gives batches their way, and knows up to when what was heard is committed."""

    def __init__(
        self,
        tracker: Tracker,
        backlog: Backlog,
        losses: Losses,
        leader: LeaderConnection,
        helping: Helping,
        *,
        in_thread: InThread,
        run_id: str,
        book_flush_s: float,
        ring_s: float,
    ) -> None:
        self.role = "standby"
        self.leases: list[Held] | None = None  # None: the database was not reached yet
        self.lag = Lag()
        self.total = Written()
        self.refused = 0
        self.faults = 0
        self.written_ms = 0  # by our clock: what was heard before is committed, as far as this run has written it
        self.said_ms = 0  # by the exchange's: what it said before, and this run heard, is committed
        self.led_ms = 0  # when this run last took the lead, by the database's clock
        self.newest_ms = 0  # the newest instant of the exchange that is committed
        self.led_since_ms = 0  # what was heard before is committed by the leader before this one, or counts for nothing
        self._tracker = tracker
        self._backlog = backlog
        self._losses = losses
        self._leader = leader
        self._helping = helping
        self._in_thread = in_thread
        self._run_id = run_id
        self._book_flush_s = book_flush_s
        self._ring_ms = int(ring_s * 1000)
        self._retry_at = 0.0
        self._retry_s = RETRY_S
        self._replay_end = 0

    @property
    def leading(self) -> bool:
        """Whether this run leads."""
        return self.role == "leader"

    async def tick(self, *, ready: bool, may_lead: bool = True, heard_ms: Iterable[int] = ()) -> None:
        """Close a batch and give it its way; ask for the lead if nobody who is better prepared could have it.

        `heard_ms` has the newest instant that each busy socket told: one that lags has more to tell of what is past.
        """
        batch = self._cut(heard_ms)
        if self.leading:
            await self._write(batch)
        elif may_lead and self._may_ask(ready=ready):
            await self._ask_for_the_lead()

    def _cut(self, heard_ms: Iterable[int] = ()) -> Batch:
        batch = self._tracker.cut()
        batch.said_ms = min([batch.said_ms, *heard_ms])
        if len(batch) or batch.prices or batch.quotes:
            self._backlog.add(batch)
        if lost := self._backlog.take_overflow():
            self._losses.extend("database away", lost.from_ms, lost.to_ms)
        return batch

    def _may_ask(self, *, ready: bool) -> bool:
        if self.leases is None or monotonic() < self._retry_at:
            return False
        return ready or not anybody_else(self.leases, self._run_id)

    def stand_by(self) -> None:
        """Shorten the ring to what the leader may not have committed; while that is not known it grows.

        Never to less than so many seconds of our own clock: all of it is replayed by a run that takes over.
        """
        if self.leading or self.leases is None:
            return
        _, committed_ms = progress(self.leases, self._run_id)
        if committed_ms:
            exchange = self._tracker.exchange
            kept_ms = min(committed_ms, exchange.now_ms() - self._ring_ms) - MARGIN_MS
            self._backlog.prune(exchange.ours(min(kept_ms, self._helping.needed_since_ms)))
            self._losses.forget(kept_ms)

    def committed_ms(self) -> int:
        """Tell up to when what the exchange said is committed or, where it was not heard, known and written to be lost.

        Whoever leads next records a gap from here on for all that it did not hear itself.
        """
        unsaved_ms = self._losses.unsaved_ms()
        return self.said_ms if unsaved_ms is None else min(self.said_ms, unsaved_ms)

    async def step_down(self, announce: Callable[[], Awaitable[None]]) -> None:
        """Let another run lead: commit what is left, have it announced how far that is, and give the lock back."""
        await self._write(self._cut())
        self.role = "standby"
        await announce()
        await self._in_thread(self._leader.resign)

    async def leave(self) -> None:
        """Commit what is left, as far as that is possible."""
        for _ in range(20):
            await self.tick(ready=True, may_lead=False)
            if not self.leading or not len(self._backlog):
                break

    async def _write(self, cut: Batch) -> None:
        while True:
            batch, end = self._backlog.head(MAX_BYTES)
            books, disavowed, tracks = self._due()
            if not (len(self._backlog) or books or disavowed):
                self._reached(cut)
                return
            replay = end - 1 < self._replay_end
            try:
                written, refused = await self._in_thread(self._leader.write, batch, books, disavowed, replay=replay)
            except psycopg.Error:
                self._failed(tracks)
                return
            self._backlog.done(end)
            self.total.add(written)
            self.refused += refused
            self.lag.add(written.committed_ms, written.instants_ms)
            self.total.instants_ms = []
            self.newest_ms = max(self.newest_ms, batch.newest_ms)
            self._reached(batch, replay=replay)
            self._retry_s = RETRY_S
            if not len(self._backlog):
                self._reached(cut)
                return

    def _reached(self, batch: Batch, *, replay: bool = False) -> None:
        """Take note that a batch and all before it are committed; a replay begins before what is committed already."""
        self.written_ms = batch.received_ms
        if batch.said_ms:
            self.said_ms = max(batch.said_ms, self.said_ms) if replay else batch.said_ms

    def _due(self) -> tuple[list[LiveBook], list[Token], list[Track]]:
        """Pick live books to write, each a few times a second at most, and those not to be shown any longer."""
        now, touched = monotonic(), self._tracker.touched
        books: list[LiveBook] = []
        disavowed: list[Token] = []
        tracks: list[Track] = []
        for token_id, track in list(touched.items()):
            if track.book.state != "verified":
                if track.shown_verified is not False:
                    disavowed.append(track.token)
                track.shown_verified = False
            elif len(books) < MOST_BOOKS and (
                track.jumped or not track.shown_verified or now - track.flushed_at >= self._book_flush_s
            ):
                books.append(track.live_book())
                track.jumped, track.shown_verified, track.flushed_at = False, True, now
            else:
                continue
            tracks.append(track)
            del touched[token_id]
        return books, disavowed, tracks

    def _failed(self, tracks: list[Track]) -> None:
        """Take back what was not written; without a connection there is no lead either."""
        self.faults += 1
        for track in tracks:
            track.jumped, track.shown_verified = True, None
            self._tracker.touched[track.token.token_id] = track
        if self._leader.broken:
            self.role = "standby"
        self._wait()

    def _wait(self) -> None:
        self._retry_at = monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, MOST_RETRY_S)

    async def _ask_for_the_lead(self) -> None:
        try:
            if not await self._in_thread(self._leader.try_lead):
                self._retry_s = RETRY_S
                return
            # What the last beat read may be a second old, and older than our own books: a gap would be noted in vain.
            self.leases = await self._in_thread(self._leader.leases)
            led_ms = await self._in_thread(self._leader.clock_ms)
            unverified = await self._in_thread(self._leader.unverified)
            last, mine = progress(self.leases or (), self._run_id), (self.led_ms, self.said_ms)
            _, since_ms = max(last, mine)
            since_ms = since_ms or await self._in_thread(self._leader.progress_ms)
            now_ms = self._tracker.exchange.now_ms()
            cold = self._note_what_was_missed(since_ms if mine > last else max(since_ms - MARGIN_MS, 0), now_ms)
            if cold:
                await self._in_thread(self._leader.disavow_all)
        except psycopg.Error:
            self.faults += 1
            self._wait()
            return
        await self._helping.inherit(now_ms)
        self._replay_end = self._backlog.end  # all of the ring: what is stored already stays as it is
        self._take_over_live_state(unverified, since_ms, cold=cold)
        self.led_ms, self.said_ms = led_ms, since_ms
        self.led_since_ms = since_ms or now_ms + BEGINNING_MS
        self.role = "leader"

    def _note_what_was_missed(self, since_ms: int, now_ms: int) -> bool:
        """Note a loss if nobody heard what came after the last commit; say whether that concerns every book."""
        tracks = self._tracker.tracks
        our_ms = self._tracker.exchange.ours(since_ms)
        missing = [track for track in tracks.values() if not track.whole_since(our_ms)]
        everything = len(missing) == len(tracks)
        if since_ms:
            others = any(lease.alive for lease in self.leases or () if lease.run_id != self._run_id)
            cause = "taken over before every book stood" if others else "no feed running"
            from_ms, tolerated_ms = since_ms, 0
        else:
            missing = [track for track in missing if not track.whole_since(self._tracker.exchange.ours(now_ms))]
            cause, from_ms, tolerated_ms = BEGINNING, now_ms, BEGINNING_MS
        if missing:
            tokens = [track.token for track in missing]
            of_all = len(missing) == len(tracks)
            loss = Loss(cause, from_ms, None, None) if of_all else Loss.of(cause, tokens, from_ms)
            loss.tolerated_ms = tolerated_ms
            self._losses.add(loss)
        return everything

    def _take_over_live_state(self, unverified: set[tuple[int, int]], since_ms: int, *, cold: bool) -> None:
        """Begin to write live books: those that changed lately, and those that are not shown; after a pause, all."""
        touched = self._tracker.touched
        for token_id, track in self._tracker.tracks.items():
            track.jumped, track.flushed_at = False, 0.0
            track.shown_verified = not (cold or (track.token.market_key, track.token.outcome) in unverified)
            verified = track.book.state == "verified"
            if verified == track.shown_verified and track.book_ms < since_ms - MARGIN_MS:
                touched.pop(token_id, None)
            else:
                touched[token_id] = track
