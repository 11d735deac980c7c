"""The webhook delivery feed: `WebhookFeed(…).run(should_stop, observe)`. One run leads, one stands by."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from config import webhook_keys
from orchestration.feeds.base import BEAT_S, LeaderElectedFeed
from orchestration.webhooks.attempts import Attempts
from orchestration.webhooks.dispatcher import DispatchCounts, Dispatcher
from orchestration.webhooks.sending import Sender
from sql.queries import feed as feed_queries
from sql.queries import webhooks as queries
from sql.webhook_secrets import SecretBox
from upstream.transport import addresses

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from config.settings import Settings
    from upstream.transport.addresses import Resolve

FEED = STAGE = "delivery"
LEAVE_S = 5.0
IDLE_S = 30.0  # after this long without webhooks the run ends
FOLLOW_INTERVAL_S = 3600.0  # between two renewals of the wallets that webhooks name; each lasts a day


class DeliveryFigures:
    """Counters of a run, for its observations."""

    def __init__(self) -> None:
        self.role = "standby"
        self.counted = DispatchCounts()
        self._before = DispatchCounts()
        self._standing: dict[str, Any] = {}
        self._faults = 0
        self._fault: str | None = None

    def record_state(self, standing: dict[str, Any]) -> None:
        """Record the current state."""
        self._standing, self._fault = standing, None

    def failed(self, fault: Exception) -> None:
        """Record a fault; it is shown until something succeeds."""
        self._faults += 1
        self._fault = f"{type(fault).__name__}: {fault}"[:500]

    def standing(self) -> dict[str, Any]:
        """Return the current state."""
        fault = {} if self._fault is None else {"fault": self._fault}
        return {**self._standing, "faults": self._faults, **fault}

    def totals(self) -> dict[str, Any]:
        """Return the totals of the run."""
        return {"role": self.role, **self.standing(), **asdict(self.counted)}

    def observation(self) -> dict[str, Any]:
        """Return the totals, and the difference since the last call."""
        now, before = asdict(self.counted), asdict(self._before)
        self._before = DispatchCounts(**now)
        return {**self.totals(), **{f"{name}_since": now[name] - before[name] for name in now}}


class WebhookFeed(LeaderElectedFeed):
    """One run of the delivery.

    `window_s` overrides the settings' window; `resolve` resolves host names, and `clock` returns the time.
    """

    def __init__(
        self,
        settings: Settings,
        database_url: str,
        *,
        run_id: str,
        window_s: float | None = None,
        observe_s: float = 30.0,
        resolve: Resolve = addresses.resolve,
        clock: Callable[[], float] = time.time,
    ) -> None:
        window = settings.webhook_window_s if window_s is None else window_s
        super().__init__(database_url, FEED, run_id=run_id, window_s=window, observe_s=observe_s)
        self.figures: DeliveryFigures = DeliveryFigures()
        self._clock, self._resolve = clock, resolve
        self._timeout_s = settings.webhook_timeout_s
        self._box = SecretBox(lambda: webhook_keys.read(settings))
        self._allowed = addresses.networks(settings.webhook_networks)
        self._poll_s = settings.webhook_poll_ms / 1000
        self._at_once = settings.webhook_concurrency
        self._at_once_per_account = settings.webhook_account_concurrency
        self._attempts: Attempts | None = None
        self._dispatcher: Dispatcher | None = None
        self._wanted_at = time.monotonic()

    def _begin(self, conn: psycopg.Connection[Any]) -> None:
        self._attempts = Attempts(self._sender, self._clock, self._box.decrypt)
        self._dispatcher = Dispatcher(
            conn,
            self._attempts,
            self._clock,
            at_once=self._at_once,
            at_once_per_account=self._at_once_per_account,
        )
        self.figures.counted = self._dispatcher.counted

    def _sender(self) -> Sender:
        return Sender(timeout_s=self._timeout_s, clock=self._clock, allowed=self._allowed, resolve=self._resolve)

    def _step(self) -> float:
        assert self._dispatcher is not None
        assert self._conn is not None
        try:
            self._dispatcher.step()
        except psycopg.errors.ForeignKeyViolation as fault:  # a webhook was removed meanwhile: the next step sees that
            self.figures.failed(fault)
            return self._poll_s
        if self._is_due("follow", FOLLOW_INTERVAL_S):
            queries.follow(self._conn)
        if self._is_due("beat", BEAT_S):
            self._beat(self._conn, self._dispatcher)
        return 0.0 if self._dispatcher.behind else self._poll_s

    def _stand_by(self) -> None:
        assert self._conn is not None
        if self._is_due("wanted", BEAT_S):
            self._end_if_idle(wanted=queries.wanted(self._conn))

    def _end_if_idle(self, *, wanted: bool) -> None:
        now = time.monotonic()
        self._wanted_at = now if wanted else self._wanted_at
        if now - self._wanted_at > IDLE_S:
            self._ending.set()

    def _rest(self, pause_s: float) -> None:
        if self._attempts is None:
            self._ending.wait(pause_s)
        else:
            self._attempts.wait(pause_s)  # a finished attempt allows the next one

    def _leave(self) -> None:
        """Wait briefly for attempts under way: cancelled ones would be made twice."""
        until = time.monotonic() + LEAVE_S
        while self._dispatcher is not None and not self._dispatcher.finish() and time.monotonic() < until:
            self._rest(0.1)

    def _end(self) -> None:
        self._dispatcher = None
        if self._attempts is not None:
            self._attempts.close()
            self._attempts = None

    def _beat(self, conn: psycopg.Connection[Any], dispatcher: Dispatcher) -> None:
        """Touch the stage's clock: its lateness is that of the oldest event not queued, or attempt not made."""
        standing = dispatcher.standing()
        due_since: datetime | None = standing.pop("due_since")
        self.figures.record_state(standing)
        self._end_if_idle(wanted=standing["webhooks"] > 0)
        if not standing["webhooks"]:
            return  # the stage is off, and its clock says so
        seen_at = dispatcher.seen_at
        newest = min(filter(None, (seen_at, due_since)), default=None)
        detail = msgspec.json.encode(self.figures.totals()).decode()
        feed_queries.beat(conn, stage=STAGE, last_data_at=newest, detail=detail)
