"""The settlement feed as others run it: `Feed(…).run(should_stop, observe)`. One leads, one stands by."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from orchestration.feeds.base import BEAT_S, LedFeed
from orchestration.settlement import resolutions
from orchestration.settlement.figures import Figures
from orchestration.settlement.follow import PATIENCE_S, Follower, OtherChain, Step
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import FEED, Writer
from sql.queries import settlement as queries
from upstream.transport.errors import UpstreamError

if TYPE_CHECKING:
    from config.settings import Settings
    from orchestration.settlement.reading import Source
    from upstream.chain.contracts import Contract

LOOK_S = 5.0  # between two looks of a standby at the chain, and after a fault
CATCH_UP_S, COMPARE_S = 60.0, 300.0


class Feed(LedFeed):
    """One run: follows the chain or stands by, until its window is over and a successor is ready, or it is to stop.

    `window_s` overrides the settings' window; `observe_s` is how often `observe` is called.
    """

    def __init__(
        self,
        settings: Settings,
        database_url: str,
        source: Source,
        contracts: tuple[Contract, ...],
        *,
        run_id: str,
        second: Source | None = None,
        window_s: float | None = None,
        observe_s: float = 30.0,
        patience_s: float = PATIENCE_S,
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
        self.figures: Figures = Figures()

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

    def _turn(self) -> float:
        """Do what there is to do; give how long to wait."""
        try:
            return super()._turn()
        except (UpstreamError, Inconsistent, OtherChain) as fault:
            self.figures.failed(fault)
            self._ready_since = self._ready_since if isinstance(fault, Inconsistent) else None
            with suppress(psycopg.Error):
                self._beat_clock(None)
            return self._poll_s if isinstance(fault, Inconsistent) else min(LOOK_S, 5 * self._poll_s)

    def _step(self) -> float:
        assert self._follower is not None
        step = self._follower.step()
        self.figures.took(step)
        self._after(step)
        return 0.0 if step.busy and step.behind else self._poll_s

    def _stand_by(self) -> None:
        """Make sure that the chain can be reached from here."""
        if self._is_due("look", LOOK_S):
            self.figures.saw(self._source.heads())

    def _after(self, step: Step) -> None:
        """Touch the stage's clock, and see to the markets that the chain has resolved."""
        assert self._conn is not None
        if not step.behind:
            self.figures.resolved += resolutions.apply(self._conn)
            if self._is_due("catch up", CATCH_UP_S):
                self.figures.resolved += resolutions.catch_up(self._conn)
            if self._is_due("compare", COMPARE_S):
                resolutions.compare(self._conn)
        if self._is_due("endpoints", LOOK_S):
            detail = msgspec.json.encode({"endpoints": self._source.state()}).decode()
            queries.remember_heads(self._conn, feed=FEED, detail=detail)
        if step.newest_s is not None or self._is_due("clock", BEAT_S):
            self._beat_clock(step.newest_s)

    def _beat_clock(self, newest_s: int | None) -> None:
        if self._conn is not None and not self._conn.closed:
            self.figures.beat(self._conn, newest_s)
