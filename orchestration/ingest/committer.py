"""Commits batches to the database while this run leads, and keeps them in the ring while it is on standby."""

import logging
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import monotonic, time
from typing import Any, NamedTuple

import psycopg

from orchestration.feeds.lease import LeaseRow, another_ready, may_leave
from orchestration.feeds.shards import Shard
from orchestration.ingest.books.token_state import TokenState
from orchestration.ingest.deferral import DeferringNormalizer, catch_up
from orchestration.ingest.gaps.from_standby import StandbyGapFiller
from orchestration.ingest.gaps.losses import Loss, Losses
from orchestration.ingest.lag import Lag
from orchestration.ingest.loop import GATHER_S, gather
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.progress import Progress
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import WriteBatch
from orchestration.ingest.storage.writer import WriteResult
from upstream.transport.reach import MAX_REASON

log = logging.getLogger(__name__)

MAX_COMMIT_BYTES = 9_000_000  # per transaction when catching up: some 20,000 level changes
BEGINNING = "recording began before every book stood"
MARGIN_MS = 2_000  # by how much the delays of two runs, or of two sockets, may differ
BEGINNING_MS = 5_000  # recording counts from a leader's first figures, which are not written before this
MAX_BEAT_PAUSE_S = 5.0  # after a longer one between two heartbeats the database may have been away
RETRY_S = 0.1
MAX_RETRY_S = 2.0

InThread = Callable[..., Awaitable[Any]]


class Commit(NamedTuple):
    """How far the last leader of some tokens has committed them, in the exchange's time (ms)."""

    written_ms: int
    since_ms: int  # from which on this run may have to write them
    shard: Shard  # of that leader
    is_own: bool  # this run was that leader


Committed = Mapping[Commit, list[TokenState]]


class Committer:
    """Routes batches to the database or the ring, and tracks how far received data is committed.

    `begun` takes the markets whose start gap this run, as the leader, has to find (`StartGaps.begun`).
    `socket_newest_ms` returns each busy socket's newest timestamp: a lagging one still has older messages to deliver.
    """

    def __init__(
        self,
        normalizer: Normalizer,
        backlog: Backlog,
        losses: Losses,
        leader: LeaderConnection,
        standby_filler: StandbyGapFiller,
        *,
        in_thread: InThread,
        socket_newest_ms: Callable[[], Iterable[int]],
        run_id: str,
        book_flush_s: float,
        ring_s: float,
        begun: set[int],
    ) -> None:
        self.role = "standby"
        self.taking_over = False  # it has the lead, and is finding out from where on it has to write
        self.leases: list[LeaseRow] | None = None  # None: the database was not reached yet
        self.lag = Lag()
        self.total = WriteResult()
        self.refused = 0
        self.faults = 0
        self.written_ms = 0  # our clock: what this run received before is committed, as far as this run writes it
        self.exchange_ms = 0  # exchange's clock: what it sent before, and this run received, is committed
        self.announced_ms = 0  # what others are told of `committed_ms`
        self.held_ms = 0  # the most that others may know of it
        self.unseen_ms: int | None = None  # from here on, starts that were left to `StartGaps` are in no gap yet
        self.led_ms = 0  # when this run last took the lead, by the database's clock
        self.newest_ms = 0  # newest committed exchange timestamp
        self.led_since_ms = 0  # what was received before is committed by the previous leader, or does not count
        self._normalizer = normalizer
        self._backlog = backlog
        self._losses = losses
        self._leader = leader
        self._standby_filler = standby_filler
        self._in_thread = in_thread
        self._socket_newest_ms = socket_newest_ms
        self._run_id = run_id
        # Monotonic: when the last heartbeat was sent, and since when they have reached the database without a pause.
        self._heard_at, self._in_touch_since = -math.inf, 0.0
        self._begun = begun
        self._book_flush_ms = int(book_flush_s * 1000)
        self._ring_ms = int(ring_s * 1000)
        self._retry_at = 0.0
        self._retry_s = RETRY_S
        self._replay_end = 0
        self._trouble: dict[str, Any] = {}

    @property
    def leading(self) -> bool:
        """Whether this run leads."""
        return self.role == "leader"

    @property
    def in_touch_s(self) -> float:
        """How long heartbeats have reached the database without a pause; negative: none has."""
        return self._heard_at - self._in_touch_since

    def heard(self, leases: list[LeaseRow], sent_at: float) -> None:
        """Take the leases that a heartbeat has found, which was sent at a monotonic instant."""
        if monotonic() - self._heard_at > MAX_BEAT_PAUSE_S:
            self._in_touch_since = sent_at
        self.leases, self._heard_at = leases, sent_at

    def may_leave(self) -> bool:
        """Return whether a younger run could go on at once."""
        return may_leave(self.leases or (), self._run_id, self._heard_at)

    async def tick(self, *, ready: bool, may_lead: bool = True) -> None:
        """Close a batch and route it; request the lead if no better prepared run could take it."""
        batch = self._cut()
        if self.leading:
            if monotonic() >= self._retry_at:
                await self._write(batch)
        elif may_lead and self._may_request_lead(ready=ready):
            await self._request_lead()

    def _cut(self) -> WriteBatch:
        batch = self._normalizer.cut_batch()
        self._backlog.kept_bytes = self._normalizer.kept_bytes
        self._backlog.trim()
        batch.exchange_ms = min([batch.exchange_ms, *self._socket_newest_ms()])
        if len(batch) or batch.prices or batch.quotes:
            self._backlog.add(batch)
        if lost := self._backlog.take_overflow():
            self._losses.extend("database away", lost.from_ms, lost.to_ms)
        return batch

    def _may_request_lead(self, *, ready: bool) -> bool:
        if self.leases is None or monotonic() < self._retry_at:
            return False
        return ready or not another_ready(self.leases, self._run_id, in_touch_s=self.in_touch_s)

    def obstacle(self) -> dict[str, Any]:
        """Return why this run, the leader, can write nothing, and since when (Unix seconds); on standby nothing."""
        return self._trouble if self.leading else {}

    def stand_by(self, committed_ms: int) -> None:
        """Prune the ring to what the leader may not have committed (exchange time); while that is 0, the ring grows.

        It always keeps `ring_s` seconds of our clock: a run that takes over replays all of it.
        """
        if committed_ms and not self.leading:
            exchange = self._normalizer.exchange
            kept_ms = min(committed_ms, exchange.now_ms() - self._ring_ms) - MARGIN_MS
            before_ms = exchange.to_local_ms(min(kept_ms, self._standby_filler.needed_since_ms))
            self._backlog.prune(before_ms)
            self._normalizer.settle(before_ms)
            self._backlog.since_ms = max(self._backlog.since_ms, self._normalizer.settled_ms)
            self._losses.forget(kept_ms)

    def committed_ms(self) -> int:
        """Return the exchange time up to which data is committed or, where not received, recorded as lost.

        The next leader records a gap from here on for everything that it did not receive itself.
        """
        bounds = self.exchange_ms, self._losses.unsaved_ms(), self.unseen_ms
        return min(ms for ms in bounds if ms is not None)

    async def step_down(self, announce: Callable[[], Awaitable[None]]) -> None:
        """Let another run lead: commit what is left, announce how far that is, and release the lock."""
        if not self.leading:
            return  # the lead is lost already, or a heartbeat asked again while this run stepped down
        await self._write(self._cut())
        if self.leading:
            self.announce()
            self._leave()
        try:
            await announce()
        finally:
            await self._in_thread(self._leader.resign)

    def lose_lead(self) -> None:
        """Write no more until this run has taken the lead again, over another connection."""
        self._leave()
        self._leader.forsake()

    def announce(self) -> None:
        """Take what is committed now as what others are told; until they have been, they may know of more."""
        self.announced_ms = self.committed_ms()
        self.held_ms = max(self.held_ms, self.announced_ms)

    def _leave(self) -> None:
        if self.leading:
            self.role = "standby"
            self._losses.leave(self.held_ms)

    async def drain(self) -> None:
        """Commit what is left, as far as possible."""
        for _ in range(20):
            await self._write(self._cut())
            if not self.leading or not len(self._backlog):
                break

    async def _write(self, cut: WriteBatch) -> None:
        changed_before_ms = self._normalizer.exchange.local_ms() - self._book_flush_ms
        all_cut = True  # nothing was received since the cut
        while True:
            batch, end = self._backlog.head(MAX_COMMIT_BYTES)
            # Books only together with everything that they are built from: readers add the stored changes to them.
            due = self._normalizer.live_books.take(changed_before_ms, books=all_cut and end == self._backlog.end)
            if not (len(self._backlog) or due.books or due.unverified):
                self._record_progress(cut)
                return
            replay = self._backlog.begin < self._replay_end
            try:
                written, refused = await self._in_thread(
                    self._leader.write, batch, due.books, due.unverified, replay=replay
                )
            except psycopg.Error as fault:
                self._failed(due.states, fault)
                return
            all_cut = False
            self._trouble = {}
            self._backlog.mark_committed(end)
            self.total.add(written)
            self.refused += refused
            self.lag.add(written.committed_ms, written.instants_ms)
            self.total.instants_ms = []
            self.newest_ms = max(self.newest_ms, batch.newest_ms)
            self._record_progress(batch, replay=replay)
            self._retry_at, self._retry_s = 0.0, RETRY_S
            if not self.leading:
                return
            if not len(self._backlog):
                self._record_progress(cut)
                return

    def _record_progress(self, batch: WriteBatch, *, replay: bool = False) -> None:
        """Record that everything up to a batch is committed; a replay starts before what was committed already."""
        self.written_ms = batch.received_ms
        if batch.exchange_ms:
            self.exchange_ms = max(batch.exchange_ms, self.exchange_ms) if replay else batch.exchange_ms

    def _failed(self, states: list[TokenState], fault: psycopg.Error) -> None:
        """Requeue live books that were not written; without a connection the lead is lost too."""
        self._back_off("write", fault)
        self._normalizer.live_books.put_back(states)
        if self._leader.broken:
            self.lose_lead()

    def _back_off(self, act: str, fault: psycopg.Error) -> None:
        """Count a fault, report it once while its reason stays the same, and set when to try again."""
        self.faults += 1
        reason = _reason(fault)
        if self._trouble.get("reason") != reason:
            self._trouble = {"reason": reason, "since": int(time())}
            log.warning("cannot %s: %s", act, reason)
        self._retry_at = monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, MAX_RETRY_S)

    async def _request_lead(self) -> None:
        left = self._begun.copy()  # of an earlier lead
        try:
            if not await self._in_thread(self._leader.try_lead):
                self._retry_s = RETRY_S
                return
            self.taking_over = True
            if isinstance(self._normalizer, DeferringNormalizer):
                self._normalizer.defers = False
                gather(GATHER_S)
                await catch_up(self._normalizer, self._backlog, self._normalizer.states)
                self._backlog.withhold_progress()
            # The last heartbeat's leases may be a second old, older than our books: a gap would be recorded needlessly.
            self.leases = await self._in_thread(self._leader.leases)
            led_ms = await self._in_thread(self._leader.clock_ms)
            unverified = await self._in_thread(self._leader.unverified)
            newest_start = await self._in_thread(self._leader.newest_start)
            progress = await self._in_thread(self._leader.progress, self._run_id)
            committed = self._committed(progress)
            now_ms = self._normalizer.exchange.now_ms()
            self._losses.begin_at(min(self._others_ms(progress, committed), now_ms))
            if not any(last.is_own for last in committed):  # another run has led since, and has seen to them
                self.unseen_ms = None
                self._begun -= left
            if cold := self._record_missed(committed, now_ms, newest_start):
                await self._in_thread(self._leader.mark_all_unverified)
        except psycopg.Error as fault:
            self._back_off("take the lead", fault)
            self.taking_over = False
            await self._in_thread(self._leader.resign)  # if it has the lead, nobody else can take it
            return
        await self._standby_filler.fill_on_takeover(now_ms)
        self._replay_end = self._backlog.end  # all of the ring: rows already stored stay unchanged
        self._take_over_live_state(unverified, committed, cold=cold)
        since = [last.written_ms for last in committed]
        self.led_ms, self.exchange_ms = led_ms, min(since, default=0)
        self.led_since_ms = max(since, default=0) or now_ms + BEGINNING_MS
        self.announced_ms = self.held_ms = self.committed_ms()  # not an earlier lead's
        self._retry_at, self._trouble = 0.0, {}
        self.role, self.taking_over = "leader", False

    def _committed(self, progress: Progress) -> Committed:
        """Return the tokens by how far the last leader that held them, perhaps this run, has committed them."""
        mine = self.led_ms, self.exchange_ms
        committed: Committed = defaultdict(list)
        for state in self._normalizer.states.values():
            last, shard = progress.of(state.token.market_id)
            if mine > last:
                commit = Commit(self.exchange_ms, self.exchange_ms, self._losses.shard, is_own=True)
            else:
                commit = Commit(last[1], max(last[1] - MARGIN_MS, 0), shard, is_own=False)
            committed[commit].append(state)
        return committed

    def _others_ms(self, progress: Progress, committed: Committed) -> int:
        """Return the exchange time up to which others have committed what this shard has, whether followed or not."""
        least_ms = max(progress.least_ms(self._losses.shard) - MARGIN_MS, 0)
        return min([least_ms, *(0 if last.is_own else last.since_ms for last in committed)])

    def _record_missed(self, committed: Committed, now_ms: int, newest_start: int | None) -> bool:
        """Record a loss if data after the last commit was not received; return whether it concerns every book."""
        missing = 0
        for last, states in committed.items():
            missing += self._record_missed_of(states, last, now_ms, newest_start)
        return missing == len(self._normalizer.states)

    def _record_missed_of(self, states: list[TokenState], last: Commit, now_ms: int, newest_start: int | None) -> int:
        """Record the loss of tokens that one shard's leader committed up to an instant; return how many miss something.

        If all do, it is a loss of every market that it held, and not only of those that are still followed. Otherwise
        the start of a market that no leader has seen to yet is left to `StartGaps`: it begins with its listing.
        """
        shard, since_ms = last.shard, last.since_ms
        local_ms = self._normalizer.exchange.to_local_ms(since_ms)
        missing = [state for state in states if not state.complete_since(local_ms)]
        incomplete = len(missing)
        if since_ms:
            others = any(lease.alive for lease in self.leases or () if lease.run_id != self._run_id)
            cause = "taken over before every book stood" if others else "no feed running"
            if newest_start is not None and incomplete < len(states):
                # Named, as the last leader may see to them at this moment, and lose the lead before it writes it.
                if unseen := {state.token.market_key for state in missing if state.token.market_key > newest_start}:
                    self._begun |= unseen
                    self.unseen_ms = since_ms if self.unseen_ms is None else min(since_ms, self.unseen_ms)
                missing = [state for state in missing if state.token.market_key <= newest_start]
            from_ms, tolerated_ms = since_ms, 0
        else:
            missing = [
                state for state in missing if not state.complete_since(self._normalizer.exchange.to_local_ms(now_ms))
            ]
            cause, from_ms, tolerated_ms = BEGINNING, now_ms, BEGINNING_MS
        if missing:
            tokens = [state.token for state in missing]
            loss = Loss.of(cause, tokens, from_ms)
            if len(missing) == len(self._normalizer.states) and self._losses.shard.meet(shard) == self._losses.shard:
                loss = Loss(cause, from_ms, None, None)
            elif len(missing) == len(states):
                loss.market_keys, loss.shard = None, self._losses.shard.meet(shard)
            loss.tolerated_ms = tolerated_ms
            self._losses.add(loss)
        return incomplete

    def _take_over_live_state(self, unverified: set[tuple[int, int]], committed: Committed, *, cold: bool) -> None:
        """Queue live books that changed lately or are not shown as verified; after a pause, all."""
        for last, states in committed.items():
            unwritten_after_ms = last.written_ms - self._book_flush_ms - MARGIN_MS
            for state in states:
                shown = not (cold or (state.token.market_key, state.token.outcome) in unverified)
                self._normalizer.live_books.take_over(
                    state, shown_verified=shown, unwritten_after_ms=unwritten_after_ms
                )


def _reason(fault: psycopg.Error) -> str:
    """Return why the database refused or was away, in a line."""
    if isinstance(fault, psycopg.errors.DiskFull):
        return "the database's disk is full; what is received waits in memory"
    return (str(fault).strip() or type(fault).__name__).splitlines()[0][:MAX_REASON]
