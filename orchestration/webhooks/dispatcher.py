"""Webhook dispatcher, step by step: events become deliveries, due ones are sent, results are stored.

One connection, the one that holds the lead, does all of it: a run that has lost the lead can write nothing. An attempt
that was made and not stored, because the process died in between, is repeated with the same `webhook-id`.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby, islice, takewhile
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from orchestration.webhooks import challenge
from orchestration.webhooks.schedule import Verdict, verdict
from orchestration.webhooks.subscriptions import Subscriptions, event
from sql.queries import webhooks as queries
from sql.stream_reader import StreamReader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    import psycopg

    from orchestration.webhooks.schedule import Outcome

    WebhookRow = tuple[UUID, int, str, str]  # with the number, type and body of an event

log = logging.getLogger(__name__)

HELD_BACK = "more than {:,} deliveries were waiting for the URL's verification or the next day's budget"

MAX_EVENTS_PER_STEP = 5_000  # stream events read in one transaction
MAX_DELIVERIES_PER_STEP = 20_000  # deliveries queued in one transaction, and those of the event that exceeds it
MAX_DELIVERIES_PER_WEBHOOK = 20  # deliveries of a webhook that are started together, and made one after the other
MAX_LOGGED_ATTEMPTS = 20  # attempts of a delivery
MAX_WAITING = 10_000  # deliveries of a webhook whose receiver fails
MAX_HELD_BACK = 10_000  # deliveries of a webhook that is being verified, or whose account is over its budget
RECHECK = timedelta(minutes=5)  # until it is seen that an account's budget of the day has been raised
MAX_WAITING_FACTOR = 200  # times as many of any webhook: hours of all trades, as after an outage of ours


class DueDelivery(NamedTuple):
    """A delivery that is due."""

    account_id: int
    webhook_id: UUID
    delivery_id: UUID
    url: str
    secrets: list[str]  # as they are stored
    body: str
    attempts: int
    test: bool
    type: str
    next_at: datetime

    @property
    def message_id(self) -> str:
        """Return the ID that the receiver knows it by."""
        return f"msg_{self.delivery_id.hex}"


class FinishedAttempt(NamedTuple):
    """A finished attempt."""

    due: DueDelivery
    outcome: Outcome
    free: bool
    """Whether nothing more is being delivered to the webhook."""


class AttemptRunner(Protocol):
    """A sender of attempts: starts them, and returns them when finished."""

    def start(self, due: Sequence[DueDelivery]) -> None:
        """Start deliveries of a webhook, one after the other, until one fails."""
        ...

    def finished(self) -> list[FinishedAttempt]:
        """Return the attempts that have finished."""
        ...


@dataclass
class DispatchCounts:
    """Counters of the work done."""

    queued: int = 0
    missed: int = 0
    attempts: int = 0
    delivered: int = 0
    failed: int = 0
    disabled: int = 0


class Dispatcher:
    """Does the work due at one moment; the caller provides the clock."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        attempts: AttemptRunner,
        clock: Callable[[], float],
        *,
        max_waiting: int = MAX_WAITING,
        at_once: int = 50,
        at_once_per_account: int = 10,
    ) -> None:
        self._conn, self._attempts, self._clock = conn, attempts, clock
        self._max_waiting = max_waiting
        self._at_once, self._at_once_per_account = at_once, at_once_per_account
        self._subscriptions = Subscriptions()
        self._reader = StreamReader()
        self._version: int | None = None
        self._busy: dict[UUID, tuple[int, int]] = {}  # account, and attempts that were started and not stored
        self.counted = DispatchCounts()
        self.behind = False
        self.seen_at: datetime | None = None
        """Up to when events have been made into deliveries; None before the first look."""

    def step(self) -> None:
        """Store finished attempts, queue new events, send due deliveries."""
        self.finish()
        self._queue()
        self._send()

    def finish(self) -> bool:
        """Store finished attempts; return whether none remain."""
        if over := self._attempts.finished():
            self._record(over)
        return not self._busy

    @property
    def now(self) -> datetime:
        """Return the caller's time."""
        return datetime.fromtimestamp(self._clock(), UTC)

    def standing(self) -> dict[str, Any]:
        """Return how much is waiting, and since when something is due."""
        webhooks, waiting, due, since = queries.standing(self._conn, now=self.now)
        return {"webhooks": webhooks, "waiting": waiting, "due": due, "due_since": since}

    # --- From events to deliveries

    def _queue(self) -> None:
        with self._conn.transaction():
            last, seen, version = queries.head(self._conn)
            if version != self._version:
                self._subscriptions = Subscriptions(queries.subscriptions(self._conn))
                self._version = version
            # Events from a time without webhooks need not be read.
            after = max(seen, last if self._subscriptions.since is None else self._subscriptions.since)
            rows, upto = self._read(after, last) if after < last else ([], last)
            self.behind = upto < last
            if upto == seen:
                self.seen_at = self.now
                return
            if rows:
                self._add(rows)
            queries.seen(self._conn, seq=upto)
            self.seen_at = queries.published_at(self._conn, seq=upto) if self.behind else self.now

    def _read(self, after: int, last: int) -> tuple[list[WebhookRow], int]:
        """Return the deliveries of the next events, and of the news that some are missing; and up to where they are."""
        kinds = self._subscriptions.kinds
        page = self._reader.read(self._conn, after, last, MAX_EVENTS_PER_STEP, lambda _, kind: kind in kinds)
        wanted = (
            (wish.webhook_id, found.seq, found.type, found.body)
            for found in map(event, page.events)
            for wish in self._subscriptions.of(found)
        )
        missed = (
            row for begin, end in page.missing for row in self._subscriptions.missed(begin - 1, end, self._clock())
        )
        rows: list[WebhookRow] = []
        reached = page.reached
        for seq, of_event in groupby(merge(wanted, missed, key=itemgetter(1)), itemgetter(1)):
            rows += of_event
            if len(rows) >= MAX_DELIVERIES_PER_STEP:
                reached = seq
                break
        for begin, end in page.missing:
            if end <= reached:
                count = end - begin + 1
                self.counted.missed += count
                log.warning("%s events were lost before they became deliveries", count)
        return rows, reached

    def _add(self, rows: Sequence[WebhookRow]) -> None:
        # Before anything is added: a burst after our own outage is not the receiver's fault.
        why, most = "more than {:,} deliveries were waiting", self._max_waiting * MAX_WAITING_FACTOR
        overfull = queries.disable_overfull(self._conn, most=self._max_waiting, reason=why.format(self._max_waiting))
        overfull += queries.disable_held_back(
            self._conn, most=MAX_HELD_BACK, reason=HELD_BACK.format(MAX_HELD_BACK), now=self.now
        )
        overfull += queries.disable_slow(self._conn, most=most, reason=why.format(most))
        webhook_ids, seqs, types, bodies = (list(column) for column in zip(*rows, strict=True))
        self.counted.queued += queries.queue(
            self._conn, webhook_ids=webhook_ids, seqs=seqs, types=types, bodies=bodies, now=self.now
        )
        if overfull:
            self.counted.disabled += overfull
            queries.changed(self._conn)

    # --- Delivering

    def _send(self) -> None:
        room = self._at_once - len(self._busy)
        if room <= 0:
            return
        now = self.now
        queries.hold_back(
            self._conn, now=now, day=self._day, until=self._day + timedelta(days=1), recheck=now + RECHECK
        )
        slots: Counter[int] = Counter()
        started: Counter[int] = Counter()
        for account_id, attempts in self._busy.values():
            slots[account_id] += 1
            started[account_id] += attempts
        rows = queries.due(
            self._conn,
            now=now,
            day=self._day,
            busy=list(self._busy),
            accounts=list(slots),
            slots=list(slots.values()),
            attempts=[started[account_id] for account_id in slots],
            most=self._at_once_per_account,
            webhooks=room,
            each=MAX_DELIVERIES_PER_WEBHOOK,
        )
        more: Counter[int] = Counter()
        for (account_id, webhook_id, remaining), found in groupby(rows, itemgetter(0, 2, 1)):
            # A failed delivery may be queued behind a test: the test does not make it due.
            ready = takewhile(lambda due: due.next_at <= now, (DueDelivery(row[0], *row[2:]) for row in found))
            budget = None if remaining is None else max(remaining - more[account_id], 0)
            if due := list(islice(ready, budget)):
                more[account_id] += len(due)
                self._busy[webhook_id] = account_id, len(due)
                self._attempts.start(due)

    @property
    def _day(self) -> datetime:
        """Return the first instant of the day, UTC."""
        return self.now.replace(hour=0, minute=0, second=0, microsecond=0)

    def _record(self, over: Sequence[FinishedAttempt]) -> None:
        with self._conn.transaction():
            changed = [self._record_outcome(each.due, each.outcome) for each in over]
            queries.count_attempts(self._conn, accounts=[each.due.account_id for each in over], day=self._day)
            if any(changed):
                queries.changed(self._conn)
        for each in over:
            account_id, attempts = self._busy.pop(each.due.webhook_id)
            if not each.free:
                self._busy[each.due.webhook_id] = account_id, attempts - 1

    def _record_outcome(self, due: DueDelivery, outcome: Outcome) -> bool:
        """Store the result of an attempt; return whether it verified or disabled its webhook."""
        attempts = due.attempts + 1
        echoed = due.type != challenge.TYPE or challenge.echoed(due.body, outcome.answer)
        judged = verdict(attempts, outcome, test=due.test) if echoed else Verdict("failed")
        ended = judged.state != "waiting"
        entry = {
            "ts": round(outcome.began * 1000),
            "status": outcome.status,
            "error": outcome.error if echoed or outcome.error else challenge.NOT_ECHOED,
            "duration_ms": round((outcome.ended - outcome.began) * 1000),
            "answer": outcome.answer,
        }
        queries.hold(self._conn, webhook_id=due.webhook_id)
        known = queries.record_attempt(
            self._conn,
            delivery_id=due.delivery_id,
            attempts=attempts,
            state=judged.state,
            next_at=None if judged.next_at is None else datetime.fromtimestamp(judged.next_at, UTC),
            ended_at=datetime.fromtimestamp(outcome.ended, UTC) if ended else None,
            entry=msgspec.json.encode(entry).decode(),
            most=MAX_LOGGED_ATTEMPTS,
        )
        verified = due.type == challenge.TYPE and judged.state == "delivered"
        if verified:
            queries.verified(self._conn, webhook_id=due.webhook_id, challenge=challenge.sent(due.body), now=self.now)
        queries.go_on(self._conn, webhook_id=due.webhook_id, more=-known if ended else 0, now=self.now)
        self.counted.attempts += 1
        self.counted.delivered += judged.state == "delivered"
        self.counted.failed += judged.state == "failed"
        disabled = judged.disabled is not None and bool(
            queries.disable(self._conn, webhook_id=due.webhook_id, reason=judged.disabled)
        )
        self.counted.disabled += disabled
        return verified or disabled
