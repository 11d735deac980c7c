"""One run of the feed: sockets, ticks, the lease, and everything that happens beside."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from time import monotonic, time
from typing import Any

import psycopg

from config.settings import Settings
from orchestration.feeds.lease import OVERSTAY, Lease, anybody_else, successor
from orchestration.ingest.committer import Recording
from orchestration.ingest.exchange import Exchange
from orchestration.ingest.figures import Figures
from orchestration.ingest.gaps.from_data_api import Filler
from orchestration.ingest.gaps.from_standby import BUSY, Helping
from orchestration.ingest.gaps.losses import Losses
from orchestration.ingest.gaps.starts import Starts
from orchestration.ingest.housekeeping import Housekeeping
from orchestration.ingest.news import News
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.resync import Anchoring
from orchestration.ingest.sockets.listener import Listener
from orchestration.ingest.sockets.subscriptions import Following
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.leader import LeaderConnection
from orchestration.ingest.storage.rows import Batch
from upstream.polymarket.market_channel.socket import Message, NewMarket, Refused
from upstream.transport.errors import UpstreamError

BEAT_S = 1.0
CLOSE_S = 5.0
TOKENS_S = 2.0
ALL_TOKENS_S = 300.0
TURN_S = 0.1
FIGURES_S = 5.0
NEWS_S = 0.5
NEWS_KEPT_S = 120.0  # by a standby: should it come to lead, it asks for what the last leader may not have dealt with
HELP_S = 1.0
FETCH_S = 5.0
BEHIND_MS = 2_000
DEAF_S = 5.0  # a leader that cannot get a socket back for so long leaves the lead to one that hears


class Session:
    """Holds the sockets for a window, and longer while nobody follows."""

    def __init__(
        self,
        settings: Settings,
        url: str,
        exchange: Exchange,
        *,
        lease: Lease,
        settle_s: float,
        observe_s: float,
        observed: Callable[[dict[str, Any]], None],
    ) -> None:
        self.ending = asyncio.Event()
        self._lease = lease
        self._flush_s = settings.live_flush_ms / 1000
        self._settle_s = settle_s
        self._observe_s = observe_s
        self._observed = observed
        self._began_s = int(time())
        self._began = self._told_at = self._observed_at = self._fetched_at = monotonic()
        self._exchange = exchange
        self._deposed = asyncio.Event()
        self._written_ms = 0
        self._busy: list[Listener] = []
        self._threads = {
            name: ThreadPoolExecutor(4 if name == "http" else 1, f"live {name}")
            for name in ("leader", "housekeeping", "filler", "news", "http")
        }
        self.tracker = Tracker(oldest_event_days=settings.books_retention_days)
        self.backlog = Backlog(settings.live_buffer_mb * 1_000_000)
        self.losses = Losses(lease.run_id)
        self.starts = Starts(lease.run_id, self.tracker)
        self.housekeeping = Housekeeping(lease, all_tokens_s=ALL_TOKENS_S)
        self.leader = LeaderConnection(url, lease.feed)
        self.filler = Filler(url, lease.feed, lease.run_id, exchange)
        self.news = News(url, exchange)
        self.following = Following(
            exchange.socket_url,
            self.tracker,
            settings.live_assets_per_socket,
            heard=self._heard,
            opened=self._opened,
            lost=self._lost,
        )
        self.anchoring = Anchoring(
            self.tracker,
            self.following,
            self.losses,
            self._in("http", exchange.books),
            silence_s=settings.live_silence_s,
        )
        self.helping = Helping(self.tracker, self.following, self.backlog, self.filler, partial(self._run_in, "filler"))
        self.recording = Recording(
            self.tracker,
            self.backlog,
            self.losses,
            self.leader,
            self.helping,
            in_thread=partial(self._run_in, "leader"),
            run_id=lease.run_id,
            book_flush_s=settings.live_book_flush_ms / 1000,
            ring_s=settings.live_ring_s,
        )
        self.figures = Figures(
            self.tracker,
            self.backlog,
            following=self.following,
            anchoring=self.anchoring,
            recording=self.recording,
        )

    @property
    def ready(self) -> bool:
        """Whether every book stands: this run could lead at once."""
        return self.anchoring.ready_since is not None

    async def run(self) -> dict[str, Any]:
        """Run until told to end, or until the window is over and somebody follows."""
        ticking = asyncio.create_task(self._tick(), name="ticks")
        beside = [
            asyncio.create_task(self._again(every_s, errand), name=errand.__name__)
            for every_s, errand in (
                (BEAT_S, self._beat),
                (TOKENS_S, self._look_at_tokens),
                (TURN_S, self._turn),
                (NEWS_S, self._take_news),
                (HELP_S, self._help),
            )
        ]
        ended: asyncio.Task[Any] = asyncio.create_task(self.ending.wait(), name="end")
        try:
            while not self.ending.is_set():
                listening = [listener.task for listener in self.following.listeners if listener.task]
                done, _ = await asyncio.wait(
                    [ended, ticking, *beside, *listening], timeout=1, return_when=asyncio.FIRST_COMPLETED
                )
                for finished in done - {ended}:
                    finished.result()  # none of them ends by itself: this raises
        finally:
            self.ending.set()
            await self._end(ticking, [ended, *beside])
        return self.figures.totals()

    def _heard(self, _: Listener, messages: Sequence[Message | Refused]) -> int:
        try:
            newest_ms = self.tracker.take(messages)
        except Exception as fault:  # noqa: BLE001 (whatever is wrong with one frame, the next one counts)
            newest_ms = 0
            self.tracker.refuse(f"{type(fault).__name__}: {fault}", repr(messages))
        if self.tracker.news:
            self.following.anticipate(news for news in self.tracker.news if isinstance(news, NewMarket))
        return newest_ms

    def _opened(self, listener: Listener) -> None:
        self.anchoring.opened(listener)

    def _lost(self, listener: Listener, cause: str) -> None:
        self.anchoring.lost(listener, cause)

    # --- Errands ---

    async def _tick(self) -> None:
        while not self.ending.is_set():
            began = monotonic()
            heard_ms = [listener.newest_ms for listener in self._busy]
            await self.recording.tick(ready=self.ready, may_lead=self.following.loaded, heard_ms=heard_ms)
            if self._deposed.is_set():
                self._deposed.clear()
                with suppress(psycopg.Error):
                    await self.recording.step_down(self._beat)
            await asyncio.sleep(max(0.001, self._flush_s - (monotonic() - began)))

    async def _again(self, every_s: float, errand: Callable[[], Awaitable[None]]) -> None:
        """Run an errand again and again; while the database or the exchange is away, it is simply tried again."""
        while True:
            with suppress(psycopg.Error, UpstreamError):
                await errand()
            await asyncio.sleep(every_s)

    async def _turn(self) -> None:
        self.anchoring.watch()
        self.anchoring.turn()

    async def _beat(self) -> None:
        now = monotonic()
        recording, exchange = self.recording, self.tracker.exchange
        self._busy = [each for each in self.following.listeners if each.pulse.rate >= BUSY and each.newest_ms]
        if recording.leading:
            self._written_ms = recording.committed_ms()  # not beyond a loss that is not written yet
        recording.leases = await self._run_in(
            "housekeeping",
            self.housekeeping.beat,
            recording.role,
            self._detail(now),
            ready=self.ready,
            newest_ms=recording.newest_ms if self.following.of_token else 0,
        )
        exchange.assume(exchange.our_ms() - self._lease.database_ms())
        if recording.leading and self.anchoring.deaf_for_s() > DEAF_S and self._somebody_hears():
            self._deposed.set()  # between two ticks
        recording.stand_by()
        if not recording.leading:
            self._told_at = now
        age = now - self._began
        if age > self._lease.window_s and (
            age > self._lease.window_s * OVERSTAY
            or (recording.leading and successor(recording.leases, self._lease.run_id))
        ):
            self.ending.set()
        if recording.leading:
            await self._save_losses()
            if exchange.now_ms() >= recording.led_since_ms:
                await self._run_in(
                    "housekeeping", self.housekeeping.look_at_starts, self.starts, since_ms=recording.led_since_ms
                )
            if now - self._told_at >= FIGURES_S:
                self._told_at = now
                await self._run_in("housekeeping", partial(self.housekeeping.stats, **self.figures.stats()))
        if now - self._observed_at >= self._observe_s:
            self._observed_at = now
            self._observed(self.figures.observation())

    async def _save_losses(self) -> None:
        saving = self.losses.begin_saving(self.tracker.exchange.now_ms())
        try:
            await self._run_in("housekeeping", self.housekeeping.save, self.losses, saving)
        finally:
            self.losses.end_saving()

    def _somebody_hears(self) -> bool:
        return anybody_else(self.recording.leases or (), self._lease.run_id)

    async def _look_at_tokens(self) -> None:
        strangers = bool(self.tracker.strangers)
        self.tracker.strangers.clear()
        rows, whole = await self._run_in("housekeeping", self.housekeeping.tokens, strangers=strangers)
        loaded = self.following.loaded
        begun = self.following.take(rows, whole=whole, fresh=self.ready)
        if loaded and self.recording.leading:
            self.starts.begun |= begun
        self.following.value(await self._run_in("housekeeping", self.housekeeping.volumes))

    async def _take_news(self) -> None:
        announced, self.tracker.news = self.tracker.news, []
        now = monotonic()
        for message in announced:
            if isinstance(message, NewMarket):
                self.starts.announce(message.market, message.ts_ms)
        self.news.hear(announced, now)  # whoever leads: nobody may, while the database is away
        if not self.recording.leading:
            self.news.forget(now - NEWS_KEPT_S)
        elif self.news.due(now) and await self._run_in("news", self.news.settle, now):
            await self._look_at_tokens()

    async def _help(self) -> None:
        exchange = self.tracker.exchange
        now_ms = exchange.now_ms()
        if refusals := self._exchange.take_refusals():
            self.backlog.add(Batch(refusals=refusals, received_ms=exchange.our_ms()))
        if not self.recording.leading:
            await self.helping.look(now_ms)
        elif self.ready and not self.losses.open():
            await self._run_in("housekeeping", self.housekeeping.close_abandoned, now_ms)
            # What is still to be written must not be fetched from elsewhere meanwhile.
            behind_ms = exchange.our_ms() - self.recording.written_ms
            if behind_ms < BEHIND_MS and monotonic() - self._fetched_at >= min(FETCH_S, self._settle_s):
                await self._run_in("filler", self.filler.from_data_api, self._settle_s)
                self._fetched_at = monotonic()

    # --- The end ---

    async def _end(self, ticking: asyncio.Task[None], others: list[asyncio.Task[Any]]) -> None:
        """Commit what is left, say how far that is, and only then let go of the lead."""
        self.filler.stopped = True
        await asyncio.wait([ticking])
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        with suppress(psycopg.Error):
            if self.recording.leading:
                await self.recording.leave()
                await self._save_losses()
                self._written_ms = self.recording.committed_ms()
            now = monotonic()
            await self._run_in(
                "housekeeping", self.housekeeping.beat, "gone", self._detail(now), ready=False, newest_ms=0
            )
        await self._run_in("leader", self.leader.resign)
        await self.following.stop()
        self._observed(self.figures.observation())
        errands = (("housekeeping", self.housekeeping.close), ("filler", self.filler.close), ("news", self.news.close))
        with suppress(TimeoutError):  # one that waits for the exchange ends by itself
            async with asyncio.timeout(CLOSE_S):
                await asyncio.gather(*(self._run_in(name, close) for name, close in errands))
                await self._run_in("http", self._exchange.close)
        for threads in self._threads.values():
            threads.shutdown(wait=False)

    def _hindrance(self) -> dict[str, Any]:
        """Say what keeps the feed from going on, and since when."""
        if not self.following.of_token:
            return {"reason": "follows no market", "since": self._began_s}
        troubles = [listener.trouble for listener in self.following.listeners if listener.trouble is not None]
        if not troubles:
            return {}
        reason, since = min(troubles, key=lambda trouble: trouble[1])
        return {"reason": reason, "since": since}

    def _detail(self, now: float) -> dict[str, Any]:
        ready_since = self.anchoring.ready_since
        return {
            **self._hindrance(),
            "written_ms": self._written_ms,
            "led_ms": self.recording.led_ms,
            "heard_after_ms": self.tracker.exchange.ahead_ms,  # by our own clock, the usual delay included
            "ready_for_s": 0.0 if ready_since is None else round(now - ready_since, 1),
            **self.figures.standing(),
        }

    async def _run_in(self, name: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run a call that blocks in a thread of its kind, one after the other."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads[name], partial(call, *args, **named))

    def _in(self, name: str, call: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        return partial(self._run_in, name, call)
