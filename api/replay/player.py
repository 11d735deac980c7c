"""Plays a time range of stored events to one client, at a chosen speed or without a clock."""

from __future__ import annotations

import time
from collections import deque
from itertools import groupby
from operator import itemgetter
from threading import Event as Signal
from typing import TYPE_CHECKING, NamedTuple, Protocol

from api.replay.history import MICROSECOND, at_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from api.replay.history import HistoricEvent, HistoryReader, OutcomeRef, OutcomeState

IDLE_S = 10.0  # a client without subscriptions is disconnected after this, as at the exchange


class ReplaySpan(NamedTuple):
    """The range of a replay, (since, until], and its speed as a multiple of real time; 0: without a clock."""

    since: datetime
    until: datetime
    speed: float


class Encoder(Protocol):
    """Encodes events as messages of a protocol."""

    def encode_initial(self, states: Sequence[OutcomeState]) -> Iterator[bytes]:
        """Encode the current state of newly followed outcomes."""

    def encode_events(
        self, events: Iterable[HistoricEvent], states: Mapping[OutcomeRef, OutcomeState]
    ) -> Iterator[bytes]:
        """Encode the events of one instant and update the states."""


class Player:
    """One replay. `send` takes a message and returns once there is room for another; it raises to end the replay.

    Changes that a client requests are queued by `enqueue` and applied by the playing greenlet between two instants.
    """

    def __init__(
        self,
        history: HistoryReader,
        encoder: Encoder,
        span: ReplaySpan,
        send: Callable[[bytes], object],
        completed: Callable[[], object] = lambda: None,
    ) -> None:
        self._history, self._encoder, self._span, self._send = history, encoder, span, send
        self._completed = completed
        self._states: dict[OutcomeRef, OutcomeState] = {}
        self._changes: deque[Callable[[], object]] = deque()
        self._woken = Signal()
        self._began = 0.0
        self._over = False
        self.position = span.since  # all events up to here have been sent

    def enqueue(self, change: Callable[[], object]) -> None:
        """Queue a change; callable from any thread."""
        self._changes.append(change)
        self._woken.set()

    @property
    def queued(self) -> int:
        """How many changes are not applied yet."""
        return len(self._changes)

    def stop(self) -> None:
        """End the replay; callable from any thread."""
        self._over = True
        self._woken.set()

    def follow(self, places: Iterable[OutcomeRef]) -> None:
        """Follow more outcomes, starting with their current state."""
        fresh = [place for place in dict.fromkeys(places) if place not in self._states]
        states = [self._history.state(place, self.position) for place in fresh]
        self._states |= zip(fresh, states, strict=True)
        for message in self._encoder.encode_initial(states):
            self._send(message)

    def unfollow(self, token_ids: Iterable[str]) -> None:
        """Stop following outcomes."""
        gone = set(token_ids)
        self._states = {place: now for place, now in self._states.items() if place.token_id not in gone}

    def play(self) -> bool:
        """Play to the end and return True; False if stopped, or if nothing was subscribed to in time."""
        if not self._await_followers():
            return False
        self._began = time.monotonic()
        while self.position < self._span.until:
            if not self._await_followers():
                return False
            page, upto = self._history.next([*self._states], self.position, self._span.until)
            self._tell(page, upto)
        self._completed()
        return not self._over

    def _await_followers(self) -> bool:
        """Apply queued changes; wait until an outcome is followed."""
        until = time.monotonic() + IDLE_S
        while True:
            self._woken.clear()
            while self._changes:
                self._changes.popleft()()
            if self._over or self._states:
                return not self._over
            if not self._woken.wait(until - time.monotonic()):
                return False

    def _tell(self, page: list[HistoricEvent], upto: datetime) -> None:
        """Send events, each instant when it is due; a queued change interrupts this, and the rest is read again."""
        for us, events in groupby(page, key=itemgetter(0)):
            if not self._wait(at_us(us)):
                return
            for message in self._encoder.encode_events(events, self._states):
                self._send(message)
            self.position = at_us(us)
        if self._wait(upto):
            self.position = upto

    def _wait(self, instant: datetime) -> bool:
        """Wait until an instant is due; return False if interrupted."""
        span, speed = self._span, self._span.speed
        if speed:
            due = self._began + (instant - span.since).total_seconds() / speed
            left = due - time.monotonic()
            if left > 0 and not self._woken.wait(left):
                return True
        if not self._woken.is_set():
            return True
        if speed:  # newly followed outcomes start now, not at the last event sent
            now = span.since + (time.monotonic() - self._began) * speed * 1_000_000 * MICROSECOND
            self.position = max(self.position, min(now, instant - MICROSECOND))
        return False
