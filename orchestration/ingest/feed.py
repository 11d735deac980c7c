"""Entry point of the live feed: `LiveFeed(…).run(should_stop, observe)`."""

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any

from config.settings import Settings
from orchestration.feeds.lease import FeedLease
from orchestration.ingest.exchange import ExchangeClient
from orchestration.ingest.session import LiveSession

POLL_S = 0.2
STOP_TIMEOUT_S = 30.0  # to commit what is left


class LiveFeed:
    """One live run: leads the feed or stands by, until its window is over or it is stopped.

    `window_s` overrides the settings' window, `settle_s` is how long the exchange takes to list settled trades, and
    `observe_s` how often `observe` is called.
    """

    def __init__(
        self,
        settings: Settings,
        database_url: str,
        exchange: ExchangeClient,
        *,
        run_id: str,
        feed: str = "polymarket",
        window_s: float | None = None,
        settle_s: float = 20.0,
        observe_s: float = 30.0,
    ) -> None:
        self.run_id = run_id
        self._settings = settings
        self._url = database_url
        self._exchange = exchange
        self._lease = FeedLease(database_url, feed, run_id, settings.live_window_s if window_s is None else window_s)
        self._settle_s = settle_s
        self._observe_s = observe_s
        self._observations: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._totals: dict[str, Any] = {}
        self._fault: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: LiveSession | None = None

    def run(
        self,
        should_stop: Callable[[], bool] = lambda: False,
        observe: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Run to the end and return the totals. Both callbacks are called in the caller's thread.

        The loop has a thread of its own: an exception in the caller's thread (a signal, an interrupted run) makes the
        feed commit what it has and hand over before the exception propagates.
        """
        thread = threading.Thread(target=self._run, name=f"feed {self.run_id}", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                self._forward(observe)
                if should_stop():
                    self._stop()
        finally:
            self._stop()
            thread.join(STOP_TIMEOUT_S)
        while not self._observations.empty():
            self._forward(observe)
        if self._fault is not None:
            raise self._fault
        return self._totals

    def _forward(self, observe: Callable[[dict[str, Any]], None]) -> None:
        try:
            observation = self._observations.get(timeout=POLL_S)
        except queue.Empty:
            return
        observe(observation)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as fault:  # noqa: BLE001 (raised again in the caller's thread)
            self._fault = fault

    async def _live(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._session = LiveSession(
            self._settings,
            self._url,
            self._exchange,
            lease=self._lease,
            settle_s=self._settle_s,
            observe_s=self._observe_s,
            observed=self._observations.put,
        )
        self._totals = await self._session.run()

    def _stop(self) -> None:
        if self._loop is not None and self._session is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._session.ending.set)
