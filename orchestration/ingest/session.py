"""One run of the feed: sockets, ticks, the lease, and periodic tasks."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

import psycopg

from config.huge_pages import collapse
from config.settings import Settings
from orchestration.feeds.lease import (
    ALIVE_S,
    MAX_OVERSTAY_WINDOWS,
    MAX_SILENT_S,
    FeedLease,
    another_ready,
    progress,
    successor,
)
from orchestration.feeds.shards import Shard
from orchestration.ingest.committer import Committer
from orchestration.ingest.deferral import DeferringNormalizer
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.figures import LiveFigures
from orchestration.ingest.gaps.from_data_api import MARGIN_MS, GapFiller
from orchestration.ingest.gaps.from_standby import StandbyGapFiller
from orchestration.ingest.housekeeping import Housekeeping
from orchestration.ingest.loop import gather, gather_s
from orchestration.ingest.news import MarketNews
from orchestration.ingest.progress import Turn
from orchestration.ingest.receiver import BUFFER_BYTES, Receiver
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import WriteBatch
from upstream.transport.errors import UpstreamError

FLUSH_MS, FLUSH_MS_PER_SHARD, MAX_FLUSH_MS = 150, 75, 500  # a commit costs as much as some hundred events
BEAT_S = 1.0
CLOSE_S = 5.0
TOKENS_S = 2.0
COMPARE_S = 300.0
FETCHED_AFTER_MS = MARGIN_MS + 2_000  # how far the trades fetched for a gap lie after it at most: in whole seconds
TOKENS_PER_TURN = 2_000  # of the catalogue, in one turn of the event loop
RESYNC_S = 0.1
FIGURES_S = 5.0
NEWS_S = 0.5
PAUSE_S, MAX_PAUSE_S = 5.0, 10.0  # between two questions whether trading is paused; each shard asks
PAUSE_BEGINS_MS = 60_000  # after the newest message: a feed that was deaf before claims nothing
NEWS_TTL_S = 120.0  # on a standby: if it takes the lead, it fetches what the last leader may not have handled
GAPS_S = 1.0
FETCH_S = 5.0
BUFFER_BYTES_PER_TOKEN = 2_000
# What survives one look for garbage is not looked at again in a run: a second look, at all that was added in a minute
# at 7,000 events a second, stopped the event loop for 0.7 s. Cycles among it are freed as the run ends, within hours.
GC_THRESHOLDS = 50_000, 1_000_000, 20
MAX_DISCONNECTED_S = 5.0  # a leader without a socket for longer hands the lead to a run that is connected


def flush_ms(shard: Shard) -> int:
    """Return the milliseconds between two commits, so that all shards together commit no more often than two do."""
    return min(MAX_FLUSH_MS, max(FLUSH_MS, FLUSH_MS_PER_SHARD * shard.of))


class LiveSession:
    """Runs the feed for one window, and longer while there is no successor."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        exchange: ExchangeClient,
        *,
        run_id: str,
        family: str,
        shard: Shard,
        window_s: float,
        settle_s: float,
        observe_s: float,
        observed: Callable[[dict[str, Any]], None],
    ) -> None:
        self.ending = asyncio.Event()
        self._lease = lease = FeedLease(url, shard.feed(family), run_id, window_s)
        self._turn = Turn(may_lead=False, over=False)
        self._left_for_shards: int | None = None  # why this run ends, if it does for another number
        self._flush_s = (settings.live_flush_ms or flush_ms(shard)) / 1000
        self._settle_s = settle_s
        self._observe_s = observe_s
        self._observed = observed
        self._began = self._stats_at = self._observed_at = self._fetched_at = monotonic()
        self._exchange = exchange
        self._step_down = asyncio.Event()
        self._refreshing = asyncio.Lock()
        self._settled_tokens = 0
        self._moved: asyncio.Future[None] | None = None
        self._paused_since_ms = self._paused_ms = 0
        self._asked_at = 0.0  # monotonic: whether trading was paused, as it last was
        self._pause_s = min(PAUSE_S * shard.of, MAX_PAUSE_S)
        self._threads = {
            name: ThreadPoolExecutor(4 if name == "http" else 1, f"live {name}")
            for name in ("leader", "housekeeping", "filler", "news", "http", "memory")
        }
        self._buffer_mb = settings.live_buffer_mb
        self.backlog = Backlog(BUFFER_BYTES)
        self.receiver = Receiver(
            settings, exchange, partial(self._run_in, "http", exchange.books), run_id=run_id, shard=shard
        )
        self._standby_defers = isinstance(self.receiver.normalizer, DeferringNormalizer)
        self.housekeeping = Housekeeping(lease, family, shard, exchange.exchange, compare_s=COMPARE_S)
        self.leader = LeaderConnection(url, family, shard, exchange.exchange)
        self.filler = GapFiller(url, family, run_id, exchange, shard)
        self.news = MarketNews(url, exchange)
        self.standby_filler = StandbyGapFiller(
            self.receiver.normalizer,
            self.receiver.subscriptions,
            self.backlog,
            self.filler,
            partial(self._run_in, "filler"),
            shard=shard,
        )
        self.committer = Committer(
            self.receiver.normalizer,
            self.backlog,
            self.receiver.losses,
            self.leader,
            self.standby_filler,
            in_thread=partial(self._run_in, "leader"),
            socket_newest_ms=self.receiver.busy_newest_ms,
            run_id=run_id,
            book_flush_s=settings.live_book_flush_ms / 1000,
            ring_s=settings.live_ring_s,
            begun=self.receiver.starts.begun,
        )
        self.figures = LiveFigures(self.receiver, self.backlog, self.committer)

    async def run(self) -> dict[str, Any]:
        """Run until stopped, or until the window is over and a successor is ready; return the totals."""
        gc.set_threshold(*GC_THRESHOLDS)
        ticking = asyncio.create_task(self._tick(), name="ticks")
        background = [
            asyncio.create_task(self._repeat(every_s, step), name=step.__name__)
            for every_s, step in (
                (BEAT_S, self._beat),
                (BEAT_S, self._parse_overdue),
                (TOKENS_S, self._refresh_tokens),
                (RESYNC_S, self._resync_books),
                (NEWS_S, self._handle_news),
                (self._pause_s, self._look_for_pause),
                (GAPS_S, self._fill_gaps),
            )
        ]
        ended: asyncio.Task[Any] = asyncio.create_task(self.ending.wait(), name="end")
        try:
            while not self.ending.is_set():
                listening = [listener.task for listener in self.receiver.subscriptions.listeners if listener.task]
                done, _ = await asyncio.wait(
                    [ended, ticking, *background, *listening], timeout=1, return_when=asyncio.FIRST_COMPLETED
                )
                for finished in done - {ended}:
                    finished.result()  # none of them ends normally: this raises
        finally:
            self.ending.set()
            await self._end(ticking, [ended, *background])
        return self.figures.totals()

    # --- Periodic tasks ---

    async def _tick(self) -> None:
        while not self.ending.is_set():
            began = monotonic()
            self.filler.stopped = not self.committer.leading  # nor does a run that takes the lead again wait for it
            await self.committer.tick(
                ready=self.receiver.ready,
                may_lead=self.receiver.subscriptions.loaded and self._turn.may_lead,
            )
            sockets, defers = len(self.receiver.subscriptions.listeners), self.receiver.normalizer.defers
            gather(gather_s(self._flush_s, sockets, ready=self.receiver.ready, deferring=defers))
            if self._step_down.is_set():
                self._step_down.clear()
                with suppress(psycopg.Error):
                    await self.committer.step_down(self._beat)
            await asyncio.sleep(max(0.001, self._flush_s - (monotonic() - began)))

    async def _repeat(self, every_s: float, step: Callable[[], Awaitable[None]]) -> None:
        """Run a step periodically; while the database or the exchange is unavailable, it is retried."""
        while True:
            with suppress(psycopg.Error, UpstreamError):
                await step()
            await asyncio.sleep(every_s)

    async def _parse_overdue(self) -> None:
        self.receiver.normalizer.settle(0)  # whether or not the database is there

    async def _resync_books(self) -> None:
        self.receiver.resync.watch()
        self.receiver.resync.update()

    def _settle_states(self) -> None:
        """Exempt the tokens' state from garbage collection, and move it into huge pages.

        It is most of the heap, lives as long as the run, and each message reads another part of it.
        """
        tokens = len(self.receiver.normalizer.states)
        if self.receiver.ready and tokens > 1.2 * self._settled_tokens:
            gc.freeze()
            loop = asyncio.get_running_loop()
            self._moved = loop.run_in_executor(self._threads["memory"], collapse)  # a failure of it is logged
            self._settled_tokens = tokens

    async def _beat(self) -> None:
        await self._check_lead()
        now = monotonic()
        self._settle_states()
        committer, exchange = self.committer, self.receiver.normalizer.exchange
        self.receiver.find_busy()
        self.receiver.normalizer.defers = self._defers()
        if committer.leading:
            committer.announce()  # never past a loss that is not written yet
        sent_at = monotonic()
        leases = await self._run_in(
            "housekeeping", self.housekeeping.beat, committer.role, self._detail(now), ready=self.receiver.ready
        )
        committer.heard(leases, sent_at)
        if committer.leading:
            committer.held_ms = committer.announced_ms
        silent_count = committer.in_touch_s < ALIVE_S
        self._turn = await self._run_in("housekeeping", self.housekeeping.turn, silent_count=silent_count)
        exchange.assume(exchange.local_ms() - self._lease.database_ms())
        disconnected = self.receiver.resync.disconnected_s() > MAX_DISCONNECTED_S
        if committer.leading and disconnected and another_ready(committer.leases or (), self._lease.run_id):
            self._step_down.set()  # between two ticks
        if not committer.leading:
            self._stats_at = now
            committer.stand_by(await self._run_in("housekeeping", self._committed_ms))
        self._end_if_over(now - self._began)
        now_ms = exchange.now_ms()  # one instant for both: what is late at the beginning is a gap before it counts
        await self._save_losses(now_ms)
        if committer.leading and now_ms >= committer.led_since_ms:
            led_ms, since_ms = committer.led_ms, committer.led_since_ms
            await self._run_in(
                "housekeeping",
                self.housekeeping.check_starts,
                self.receiver.starts,
                since_ms=since_ms,
                written_ms=committer.written_ms,
            )
            if committer.leading and committer.led_ms == led_ms:  # not in a takeover, which sets it anew
                committer.unseen_ms = None
            if now - self._stats_at >= FIGURES_S:  # the first ones say since when there is a record
                self._stats_at = now
                await self._run_in("housekeeping", partial(self.housekeeping.stats, **self.figures.stats()))
        if now - self._observed_at >= self._observe_s:
            self._observed_at = now
            self._observed(self.figures.observation())

    def _end_if_over(self, age: float) -> None:
        """End for another number of shards, or if the window is over and a successor is ready."""
        committer = self.committer
        if self._turn.over:
            self._left_for_shards = self._turn.wanted  # also if those are not ready any more once it has ended
        if self._turn.over or (
            age > self._lease.window_s
            and (
                age > self._lease.window_s * MAX_OVERSTAY_WINDOWS
                or (committer.leading and successor(committer.leases or (), self._lease.run_id))
            )
        ):
            self.ending.set()

    async def _check_lead(self) -> None:
        """Become a standby if the database says that the lead is lost.

        After a partition of the network the connection that held it may not have noticed: then another run leads, and
        what this one has missed meanwhile is no loss.
        """
        pid = self.leader.pid
        if self.committer.leading and pid is not None:
            leads = await self._run_in("housekeeping", self.housekeeping.leads, pid)
            if not leads and pid == self.leader.pid:
                self.committer.lose_lead()

    def _defers(self) -> bool:
        """Return whether to leave frames unparsed: while another run leads its markets, this one needs few of them.

        While the number of shards changes, these are runs of the other number.
        """
        committer = self.committer
        if not self._standby_defers or committer.leading or committer.taking_over:
            return False
        others = (lease for lease in committer.leases or () if lease.run_id != self._lease.run_id)
        return self._turn.others_lead or any(
            lease.role == "leader" and lease.silent_s < MAX_SILENT_S for lease in others
        )

    def _committed_ms(self) -> int:
        """Return how far the shard's leader has committed or, where it has none, whoever led its markets."""
        leases = self.committer.leases or []
        if any(lease.alive and lease.role == "leader" for lease in leases):
            return progress(leases, self._lease.run_id)[1]
        return self.housekeeping.committed_ms()

    async def _save_losses(self, now_ms: int) -> None:
        losses = self.receiver.losses
        saving = losses.begin_saving(now_ms, leading=(leading := self.committer.leading), ending=self.ending.is_set())
        if not (leading or saving.new or saving.over):
            return
        try:
            await self._run_in("housekeeping", lambda: losses.write(self._lease.conn, saving))
        finally:
            losses.end_saving()

    async def _refresh_tokens(self) -> None:
        async with self._refreshing:  # a complete list would unfollow what another refresh has added since it was read
            subscriptions, normalizer = self.receiver.subscriptions, self.receiver.normalizer
            unknown = normalizer.unknown_tokens.copy()
            normalizer.unknown_tokens.clear()
            rows, whole = await self._run_in("housekeeping", self.housekeeping.tokens, normalizer.states, unknown)
            self._bound_memory(len(rows) if whole else len(normalizer.states))
            loaded, fresh = subscriptions.loaded, self.receiver.ready
            for start in range(0, len(rows), TOKENS_PER_TURN):
                begun = subscriptions.add(rows[start : start + TOKENS_PER_TURN], fresh=fresh)
                if loaded and (self.committer.leading or self.committer.taking_over):
                    self.receiver.starts.begun |= begun
                await asyncio.sleep(0)
            subscriptions.complete({row[0] for row in rows} if whole else None)
            normalizer.volumes_24h_usd.update(await self._run_in("housekeeping", self.housekeeping.volumes))

    def _bound_memory(self, tokens: int) -> None:
        """Bound the messages in memory as the settings say, or by the tokens followed: each brings a book at first.

        What a standby keeps unparsed does not grow with them: a takeover has to parse it.
        """
        self.backlog.capacity = self._buffer_mb * 1_000_000 or BUFFER_BYTES + tokens * BUFFER_BYTES_PER_TOKEN

    async def _handle_news(self) -> None:
        now = monotonic()
        self.news.add(self.receiver.take_news(), now)  # on the standby too: nobody may lead while the database is away
        if not self.committer.leading:
            self.news.forget(now - NEWS_TTL_S)
        elif self.news.due(now) and await self._run_in("news", self.news.settle, now):
            await self._refresh_tokens()

    async def _look_for_pause(self) -> None:
        """While nothing comes, ask whether trading is paused: if so, what is written is all there is by now.

        That holds only for a run that received everything until the pause began, and still has every book.
        """
        now_ms = self.receiver.normalizer.exchange.local_ms()
        whole = self.receiver.ready and not self.receiver.losses.open()
        listeners = self.receiver.subscriptions.listeners
        if not whole or (self.receiver.delivers() and not self._paused_ms):
            self._paused_since_ms = self._paused_ms = 0
            return
        recent = now_ms - max((each.newest_ms for each in listeners), default=0) < PAUSE_BEGINS_MS or self._paused_ms
        heard = any(each.pulse.received_at > self._asked_at for each in listeners)  # since it was last asked
        asked_at = monotonic()
        try:
            paused = recent and await self._run_in("http", self._exchange.is_paused)
        except UpstreamError:
            if not heard:
                raise  # what the last answer said stays: by its age the stage turns late
            paused = False
        if paused:
            self._paused_since_ms, self._paused_ms, self._asked_at = self._paused_since_ms or now_ms, now_ms, asked_at
        else:
            self._paused_since_ms = self._paused_ms = 0

    async def _fill_gaps(self) -> None:
        exchange = self.receiver.normalizer.exchange
        now_ms = exchange.now_ms()
        if refusals := self._exchange.take_refusals():
            self.backlog.add(WriteBatch(refusals=refusals, received_ms=exchange.local_ms()))
        if not self.committer.leading:
            await self.standby_filler.fill_closed_gaps(now_ms)
        elif self.receiver.ready and not self.receiver.losses.open():
            await self._run_in("housekeeping", self.housekeeping.close_abandoned, now_ms)
            if monotonic() - self._fetched_at >= min(FETCH_S, self._settle_s):
                # What lies shortly after a gap is fetched with it, under another timestamp: it must be written already.
                asked_at = monotonic()
                delivers = self.receiver.delivers()
                ended_before_ms = self.committer.exchange_ms - FETCHED_AFTER_MS if delivers else None
                unwritten_ms = exchange.local_ms() - self.committer.written_ms + exchange.lag_ms
                settle_s = max(self._settle_s, (unwritten_ms + FETCHED_AFTER_MS) / 1000)
                await self._run_in("filler", self.filler.from_data_api, settle_s, asked_at, ended_before_ms)
                self._fetched_at = monotonic()

    # --- The end ---

    async def _end(self, ticking: asyncio.Task[None], others: list[asyncio.Task[Any]]) -> None:
        """Commit what is left, report how far that is, and only then release the lead."""
        self.filler.stopped = True
        await asyncio.wait([ticking])
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        with suppress(psycopg.Error):
            if self.committer.leading:
                await self.committer.drain()
                await self._check_lead()
            if self.committer.leading:
                starts, written_ms = self.receiver.starts, self.committer.written_ms
                await self._run_in("housekeeping", self.housekeeping.close_starts, starts, written_ms=written_ms)
        with suppress(psycopg.Error):
            await self._save_losses(self.receiver.normalizer.exchange.now_ms())
        if self.committer.leading:
            self.committer.announce()
        with suppress(psycopg.Error):
            now = monotonic()
            await self._run_in("housekeeping", self.housekeeping.beat, "gone", self._detail(now), ready=False)
        await self._run_in("leader", self.leader.resign)
        await self.receiver.subscriptions.stop()
        self._observed(self.figures.observation())
        closing = (("housekeeping", self._lease.close), ("filler", self.filler.close), ("news", self.news.close))
        with suppress(TimeoutError):  # a call that waits for the exchange ends by itself
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*(self._run_in(name, close) for name, close in closing))
                await self._run_in("http", self._exchange.close)
        for threads in self._threads.values():
            threads.shutdown(wait=False)

    def _detail(self, now: float) -> dict[str, Any]:
        ready_since = self.receiver.resync.ready_since
        paused = {"reason": "trading is paused", "since": self._paused_since_ms // 1000}
        newest_ms = max(self.committer.newest_ms, 0 if self.backlog.events else self._paused_ms)
        obstacle = {
            **(paused if self._paused_ms else {}),
            **self.receiver.obstacle(),
            **self.committer.obstacle(),
        }
        return {
            **(obstacle or self.figures.obstacle()),  # each of the others explains why a run is behind
            # Of a leader only: where a standby leaves first, its leader may yet have to stay.
            **({"left_for_shards": self._left_for_shards} if self._left_for_shards and self.committer.leading else {}),
            "newest_ms": newest_ms if self.receiver.subscriptions.of_token else 0,
            "rate": self.receiver.rate(),
            "lag_p99_ms": self.figures.lag_p99_ms,
            "written_ms": self.committer.announced_ms,
            "led_ms": self.committer.led_ms,
            "heard_after_ms": self.receiver.normalizer.exchange.ahead_ms,  # by our own clock, the usual delay included
            "ready_for_s": 0.0 if ready_since is None else round(now - ready_since, 1),
            **self.figures.standing(),
        }

    async def _run_in(self, name: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a blocking call in the named thread pool."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads[name], partial(call, *args, **named))
