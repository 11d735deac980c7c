"""The deliverer's work, step by step: events become deliveries, due ones are sent, what came of them is written down.

One connection does all of it, the one that holds the lead: who has lost that can write nothing. An attempt that was
made and not written down, because the process died in between, is made again with the same `webhook-id`.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from orchestration.webhooks.schedule import verdict
from orchestration.webhooks.subscriptions import Subscriptions, event
from sql.queries import webhooks as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    import psycopg

    from orchestration.webhooks.schedule import Outcome

log = logging.getLogger(__name__)

EVENTS_AT_ONCE = 5_000  # places of the stream looked through in one transaction
IN_A_ROW = 20  # deliveries of a webhook that are begun with at once, and made one after the other
LOG_KEPT = 20  # attempts of a delivery
MOST_WAITING = 10_000  # deliveries of a webhook whose receiver fails


class Due(NamedTuple):
    """A delivery whose turn has come."""

    webhook_id: UUID
    delivery_id: UUID
    url: str
    secrets: list[str]
    body: str
    attempts: int
    test: bool
    next_at: datetime

    @property
    def message_id(self) -> str:
        """What the receiver knows it by."""
        return f"msg_{self.delivery_id.hex}"


class Over(NamedTuple):
    """An attempt that is over."""

    due: Due
    outcome: Outcome
    free: bool
    """Whether nothing more is being delivered to the webhook."""


class Sending(Protocol):
    """Where attempts are made: begun here, and taken back when they are over."""

    def begin(self, due: Sequence[Due]) -> None:
        """Begin with deliveries of a webhook, one after the other, until one does not arrive."""
        ...

    def over(self) -> list[Over]:
        """Take those that are over."""
        ...


@dataclass
class Counted:
    """What was done."""

    queued: int = 0
    missed: int = 0
    attempts: int = 0
    delivered: int = 0
    failed: int = 0
    disabled: int = 0


class Dispatcher:
    """Does what is to be done at one moment; the clock is the caller's."""

    def __init__(
        self,
        conn: psycopg.Connection[Any],
        sending: Sending,
        clock: Callable[[], float],
        *,
        most_waiting: int = MOST_WAITING,
        at_once: int = 50,
    ) -> None:
        self._conn, self._sending, self._clock = conn, sending, clock
        self._most_waiting, self._at_once = most_waiting, at_once
        self._subscriptions = Subscriptions()
        self._version: int | None = None
        self._busy: set[UUID] = set()
        self.counted = Counted()
        self.behind = False
        self.seen_at: datetime | None = None
        """Up to when events have been made into deliveries; None before the first look."""

    def step(self) -> None:
        """Write down what is over, queue what is new, send what is due."""
        self.finish()
        self._queue()
        self._send()

    def finish(self) -> bool:
        """Write down what is over; tell whether that was all."""
        if over := self._sending.over():
            self._record(over)
        return not self._busy

    @property
    def now(self) -> datetime:
        """The caller's time."""
        return datetime.fromtimestamp(self._clock(), UTC)

    def standing(self) -> dict[str, Any]:
        """Say how much is waiting, and since when something is due."""
        webhooks, waiting, due, since = queries.standing(self._conn, now=self.now)
        return {"webhooks": webhooks, "waiting": waiting, "due": due, "due_since": since}

    # --- From events to deliveries

    def _queue(self) -> None:
        with self._conn.transaction():
            last, seen, version = queries.head(self._conn)
            if version != self._version:
                self._subscriptions = Subscriptions(queries.subscriptions(self._conn))
                self._version = version
            # After a time with nobody to tell, what happened in it need not be looked through.
            after = max(seen, last if self._subscriptions.since is None else self._subscriptions.since)
            rows, after = self._missed(after, last)
            upto = min(last, after + EVENTS_AT_ONCE)
            self.behind = upto < last
            if upto == seen:
                self.seen_at = self.now
                return
            rows += [
                (wish.webhook_id, found.seq, found.type, found.body)
                for found in self._events(after, upto)
                for wish in self._subscriptions.of(found)
            ]
            if rows:
                self._add(rows)
            queries.seen(self._conn, seq=upto)
            self.seen_at = queries.told_at(self._conn, seq=upto) if self.behind else self.now

    def _missed(self, after: int, last: int) -> tuple[list[tuple[UUID, int, str, str]], int]:
        """Tell webhooks of places of the stream that were dropped before anybody looked; give up to where that was."""
        if after >= last:
            return [], after
        first = queries.first_after(self._conn, seq=after)
        upto = last if first is None else min(last, first - 1)
        if upto == after:
            return [], after
        self.counted.missed += upto - after
        log.warning("%s events were dropped before they were made into deliveries", upto - after)
        return self._subscriptions.missed(after, upto, self._clock()), upto

    def _events(self, after: int, upto: int) -> list[Any]:
        found = queries.events(self._conn, after=after, upto=upto, types=self._subscriptions.kinds)
        return [event(*row) for row in found]

    def _add(self, rows: Sequence[tuple[UUID, int, str, str]]) -> None:
        # Before anything is added: what comes at once after an outage of ours is nobody's fault.
        why = f"more than {self._most_waiting:,} deliveries were waiting"
        overfull = queries.disable_overfull(self._conn, most=self._most_waiting, reason=why)
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
        rows = queries.due(self._conn, now=now, busy=list(self._busy), webhooks=room, each=IN_A_ROW)
        for webhook_id, found in groupby(map(Due._make, rows), lambda due: due.webhook_id):
            self._busy.add(webhook_id)
            # One that failed before may stand behind a test: its time has not come with the test's.
            self._sending.begin(list(takewhile(lambda due: due.next_at <= now, found)))

    def _record(self, over: Sequence[Over]) -> None:
        with self._conn.transaction():
            disabled = sum([self._judge(each.due, each.outcome) for each in over])
            if disabled:
                self.counted.disabled += disabled
                queries.changed(self._conn)
        self._busy -= {each.due.webhook_id for each in over if each.free}

    def _judge(self, due: Due, outcome: Outcome) -> int:
        """Write down what came of an attempt; give whether it had the webhook disabled."""
        attempts = due.attempts + 1
        judged = verdict(attempts, outcome, test=due.test)
        ended = judged.state != "waiting"
        entry = {
            "ts": round(outcome.began * 1000),
            "status": outcome.status,
            "error": outcome.error,
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
            most=LOG_KEPT,
        )
        queries.go_on(self._conn, webhook_id=due.webhook_id, more=-known if ended else 0, now=self.now)
        self.counted.attempts += 1
        self.counted.delivered += judged.state == "delivered"
        self.counted.failed += judged.state == "failed"
        return int(
            judged.disabled is not None
            and queries.disable(self._conn, webhook_id=due.webhook_id, reason=judged.disabled) > 0
        )
