"""Plays a stretch of the past to one client, as fast as it wishes: by a clock that runs with it, or without one."""

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

    from api.replay.history import Course, Happening, Place, Standing

IDLE_S = 10.0  # a client that wants nothing for so long is sent away, as the exchange does


class Span(NamedTuple):
    """What is played: all that happened in (since, until], so many times as fast as it happened; 0: without a clock."""

    since: datetime
    until: datetime
    speed: float


class Words(Protocol):
    """How what happened is said."""

    def greet(self, standing: Sequence[Standing]) -> Iterator[bytes]:
        """Say how outcomes stand that are followed from now on."""

    def tell(self, happenings: Iterable[Happening], standing: Mapping[Place, Standing]) -> Iterator[bytes]:
        """Say what happened in one instant, and let `standing` change with it."""


class Player:
    """One replay. `send` takes a message and returns once there is room for another; it raises to end the replay.

    What a client wishes is done by the one who plays, between two instants: others hand it over by `wish`.
    """

    def __init__(
        self,
        course: Course,
        words: Words,
        span: Span,
        send: Callable[[bytes], object],
        completed: Callable[[], object] = lambda: None,
    ) -> None:
        self._course, self._words, self._span, self._send = course, words, span, send
        self._completed = completed
        self._standing: dict[Place, Standing] = {}
        self._wishes: deque[Callable[[], object]] = deque()
        self._woken = Signal()
        self._began = 0.0
        self._over = False
        self.position = span.since  # all that happened up to here has been told

    def wish(self, change: Callable[[], object]) -> None:
        """Have something changed; from any thread."""
        self._wishes.append(change)
        self._woken.set()

    def stop(self) -> None:
        """End it; from any thread."""
        self._over = True
        self._woken.set()

    def follow(self, places: Iterable[Place]) -> None:
        """Tell of these too, beginning with how they stand."""
        fresh = [place for place in dict.fromkeys(places) if place not in self._standing]
        standing = [self._course.standing(place, self.position) for place in fresh]
        self._standing |= zip(fresh, standing, strict=True)
        for message in self._words.greet(standing):
            self._send(message)

    def leave(self, token_ids: Iterable[str]) -> None:
        """Tell of these no longer."""
        gone = set(token_ids)
        self._standing = {place: now for place, now in self._standing.items() if place.token_id not in gone}

    def play(self) -> bool:
        """Play to the end, and say True; False when it is stopped or nobody wants to hear anything."""
        if not self._await_followers():
            return False
        self._began = time.monotonic()
        while self.position < self._span.until:
            if not self._await_followers():
                return False
            page, upto = self._course.next([*self._standing], self.position, self._span.until)
            self._tell(page, upto)
        self._completed()
        return not self._over

    def _await_followers(self) -> bool:
        """Do what is wished; wait for somebody to be followed."""
        until = time.monotonic() + IDLE_S
        while True:
            self._woken.clear()
            while self._wishes:
                self._wishes.popleft()()
            if self._over or self._standing:
                return not self._over
            if not self._woken.wait(until - time.monotonic()):
                return False

    def _tell(self, page: list[Happening], upto: datetime) -> None:
        """Tell what was read, each instant at its time; a wish interrupts it, and what comes then is read anew."""
        for us, happenings in groupby(page, key=itemgetter(0)):
            if not self._wait(at_us(us)):
                return
            for message in self._words.tell(happenings, self._standing):
                self._send(message)
            self.position = at_us(us)
        if self._wait(upto):
            self.position = upto

    def _wait(self, instant: datetime) -> bool:
        """Wait for an instant to come; tell whether it has, and was not interrupted."""
        span, speed = self._span, self._span.speed
        if speed:
            due = self._began + (instant - span.since).total_seconds() / speed
            left = due - time.monotonic()
            if left > 0 and not self._woken.wait(left):
                return True
        if not self._woken.is_set():
            return True
        if speed:  # who is followed from now on begins now, not with what was told last
            now = span.since + (time.monotonic() - self._began) * speed * 1_000_000 * MICROSECOND
            self.position = max(self.position, min(now, instant - MICROSECOND))
        return False
