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
PAST_S = 5.0
COUNTED = (
    *("signals", "leaderboard_wallets_with_profit", "markets_with_14_days_of_candles"),
    *("trending_ratios", "filled_days"),
)
SHARE = 0.05  # of the time may go into counting: a table that takes long to count is counted less often


class Stage(NamedTuple):
    """A stage of the pipeline and how late it is."""

    stage: str
    status: str
    lag_s: float | None
    reason: str | None = None  # what keeps it from going on
    since: int | None = None  # Unix seconds

    def told(self) -> str:
        """Say what keeps it from going on, and since when."""
        if self.reason is None:
            return ""
        return self.reason + ("" if self.since is None else f", since {datetime.fromtimestamp(self.since):%H:%M:%S}")  # noqa: DTZ006 - the clock on the wall


class Lease(NamedTuple):
    """A run that holds the feed's sockets."""

    feed: str
    run_id: str
    role: str
    ready: bool
    pid: int | None
    silent_s: float
    window_left_s: float


class Past(msgspec.Struct, frozen=True, kw_only=True):
    """What was filled in of the days before the first, and what there is to look at for it."""

    days: int
    doing: str | None  # null: all is done, or nothing has begun
    share: float  # of all steps
    signals: int
    leaderboard_wallets_with_profit: int
    markets_with_14_days_of_candles: int
    trending_ratios: int  # that differ, among the first 25
    filled_days: int
    trades: int
    settlements: int


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
    past: Past | None = None
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
        self._past_due = 0.0
        self._counts: dict[str, int] = {}
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
        from orchestration.ingest import lag
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
            past=self._past(conn, anew=all_of_them),
        )

    def _past(self, conn: psycopg.Connection[Any], *, anew: bool) -> Past | None:
        """Look at the back-fill, where there is one; what has to be counted, every few seconds."""
        from sql.queries import figures as queries

        state = queries.backfill(conn)
        if state is None:
            return None
        done, steps = sum(state.get("done", {}).values()), state.get("steps") or 1
        share = 1.0 if state.get("finished_at") else min((done + state.get("share", 0.0)) / steps, 1.0)
        began = time.monotonic()
        if anew or began >= self._past_due:
            self._counts = dict(zip(COUNTED, queries.past(conn), strict=True))
            self._past_due = time.monotonic() + max(PAST_S, (time.monotonic() - began) / SHARE)
        return Past(
            days=state["days"],
            doing=state.get("doing"),
            share=round(share, 3),
            trades=state.get("trades", 0),
            settlements=state.get("settlements", 0),
            **self._counts,
        )

    def close(self) -> None:
        """Let the connection go."""
        if self._conn is not None:
            with contextlib.suppress(Exception):
                self._conn.close()
            self._conn = None
