"""Entry point of the live feed: `LiveFeed(…).run(should_stop, observe)`."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from config.settings import Settings
from orchestration.feeds.base import Feed
from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.exchanges.base import ExchangeClient
from orchestration.ingest.loop import new_event_loop
from orchestration.ingest.session import LiveSession


class LiveFeed(Feed):
    """One live run: leads its shard of the feed or stands by, until its window is over or it is stopped.

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
        shard: Shard = WHOLE,
        window_s: float | None = None,
        settle_s: float = 20.0,
        observe_s: float = 30.0,
    ) -> None:
        super().__init__(shard.feed(feed))
        self._run_id, self._family, self._shard = run_id, feed, shard
        self._settings = settings
        self._url = database_url
        self._exchange = exchange
        self._window_s = settings.live_window_s if window_s is None else window_s
        self._settle_s = settle_s
        self._observe_s = observe_s
        self._end_session: Callable[[], object] = lambda: None
        self._session: LiveSession | None = None
        self._collected: dict[str, Any] = {}

    def may_leave(self) -> bool:
        """Return whether a younger run could go on at once."""
        return self._session is None or self._session.committer.may_leave()

    def _works(self) -> Sequence[Callable[[], None]]:
        return (self._work,)

    def _work(self) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(self._live())

    async def _live(self) -> None:
        self._session = session = LiveSession(
            self._settings,
            self._url,
            self._exchange,
            run_id=self._run_id,
            family=self._family,
            shard=self._shard,
            window_s=self._window_s,
            settle_s=self._settle_s,
            observe_s=self._observe_s,
            observed=self._observations.put,
        )
        self._end_session = partial(asyncio.get_running_loop().call_soon_threadsafe, session.ending.set)
        if self._ending.is_set():
            session.ending.set()
        self._collected = await session.run()

    def _stop(self) -> None:
        super()._stop()
        with suppress(RuntimeError):  # the loop is closed: the session has ended
            self._end_session()

    def _totals(self) -> dict[str, Any]:
        return self._collected
