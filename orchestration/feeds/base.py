"""Feeds that run twice: one run leads, one stands by, by a lock of the database and a lease that each touches."""

from __future__ import annotations

import queue
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import psycopg

from orchestration.feeds.lease import OVERSTAY, Lease, connect_to_lead, successor
from sql.queries import feed as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestration.feeds.lease import Held

BEAT_S = 1.0
LEAD_S = 0.5  # between two tries for the lead
LEAVE_S = 30.0


class Figures(Protocol):
    """What a run has done, as it is told."""

    role: str

    def failed(self, fault: Exception) -> None:
        """Take in a fault."""
        ...

    def standing(self) -> dict[str, Any]:
        """Say where it stands, for the lease."""
        ...

    def totals(self) -> dict[str, Any]:
        """Say what the whole run came to."""
        ...

    def observation(self) -> dict[str, Any]:
        """Say the totals, and what came since the last time."""
        ...


class LedFeed(ABC):
    """One run: leads or stands by, until its window is over and a successor is ready, or it is to stop."""

    figures: Figures

    def __init__(self, database_url: str, feed: str, *, run_id: str, window_s: float, observe_s: float) -> None:
        self._url, self._feed, self._observe_s = database_url, feed, observe_s
        self._lease = Lease(database_url, feed, run_id, window_s)
        self._said: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._ending = threading.Event()
        self._fault: BaseException | None = None
        self._ready_since: float | None = None
        self._conn: psycopg.Connection[tuple[Any, ...]] | None = None
        self._due: dict[str, float] = {}

    def run(
        self,
        should_stop: Callable[[], bool] = lambda: False,
        observe: Callable[[dict[str, Any]], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Run to the end and give the totals. Both callbacks are called in the caller's thread.

        The work has a thread of its own, and so has the lease: whatever is raised in the caller's lets the work end its
        transaction, and a step that takes long does not look like death.
        """
        threads = [
            threading.Thread(target=self._guarded, args=(errand,), name=f"{self._feed} {errand.__name__}", daemon=True)
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

    # --- The work

    @abstractmethod
    def _begin(self, conn: psycopg.Connection[Any]) -> None:
        """Get ready to lead, by the connection that holds the lock."""

    @abstractmethod
    def _step(self) -> float:
        """Do what there is to do as the leader; give how long to wait."""

    @abstractmethod
    def _end(self) -> None:
        """Let go of what was made ready; called also where nothing was."""

    def _stand_by(self) -> None:  # noqa: B027 (some have nothing to make sure of)
        """Make sure that the lead could be taken."""

    def _leave(self) -> None:  # noqa: B027
        """Bring to an end what was begun."""

    def _work(self) -> None:
        """Step, and wait; a fault is said and tried again."""
        observed_at = monotonic()
        try:
            while not self._ending.is_set():
                pause_s = self._turn()
                if monotonic() - observed_at >= self._observe_s:
                    observed_at = monotonic()
                    self._said.put(self.figures.observation())
                self._rest(pause_s)
            with suppress(psycopg.Error):
                self._leave()
        finally:
            self._resign()
            self._said.put(self.figures.observation())

    def _rest(self, pause_s: float) -> None:
        self._ending.wait(pause_s)

    def _turn(self) -> float:
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
            self._conn = connect_to_lead(self._url, self._feed, statement_timeout=120_000)
        if not queries.try_lead(self._conn, feed=self._feed):
            return False
        self._begin(self._conn)
        self.figures.role = "leader"
        return True

    def _resign(self) -> None:
        self.figures.role = "standby"
        self._end()
        if self._conn is not None:
            with suppress(psycopg.Error):
                queries.resign(self._conn, feed=self._feed)  # at once: a session takes a moment to end
            self._conn.close()
            self._conn = None

    def _is_due(self, errand: str, every_s: float) -> bool:
        now = monotonic()
        if now - self._due.get(errand, -every_s) < every_s:
            return False
        self._due[errand] = now
        return True

    # --- The lease

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
