"""Leases: the sign of life of each run, how far the leader has come, and when it may go; and how it holds the lead."""

import os
import socket
from collections import deque
from collections.abc import Iterable
from time import time
from typing import Any

import msgspec
import psycopg

from sql import database
from sql.queries import feed as queries

ALIVE_S = 10.0
READY_S = 3.0  # a successor holds every book for so long before one leaves to it
CLOCK_LOOKS = 30  # of which the one with the shortest round trip says how far apart two clocks are
OVERSTAY = 3.0  # windows: longer than this nobody stays, whoever follows


def connect_to_lead(url: str, feed: str, *, statement_timeout: int) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect as one who is to hold the lock of the lead, which lasts as long as the session.

    Behind a pool of connections the lock would belong to whoever comes next: this has to be a direct one.
    """
    return database.connect(
        url,
        autocommit=True,
        name=f"presage feed {feed}: leader",
        statement_timeout=statement_timeout,
        tcp_keepalives_idle=5,  # a leader whose machine is gone lets go of the lock within seconds
        tcp_keepalives_interval=2,
        tcp_keepalives_count=3,
    )


class Held(msgspec.Struct, frozen=True):
    """A run's lease, as the database has it."""

    run_id: str
    role: str
    ready: bool
    started_at: float
    silent_s: float
    detail: dict[str, Any]

    @property
    def alive(self) -> bool:
        """Whether the run gave a sign of life lately."""
        return self.role != "gone" and self.silent_s < ALIVE_S

    @property
    def written_ms(self) -> int:
        """What the exchange said before this instant of its own, and the run heard, is committed."""
        return int(self.detail.get("written_ms") or 0)

    @property
    def led_ms(self) -> int:
        """When it last took the lead, by the database's clock; 0: never."""
        return int(self.detail.get("led_ms") or 0)

    @property
    def ready_for_s(self) -> float:
        """How long it has been holding every book."""
        return float(self.detail.get("ready_for_s") or 0) if self.ready else 0.0


class Lease:
    """One run's lease, touched over a connection of its own: a long write does not hold it up."""

    def __init__(self, url: str, feed: str, run_id: str, window_s: float) -> None:
        self.feed = feed
        self.run_id = run_id
        self.window_s = window_s
        self._url = url
        self._conn: psycopg.Connection[tuple[Any, ...]] | None = None
        self._looks: deque[tuple[float, int]] = deque(maxlen=CLOCK_LOOKS)  # round trip, and how far we were ahead

    @property
    def clock_ahead_ms(self) -> int:
        """How far this host's clock is ahead of the database's; 0 before the first look."""
        return min(self._looks)[1] if self._looks else 0

    def database_ms(self) -> int:
        """Give the database's time, as far as it is known."""
        return int(time() * 1000) - self.clock_ahead_ms

    @property
    def conn(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, made anew when it was lost."""
        if self._conn is None or self._conn.closed:
            self._conn = database.connect(
                self._url, autocommit=True, name=f"presage feed {self.feed}: lease", statement_timeout=15_000
            )
        return self._conn

    def touch(self, role: str, detail: dict[str, Any], *, ready: bool) -> list[Held]:
        """Give a sign of life; give all leases of the feed, the oldest run first."""
        conn = self.conn
        before = time()
        database_ms = queries.touch_lease(
            conn,
            run_id=self.run_id,
            feed=self.feed,
            role=role,
            ready=ready,
            window_s=self.window_s,
            pid=os.getpid(),
            host=socket.gethostname(),
            detail=msgspec.json.encode({**detail, "clock_ahead_ms": self.clock_ahead_ms}).decode(),
        )
        after = time()
        self._looks.append((after - before, round((before + after) * 500) - database_ms))
        return [Held(*row) for row in queries.leases(self.conn, feed=self.feed)]

    def close(self) -> None:
        """Let go of the connection."""
        if self._conn is not None:
            self._conn.close()


def progress(leases: Iterable[Held], run_id: str) -> tuple[int, int]:
    """Tell when the last leader among others began, and up to when what it heard is committed; zeros: none ever led.

    Whoever led last knows best: an earlier one may have had a wrong idea of the exchange's time.
    """
    return max(
        ((lease.led_ms, lease.written_ms) for lease in leases if lease.run_id != run_id and lease.written_ms),
        default=(0, 0),
    )


def successor(leases: Iterable[Held], run_id: str) -> Held | None:
    """Find a younger run that could lead at once."""
    found = list(leases)
    mine = next((lease for lease in found if lease.run_id == run_id), None)
    return next(
        (
            lease
            for lease in found
            if lease.alive and mine is not None and lease.started_at > mine.started_at and lease.ready_for_s >= READY_S
        ),
        None,
    )


def anybody_else(leases: Iterable[Held], run_id: str) -> bool:
    """Tell whether another run is alive and could lead."""
    return any(lease.alive and lease.ready for lease in leases if lease.run_id != run_id)
