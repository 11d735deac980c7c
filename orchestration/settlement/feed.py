"""The settlement feed: `SettlementFeed(…).run(should_stop, observe)`. One run leads, one stands by."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from orchestration.feeds.base import BEAT_S, LeaderElectedFeed
from orchestration.settlement import resolutions
from orchestration.settlement.figures import SettlementFigures
from orchestration.settlement.follow import SHORTER_CHAIN_WAIT_S, Follower, FollowStep, OtherChain
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import FEED, Writer
from sql.queries import settlement as queries
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from config.settings import Settings
    from orchestration.settlement.reading import ChainSource
    from upstream.chain.contracts import Contract

CHECK_INTERVAL_S = 5.0  # between two chain checks of a standby, and after a fault
CATCH_UP_S, COMPARE_S = 60.0, 300.0


class SettlementFeed(LeaderElectedFeed):
    """One run: follows the chain or stands by, until its window is over and a successor is ready, or it is to stop.

    `window_s` overrides the settings' window; `observe_s` is how often `observe` is called.
    """

    def __init__(
        self,
        settings: Settings,
        database_url: str,
        source: ChainSource,
        contracts: tuple[Contract, ...],
        *,
        run_id: str,
        second: ChainSource | None = None,
        window_s: float | None = None,
        observe_s: float = 30.0,
        patience_s: float = SHORTER_CHAIN_WAIT_S,
    ) -> None:
        window = settings.settlement_window_s if window_s is None else window_s
        super().__init__(database_url, FEED, run_id=run_id, window_s=window, observe_s=observe_s)
        self._source = source
        self._second = second
        self._contracts = contracts
        self._start = settings.chain_start_block
        self._poll_s = settings.settlement_poll_ms / 1000
        self._patience_s = patience_s
        self._follower: Follower | None = None
        self.figures: SettlementFigures = SettlementFigures()

    def _begin(self, conn: psycopg.Connection[Any]) -> None:
        self._follower = Follower(
            Writer(conn, self._contracts),
            self._source,
            self._contracts,
            second=self._second,
            start=self._start,
            patience_s=self._patience_s,
        )

    def _end(self) -> None:
        self._follower = None

    def _run_once(self) -> float:
        """Do one step of work; return how long to wait."""
        try:
            return super()._run_once()
        except (UpstreamError, Inconsistent, OtherChain) as fault:
            self.figures.failed(fault)
            self._ready_since = self._ready_since if isinstance(fault, Inconsistent) else None
            with suppress(psycopg.Error):
                self._beat_clock(None)
            return self._poll_s if isinstance(fault, Inconsistent) else min(CHECK_INTERVAL_S, 5 * self._poll_s)

    def _step(self) -> float:
        assert self._follower is not None
        step = self._follower.step()
        self.figures.record_step(step)
        self._after(step)
        return 0.0 if step.busy and step.behind else self._poll_s

    def _stand_by(self) -> None:
        """Make sure that the chain can be reached from here."""
        if self._is_due("look", CHECK_INTERVAL_S):
            self.figures.record_heads(self._source.heads())

    def _after(self, step: FollowStep) -> None:
        """Touch the stage's clock, and update the markets that the chain has resolved."""
        assert self._conn is not None
        if not step.behind:
            self.figures.resolved += resolutions.apply(self._conn)
            if self._is_due("catch up", CATCH_UP_S):
                self.figures.resolved += resolutions.catch_up(self._conn)
            if self._is_due("compare", COMPARE_S):
                resolutions.compare(self._conn)
        if self._is_due("endpoints", CHECK_INTERVAL_S):
            detail = msgspec.json.encode({"endpoints": self._source.state()}).decode()
            queries.remember_heads(self._conn, feed=FEED, detail=detail)
        if step.newest_s is not None or self._is_due("clock", BEAT_S):
            self._beat_clock(step.newest_s)

    def _beat_clock(self, newest_s: int | None) -> None:
        if self._conn is not None and not self._conn.closed:
            self.figures.beat(self._conn, newest_s)
