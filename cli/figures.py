"""What the pipeline has done so far, read from the database once a second."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    import psycopg

TABLES = (
    *("events", "markets", "tokens", "trades", "quotes", "book_events", "live_prices", "live_books"),
    *("candles_1m", "candles_1h", "market_stats_24h", "settlements", "ledger_entries", "stream_events"),
)
SHARE = 0.05  # of the time may go into counting: a table that takes long to count is counted less often


class Stage(NamedTuple):
    """A stage of the pipeline and how late it is."""

    stage: str
    status: str
    lag_s: float | None


class Lease(NamedTuple):
    """A run that holds the feed's sockets."""

    feed: str
    run_id: str
    role: str
    ready: bool
    pid: int | None
    silent_s: float
    window_left_s: float


class Figures(msgspec.Struct):
    """One look."""

    rows: dict[str, int] = {}
    rates: dict[str, float] = {}  # rows a second, over the last ten
    lag_p50_s: float | None = None
    lag_p99_s: float | None = None
    stages: list[Stage] = []
    leases: list[Lease] = []
    gaps: int | None = None
    open_gaps: int = 0
    quarantined: int | None = None
    error: str | None = None


class Counter:
    """Counts tables exactly, the slow ones less often."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._due = dict.fromkeys(TABLES, 0.0)
        self._past: dict[str, deque[tuple[float, int]]] = {table: deque() for table in TABLES}

    def count(self, conn: psycopg.Connection[Any], *, all_of_them: bool = False) -> None:
        """Count the tables that are due."""
        from psycopg import sql

        for table in TABLES:
            began = time.monotonic()
            if not all_of_them and began < self._due[table]:
                continue
            found = conn.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(table))).fetchone()
            self.rows[table] = found[0] if found else 0
            ended = time.monotonic()
            self._due[table] = ended + max(0.9, (ended - began) * len(TABLES) / SHARE)
            past = self._past[table]
            past.append((ended, self.rows[table]))
            while len(past) > 2 and past[1][0] < ended - 10:
                past.popleft()

    def rates(self) -> dict[str, float]:
        """Rows a second."""
        made = {}
        for table, past in self._past.items():
            if len(past) > 1:
                (t0, n0), (t1, n1) = past[0], past[-1]
                made[table] = (n1 - n0) / (t1 - t0)
        return made


class Reader:
    """Keeps a connection and reads figures over it; a database that is away shows in `error`, not as an exception."""

    def __init__(self, url: str, *, since: datetime | None = None) -> None:
        self.url = url
        self.since = since or datetime.now(UTC)
        self.counter = Counter()
        self.last = Figures()
        self._conn: psycopg.Connection[Any] | None = None

    def read(self, *, all_of_them: bool = False) -> Figures:
        """Look now."""
        import psycopg

        try:
            if self._conn is None or self._conn.closed:
                from sql.database import connect

                self._conn = connect(self.url, autocommit=True, name="presage demo", statement_timeout=20_000)
            self.last = self._read(self._conn, all_of_them=all_of_them)
        except (psycopg.Error, OSError) as error:
            self.close()
            self.last = msgspec.structs.replace(self.last, error=f"database: {str(error).strip().splitlines()[0]}")
        return self.last

    def _read(self, conn: psycopg.Connection[Any], *, all_of_them: bool) -> Figures:
        from orchestration.live import lag
        from sql.queries import figures as queries

        self.counter.count(conn, all_of_them=all_of_them)
        counts = lag.merged(row[0] for row in queries.lag_counts(conn, since=self.since))
        gaps, open_gaps = queries.gaps(conn)
        p50, p99 = lag.quantile(counts, 0.5), lag.quantile(counts, 0.99)
        return Figures(
            rows=dict(self.counter.rows),
            rates=self.counter.rates(),
            lag_p50_s=None if p50 is None else p50 / 1000,
            lag_p99_s=None if p99 is None else p99 / 1000,
            stages=[Stage(*row) for row in queries.stages(conn)],
            leases=[Lease(*row) for row in queries.leases(conn)],
            gaps=gaps,
            open_gaps=open_gaps,
            quarantined=queries.quarantined(conn),
        )

    def close(self) -> None:
        """Let the connection go."""
        if self._conn is not None:
            with contextlib.suppress(Exception):
                self._conn.close()
            self._conn = None
