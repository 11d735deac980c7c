"""The settlement feed as others run it: `Feed(…).run(should_stop, observe)`. One leads, one stands by."""

from __future__ import annotations

import queue
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from orchestration.live.lease import OVERSTAY, Lease, successor
from orchestration.settlement import resolutions
from orchestration.settlement.figures import Figures
from orchestration.settlement.follow import PATIENCE_S, Follower, OtherChain, Step
from orchestration.settlement.reading import Inconsistent
from orchestration.settlement.writer import FEED, Writer
from sql import database
from sql.queries import feed as feed_queries
from sql.queries import settlement as queries
from upstream.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestration.live.lease import Held
    from orchestration.settlement.reading import Source
    from settings import Settings
    from upstream.chain.contracts import Contract

BEAT_S = 1.0
LEAD_S = 0.5  # between two tries for the lead
LOOK_S = 5.0  # between two looks of a standby at the chain, and after a fault
CATCH_UP_S, COMPARE_S = 60.0, 300.0
LEAVE_S = 30.0


class Feed:
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
        self._url = database_url
        self._source = source
        self._second = second
        self._contracts = contracts
        self._start = settings.chain_start_block
        self._poll_s = settings.settlement_poll_ms / 1000
        self._patience_s = patience_s
        window = settings.settlement_window_s if window_s is None else window_s
        self._lease = Lease(database_url, FEED, run_id, window)
        self._observe_s = observe_s
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._fault: BaseException | None = None
        self._ready_since: float | None = None
        self._conn: psycopg.Connection[tuple[Any, ...]] | None = None
        self._follower: Follower | None = None
        self._due: dict[str, float] = {}
        self.figures = Figures()

    def run(
        self,
        should_stop: Callable[[], bool] = lambda: False,
        observe: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Run to the end and give the totals. Both callbacks are called in the caller's thread.

        The work has a thread of its own, and so has the lease: whatever is raised in the caller's lets the work end its
        transaction, and a read that takes long does not look like death.
        """
        threads = [
            threading.Thread(target=self._guarded, args=(errand,), name=f"{FEED} {errand.__name__}", daemon=True)
            for errand in (self._work, self._hold)
        ]
        for thread in threads:
            thread.start()
        try:
            while threads[0].is_alive():
                with suppress(queue.Empty):
                    observe(self._said.get(timeout=0.2))
                if should_stop():
                    self._ending.set()
        finally:
            self._ending.set()
            for thread in threads:
                thread.join(LEAVE_S)
        while not self._said.empty():
            observe(self._said.get())
        if self._fault is not None:
            raise self._fault
        return self.figures.totals()

    def _guarded(self, errand: Callable[[], None]) -> None:
        try:
            errand()
        except BaseException as fault:  # noqa: BLE001 (raised again in the caller's thread)
            self._fault = fault
        finally:
            self._ending.set()

    # --- The work ---

    def _work(self) -> None:
        """Look, write, and wait; a fault is said and tried again."""
        observed_at = monotonic()
        try:
            while not self._ending.is_set():
                pause_s = self._turn()
                if monotonic() - observed_at >= self._observe_s:
                    observed_at = monotonic()
                    self._said.put(self.figures.observation())
                self._ending.wait(pause_s)
        finally:
            self._resign()
            self._said.put(self.figures.observation())

    def _turn(self) -> float:
        """Do what there is to do; give how long to wait."""
        try:
            if self._follower is None and not self._try_lead():
                return self._stand_by()
            assert self._follower is not None
            step = self._follower.step()
            self.figures.took(step)
            self._after(step)
        except (UpstreamError, Inconsistent, OtherChain) as fault:
            self.figures.failed(fault)
            self._ready_since = self._ready_since if isinstance(fault, Inconsistent) else None
            with suppress(psycopg.Error):
                self._beat_clock(None)
            return self._poll_s if isinstance(fault, Inconsistent) else min(LOOK_S, 5 * self._poll_s)
        except psycopg.OperationalError as fault:
            self.figures.failed(fault)
            self._resign()
            return LEAD_S
        self._ready_since = self._ready_since or monotonic()
        return 0.0 if step.busy and step.behind else self._poll_s

    def _try_lead(self) -> bool:
        if self._conn is None or self._conn.closed:
            # Behind a pool of connections the lock would belong to whoever comes next: this has to be a direct one.
            self._conn = database.connect(
                self._url,
                autocommit=True,
                name=f"presage feed {FEED}: leader",
                statement_timeout=120_000,
                tcp_keepalives_idle=5,  # a leader whose machine is gone lets go of the lock within seconds
                tcp_keepalives_interval=2,
                tcp_keepalives_count=3,
            )
        if not feed_queries.try_lead(self._conn, feed=FEED):
            return False
        self._follower = Follower(
            Writer(self._conn, self._contracts),
            self._source,
            self._contracts,
            second=self._second,
            start=self._start,
            patience_s=self._patience_s,
        )
        self.figures.role = "leader"
        return True

    def _stand_by(self) -> float:
        """Make sure that the chain can be reached from here."""
        if self._is_due("look", LOOK_S):
            self.figures.saw(self._source.heads())
        self._ready_since = self._ready_since or monotonic()
        return LEAD_S

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

    def _is_due(self, errand: str, every_s: float) -> bool:
        now = monotonic()
        if now - self._due.get(errand, -every_s) < every_s:
            return False
        self._due[errand] = now
        return True

    def _resign(self) -> None:
        self.figures.role = "standby"
        self._follower = None
        if self._conn is not None:
            with suppress(psycopg.Error):
                feed_queries.resign(self._conn, feed=FEED)  # at once: a session takes a moment to end
            self._conn.close()
            self._conn = None

    # --- The lease ---

    def _hold(self) -> None:
        """Give a sign of life each second; leave when the window is over and somebody younger could follow."""
        began = monotonic()
        while True:
            ending = self._ending.wait(BEAT_S)
            with suppress(psycopg.Error):
                leases = self._touch("gone" if ending else self.figures.role)
                age = monotonic() - began
                leading = self.figures.role == "leader"
                if age > self._lease.window_s and (
                    age > self._lease.window_s * OVERSTAY or (leading and successor(leases, self._lease.run_id))
                ):
                    self._ending.set()
            if ending:
                self._lease.close()
                return

    def _touch(self, role: str) -> list[Held]:
        since = self._ready_since
        ready = since is not None and role != "gone"
        detail = {
            "ready_for_s": 0.0 if since is None else round(monotonic() - since, 1),
            **self.figures.standing(),
        }
        return self._lease.touch(role, msgspec.to_builtins(detail), ready=ready)
