"""Leases: each run's heartbeat and progress, when a leader may leave, and the connection that holds the lead."""

import math
import os
from collections import deque
from collections.abc import Iterable
from time import monotonic, time
from typing import Any

import msgspec
import psycopg

from config import settings
from sql import database
from sql.queries import feed as queries

ALIVE_S = 10.0  # a lease is touched each second; `close_abandoned_gaps` and `alive_feed` (sql) use the same span
MAX_SILENT_S = 30.0  # of a leader that may live: a busy machine delays touches; who leads is said by the lock
READY_S = 3.0  # a successor must be ready this long before a leader hands over
CLOCK_SAMPLES = 30  # kept; the one with the shortest round trip gives the clock offset
MAX_OVERSTAY_WINDOWS = 3.0  # a run ends after this many windows even without a successor


def connect_for_leadership(url: str, feed: str, *, statement_timeout: int) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to hold the leader lock, which lasts as long as the session.

    Behind a connection pooler the lock would belong to whichever client comes next: this must be a direct connection.
    """
    return database.connect(
        url,
        autocommit=True,
        name=f"presage feed {feed}: leader",
        statement_timeout=statement_timeout,
        tcp_keepalives_idle=5,  # a leader whose machine is gone loses the lock within seconds
        tcp_keepalives_interval=2,
        tcp_keepalives_count=3,
        tcp_user_timeout=10_000,  # also while an answer is under way, when keepalives rest
    )


class LeaseRow(msgspec.Struct, frozen=True):
    """A row of `feed_leases`."""

    run_id: str
    role: str
    ready: bool
    started_at: float
    silent_s: float
    detail: dict[str, Any]
    pid: int | None = None
    host: str | None = None

    @property
    def fresh(self) -> bool:
        """Whether the run touched its lease recently."""
        return self.silent_s < ALIVE_S

    @property
    def alive(self) -> bool:
        """Whether the run touched its lease recently, and has not left."""
        return self.role != "gone" and self.fresh

    @property
    def written_ms(self) -> int:
        """Exchange time before which everything the run received is committed."""
        return int(self.detail.get("written_ms") or 0)

    @property
    def led_ms(self) -> int:
        """When it last took the lead, by the database's clock; 0: never."""
        return int(self.detail.get("led_ms") or 0)

    @property
    def ready_for_s(self) -> float:
        """Seconds since every book is synced."""
        return float(self.detail.get("ready_for_s") or 0) if self.ready else 0.0


def read_leases(conn: psycopg.Connection[Any], feed: str) -> list[LeaseRow]:
    """Return all leases of a feed, the oldest run first."""
    return [LeaseRow(*row) for row in queries.leases(conn, feed=feed)]


class FeedLease:
    """One run's lease, touched over a connection of its own, so that a long write does not delay it."""

    def __init__(self, url: str, feed: str, run_id: str, window_s: float) -> None:
        self.feed = feed
        self.run_id = run_id
        self.window_s = window_s
        self._url = url
        self._conn: psycopg.Connection[tuple[Any, ...]] | None = None
        self._clock_samples: deque[tuple[float, int]] = deque(
            maxlen=CLOCK_SAMPLES
        )  # round trip (s), and how far we were ahead (ms)

    @property
    def clock_ahead_ms(self) -> int:
        """How far this host's clock is ahead of the database's; 0 before the first touch."""
        return min(self._clock_samples)[1] if self._clock_samples else 0

    def database_ms(self) -> int:
        """Return the database's time, as estimated."""
        return int(time() * 1000) - self.clock_ahead_ms

    @property
    def conn(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, reopened if it was lost."""
        if self._conn is None or self._conn.closed:
            self._conn = database.connect(
                self._url, autocommit=True, name=f"presage feed {self.feed}: lease", statement_timeout=15_000
            )
        return self._conn

    def touch(self, role: str, detail: dict[str, Any], *, ready: bool) -> list[LeaseRow]:
        """Touch the lease; return all leases of the feed, the oldest run first."""
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
            host=settings.get().host,
            detail=msgspec.json.encode({**detail, "clock_ahead_ms": self.clock_ahead_ms}).decode(),
        )
        after = time()
        self._clock_samples.append((after - before, round((before + after) * 500) - database_ms))
        return read_leases(conn, self.feed)

    def close(self) -> None:
        """Close the connection."""
        if self._conn is not None:
            self._conn.close()


def progress(leases: Iterable[LeaseRow], run_id: str) -> tuple[int, int]:
    """Return when the last other leader took the lead, and its committed exchange time; zeros: none ever led.

    The last leader is authoritative: an earlier one may have misjudged the exchange's time.
    """
    return max(
        ((lease.led_ms, lease.written_ms) for lease in leases if lease.run_id != run_id and lease.written_ms),
        default=(0, 0),
    )


def successor(leases: Iterable[LeaseRow], run_id: str) -> LeaseRow | None:
    """Return a younger run that could lead at once, or None."""
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


def may_leave(leases: Iterable[LeaseRow], run_id: str, heard_at: float) -> bool:
    """Return whether a younger run could lead at once, by leases that were read at a monotonic instant.

    Of several runs that ask, the youngest stays.
    """
    return monotonic() - heard_at < ALIVE_S and successor(leases, run_id) is not None


def another_ready(leases: Iterable[LeaseRow], run_id: str, *, in_touch_s: float = math.inf) -> bool:
    """Return whether another run is alive and could lead.

    Runs that are silent may be so because the database was away. They count until this run has been in touch with it
    for as long as they have to touch their leases.
    """
    others = [lease for lease in leases if lease.run_id != run_id and lease.role != "gone"]
    if in_touch_s < ALIVE_S and any(lease.ready or lease.role == "leader" for lease in others if not lease.fresh):
        return True
    return any(lease.fresh and lease.ready for lease in others)
