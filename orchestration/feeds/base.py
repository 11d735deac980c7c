"""Feeds: long runs with threads of their own; of two runs one leads and one stands by, by a lock and a lease each."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import psycopg

from orchestration.feeds.lease import MAX_OVERSTAY_WINDOWS, FeedLease, connect_for_leadership, may_leave, successor
from sql.queries import feed as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from orchestration.feeds.lease import LeaseRow

BEAT_S = 1.0
LEAD_S = 0.5  # between two attempts to take the lead
POLL_S = 0.2  # between two looks at `should_stop`
STOP_TIMEOUT_S = 30.0  # to commit what is left


class FeedFigures(Protocol):
    """Figures that a run reports."""

    role: str

    def failed(self, fault: Exception) -> None:
        """Record a fault."""
        ...

    def standing(self) -> dict[str, Any]:
        """Return the current state, for the lease."""
        ...

    def totals(self) -> dict[str, Any]:
        """Return the totals of the run."""
        ...

    def observation(self) -> dict[str, Any]:
        """Return the totals, and changes since the last observation."""
        ...


class Feed(ABC):
    """One run, in threads of its own, until it ends or is stopped."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._observations: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._fault: BaseException | None = None

    def run(
        self,
        should_stop: Callable[[], bool] = lambda: False,
        observe: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Run to the end and return the totals. Both callbacks are called in the caller's thread.

        An exception in the caller's thread (a signal, an interrupted run) lets the work finish what it has begun before
        the exception propagates.
        """
        threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"{self._name} {work.__name__}", daemon=True)
            for work in self._works()
        ]
        for thread in threads:
            thread.start()
        try:
            while threads[0].is_alive():
                with suppress(queue.Empty):
                    observe(self._observations.get(timeout=POLL_S))
                if should_stop():
                    self._stop()
        finally:
            self._stop()
            for thread in threads:
                thread.join(STOP_TIMEOUT_S)
        while not self._observations.empty():
            observe(self._observations.get())
        if self._fault is not None:
            raise self._fault
        return self._totals()

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as fault:  # noqa: BLE001 (raised again in the caller's thread)
            self._fault = fault
        finally:
            self._stop()

    def _stop(self) -> None:
        """Ask the work to end; called from any thread, and more than once."""
        self._ending.set()

    @abstractmethod
    def may_leave(self) -> bool:
        """Return whether another run could go on at once."""

    @abstractmethod
    def _works(self) -> Sequence[Callable[[], None]]:
        """Return what runs, each in a thread; the first is the work, the run ends with it."""

    @abstractmethod
    def _totals(self) -> dict[str, Any]:
        """Return the totals of the run."""


class LeaderElectedFeed(Feed):
    """One run: leads or stands by until it is stopped, or its window is over and a successor is ready.

    The work and the lease each have a thread: a long step does not make the run look dead.
    """

    figures: FeedFigures

    def __init__(self, database_url: str, feed: str, *, run_id: str, window_s: float, observe_s: float) -> None:
        super().__init__(feed)
        self._url, self._observe_s = database_url, observe_s
        self._lease = FeedLease(database_url, feed, run_id, window_s)
        self._ready_since: float | None = None
        self._conn: psycopg.Connection[tuple[Any, ...]] | None = None
        self._due: dict[str, float] = {}
        self._leases: tuple[list[LeaseRow], float] = [], 0.0  # and when they were read, monotonic

    def may_leave(self) -> bool:
        """Return whether a younger run could go on at once."""
        leases, heard_at = self._leases
        return may_leave(leases, self._lease.run_id, heard_at)

    def _works(self) -> Sequence[Callable[[], None]]:
        return self._work, self._keep_lease

    def _totals(self) -> dict[str, Any]:
        return self.figures.totals()

    # --- The work

    @abstractmethod
    def _begin(self, conn: psycopg.Connection[Any]) -> None:
        """Prepare to lead, over the connection that holds the lock."""

    @abstractmethod
    def _step(self) -> float:
        """Do the leader's due work; return seconds to wait."""

    @abstractmethod
    def _end(self) -> None:
        """Release what `_begin` prepared; also called if nothing was."""

    def _stand_by(self) -> None:
        """Check that the lead could be taken."""

    def _leave(self) -> None:
        """Finish started work before leaving."""

    def _work(self) -> None:
        """Step and wait; a fault is reported and retried."""
        observed_at = monotonic()
        try:
            while not self._ending.is_set():
                pause_s = self._run_once()
                if monotonic() - observed_at >= self._observe_s:
                    observed_at = monotonic()
                    self._observations.put(self.figures.observation())
                self._rest(pause_s)
            with suppress(psycopg.Error):
                self._leave()
        finally:
            self._resign()
            self._observations.put(self.figures.observation())

    def _rest(self, pause_s: float) -> None:
        self._ending.wait(pause_s)

    def _run_once(self) -> float:
        try:
            if self.figures.role == "leader" or self._try_lead():
                pause_s = self._step()
            else:
                self._stand_by()
                pause_s = LEAD_S
        except psycopg.OperationalError as fault:
            self.figures.failed(fault)
            self._resign()
            return LEAD_S
        self._ready_since = self._ready_since or monotonic()
        return pause_s

    def _try_lead(self) -> bool:
        if self._conn is None or self._conn.closed:
            self._conn = connect_for_leadership(self._url, self._name, statement_timeout=120_000)
        if not queries.try_lead(self._conn, feed=self._name):
            return False
        self._begin(self._conn)
        self.figures.role = "leader"
        return True

    def _resign(self) -> None:
        self.figures.role = "standby"
        self._end()
        if self._conn is not None:
            with suppress(psycopg.Error):
                queries.resign(self._conn, feed=self._name)  # explicitly: a session takes a moment to end
            self._conn.close()
            self._conn = None

    def _is_due(self, work: str, every_s: float) -> bool:
        now = monotonic()
        if now - self._due.get(work, -every_s) < every_s:
            return False
        self._due[work] = now
        return True

    # --- The lease

    def _keep_lease(self) -> None:
        """Touch the lease each second; end when the window is over and a younger run is ready."""
        began = monotonic()
        while True:
            ending = self._ending.wait(BEAT_S)
            with suppress(psycopg.Error):
                heard_at = monotonic()
                leases = self._touch("gone" if ending else self.figures.role)
                self._leases = leases, heard_at
                age = monotonic() - began
                leading = self.figures.role == "leader"
                if age > self._lease.window_s and (
                    age > self._lease.window_s * MAX_OVERSTAY_WINDOWS
                    or (leading and successor(leases, self._lease.run_id))
                ):
                    self._ending.set()
            if ending:
                self._lease.close()
                return

    def _touch(self, role: str) -> list[LeaseRow]:
        since = self._ready_since
        ready = since is not None and role != "gone"
        detail = {
            "ready_for_s": 0.0 if since is None else round(monotonic() - since, 1),
            **self.figures.standing(),
        }
        return self._lease.touch(role, msgspec.to_builtins(detail), ready=ready)
