"""Leading and standing by: batches go to the database when this run leads, and into the ring when it does not."""

from collections.abc import Awaitable, Callable, Iterable
from time import monotonic, time
from typing import Any

import psycopg

from orchestration.live.backlog import Backlog
from orchestration.live.helping import Helping
from orchestration.live.lag import Lag
from orchestration.live.leader import LeaderConnection
from orchestration.live.lease import Held, anybody_else, progress_ms
from orchestration.live.losses import Loss, Losses
from orchestration.live.rows import LiveBook, Token
from orchestration.live.track import Track
from orchestration.live.tracker import Tracker
from orchestration.live.writer import Written

MOST_EVENTS = 20_000  # of one transaction, when there is much to catch up with
MOST_BOOKS = 400  # live books of one transaction: the others wait their turn
MARGIN_MS = 2_000  # how much earlier than the leader another run may have heard the same
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
        self.written_ms = 0  # what was heard before is committed, as far as this run has written it
        self.newest_ms = 0  # the newest instant of the exchange that is committed
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
        self._ever_led = False

    @property
    def leading(self) -> bool:
        """Whether this run leads."""
        return self.role == "leader"

    async def tick(self, *, ready: bool, may_lead: bool = True) -> None:
        """Close a batch and give it its way; ask for the lead if nobody who is better prepared could have it."""
        batch = self._tracker.cut()
        if len(batch) or batch.prices or batch.quotes:
            self._backlog.add(batch)
        if lost := self._backlog.take_overflow():
            self._losses.add(Loss("database away", lost.from_ms, None, None, to_ms=lost.to_ms))
        if self.leading:
            await self._write(batch.received_ms)
        elif may_lead and self._may_ask(ready=ready):
            await self._ask_for_the_lead(batch.received_ms)

    def _may_ask(self, *, ready: bool) -> bool:
        if self.leases is None or monotonic() < self._retry_at:
            return False
        return ready or not anybody_else(self.leases, self._run_id)

    def stand_by(self, now_ms: int) -> None:
        """Shorten the ring to what the leader may not have committed; while that is not known it grows."""
        if self.leading or self.leases is None:
            return
        if committed_ms := progress_ms(self.leases, self._run_id):
            kept_ms = min(committed_ms, now_ms - self._ring_ms) - MARGIN_MS
            self._backlog.prune(min(kept_ms, self._helping.needed_since_ms))
            self._losses.forget(kept_ms)

    def committed_ms(self, heard_ms: Iterable[int]) -> int:
        """Tell up to when what came over the sockets is committed; `heard_ms` says when busy ones were last heard."""
        return min([self.written_ms, *heard_ms, *(loss.from_ms for loss in self._losses.open())])

    async def step_down(self, announce: Callable[[], Awaitable[None]]) -> None:
        """Let another run lead: commit what is left, have it announced how far that is, and give the lock back."""
        await self._write(int(time() * 1000))
        self.role = "standby"
        await announce()
        await self._in_thread(self._leader.resign)

    async def leave(self) -> None:
        """Commit what is left, as far as that is possible."""
        for _ in range(20):
            await self.tick(ready=True, may_lead=False)
            if not self.leading or not len(self._backlog):
                break

    async def _write(self, cut_ms: int) -> None:
        while True:
            batch, end = self._backlog.head(MOST_EVENTS)
            books, disavowed, tracks = self._due()
            if not (len(self._backlog) or books or disavowed):
                self.written_ms = cut_ms
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
            self.written_ms = batch.received_ms or cut_ms
            self._retry_s = RETRY_S
            if not len(self._backlog):
                self.written_ms = cut_ms
                return

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

    async def _ask_for_the_lead(self, now_ms: int) -> None:
        try:
            if not await self._in_thread(self._leader.try_lead):
                self._retry_s = RETRY_S
                return
            unverified = await self._in_thread(self._leader.unverified)
            since_ms = max(progress_ms(self.leases or (), self._run_id), self.written_ms if self._ever_led else 0)
            since_ms = since_ms or await self._in_thread(self._leader.newest_ms)
            cold = self._note_what_was_missed(since_ms)
            if cold:
                await self._in_thread(self._leader.disavow_all)
        except psycopg.Error:
            self.faults += 1
            self._wait()
            return
        await self._helping.inherit(now_ms)
        self._backlog.prune(since_ms - MARGIN_MS)
        _, self._replay_end = self._backlog.head(1 << 60)
        self._take_over_live_state(unverified, since_ms, cold=cold)
        self._ever_led = True
        self.role = "leader"

    def _note_what_was_missed(self, since_ms: int) -> bool:
        """Note a loss if nobody heard what came after the last commit; say whether that concerns every book."""
        tracks = self._tracker.tracks
        missing = [track for track in tracks.values() if not track.whole_since(since_ms)]
        everything = len(missing) == len(tracks)
        if missing and since_ms:
            others = any(lease.alive for lease in self.leases or () if lease.run_id != self._run_id)
            cause = "taken over before every book stood" if others else "no feed running"
            tokens = [track.token for track in missing]
            self._losses.add(Loss(cause, since_ms, None, None) if everything else Loss.of(cause, tokens, since_ms))
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
