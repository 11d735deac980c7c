"""Figures of the pipeline, read from the database once a second."""

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
MESSAGES = "select coalesce(sum(seq_to - seq_from + 1), 0)::bigint from stream_blocks"  # `stream_events`, in blocks
PAST_INTERVAL_S = 5.0
COUNTED = (
    *("signals", "leaderboard_wallets_with_profit", "markets_with_14_days_of_candles"),
    *("trending_ratios", "filled_days"),
)
MAX_COUNTING_SHARE = 0.05  # of the time: a table that is slow to count is counted less often


class StageLag(NamedTuple):
    """A stage of the pipeline and its lag."""

    stage: str
    status: str
    lag_s: float | None
    reason: str | None = None  # why it is blocked
    since: int | None = None  # Unix seconds

    def blocked_text(self) -> str:
        """Return why the stage is blocked and since when; empty if it is not."""
        if self.reason is None:
            return ""
        return self.reason + ("" if self.since is None else f", since {datetime.fromtimestamp(self.since):%H:%M:%S}")  # noqa: DTZ006 - local time


class FeedLease(NamedTuple):
    """A feed's run, as leader or standby."""

    feed: str
    run_id: str
    role: str
    ready: bool
    pid: int | None
    silent_s: float
    window_left_s: float


class BackfillFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of the back-fill, and the figures that result from it."""

    days: int
    doing: str | None  # null: finished, or not started
    share: float  # of all steps
    signals: int
    leaderboard_wallets_with_profit: int
    markets_with_14_days_of_candles: int
    trending_ratios: int  # that differ, among the first 25
    filled_days: int
    trades: int
    settlements: int


class PipelineFigures(msgspec.Struct):
    """The figures of one reading."""

    rows: dict[str, int] = {}
    rates: dict[str, float] = {}  # rows a second, over the last ten
    lag_p50_s: float | None = None
    lag_p99_s: float | None = None
    lags_p99_s: dict[str, float] = {}  # by exchange
    stages: list[StageLag] = []
    leases: list[FeedLease] = []
    gaps: int | None = None
    gaps_by_cause: dict[str, int] = {}
    open_gaps: int = 0
    quarantined: int | None = None
    past: BackfillFigures | None = None
    error: str | None = None


class TableCounter:
    """Counts tables exactly, slow ones less often."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self._due = dict.fromkeys(TABLES, 0.0)
        self._past: dict[str, deque[tuple[float, int]]] = {table: deque() for table in TABLES}

    def count(self, conn: psycopg.Connection[Any], *, count_all: bool = False) -> None:
        """Count the tables that are due."""
        from psycopg import sql

        for table in TABLES:
            began = time.monotonic()
            if not count_all and began < self._due[table]:
                continue
            query = (
                MESSAGES
                if table == "stream_events"
                else sql.SQL("select count(*) from {}").format(sql.Identifier(table))
            )
            found = conn.execute(query).fetchone()
            self.rows[table] = found[0] if found else 0
            ended = time.monotonic()
            self._due[table] = ended + max(0.9, (ended - began) * len(TABLES) / MAX_COUNTING_SHARE)
            past = self._past[table]
            past.append((ended, self.rows[table]))
            while len(past) > 2 and past[1][0] < ended - 10:
                past.popleft()

    def rates(self) -> dict[str, float]:
        """Return rows per second by table."""
        made = {}
        for table, past in self._past.items():
            if len(past) > 1:
                (t0, n0), (t1, n1) = past[0], past[-1]
                made[table] = (n1 - n0) / (t1 - t0)
        return made


class FigureReader:
    """Reads figures over one connection; an unreachable database is reported in `error`, not raised."""

    def __init__(self, url: str, *, since: datetime | None = None) -> None:
        self.url = url
        self.since = since or datetime.now(UTC)
        self.counter = TableCounter()
        self.last = PipelineFigures()
        self._past_due = 0.0
        self._counts: dict[str, int] = {}
        self._conn: psycopg.Connection[Any] | None = None

    def read(self, *, count_all: bool = False) -> PipelineFigures:
        """Return the current figures."""
        import psycopg

        try:
            if self._conn is None or self._conn.closed:
                from sql.database import connect

                self._conn = connect(self.url, autocommit=True, name="presage demo", statement_timeout=20_000)
                self._conn.execute("set max_parallel_workers_per_gather = 0")  # a count may take its time
            self.last = self._read(self._conn, count_all=count_all)
        except (psycopg.Error, OSError) as error:
            self.close()
            self.last = msgspec.structs.replace(self.last, error=f"database: {str(error).strip().splitlines()[0]}")
        return self.last

    def _read(self, conn: psycopg.Connection[Any], *, count_all: bool) -> PipelineFigures:
        from orchestration.ingest import lag
        from sql.queries import figures as queries

        self.counter.count(conn, count_all=count_all)
        rows = list(queries.lag_counts(conn, since=self.since))
        counts = lag.merged(counted for counted, _ in rows)
        by_exchange = {name: lag.merged(each for each, of in rows if of == name) for name in {of for _, of in rows}}
        p99s = {name: lag.quantile(each, 0.99) for name, each in by_exchange.items()}
        gaps = list(queries.gaps(conn))
        p50, p99 = lag.quantile(counts, 0.5), lag.quantile(counts, 0.99)
        return PipelineFigures(
            rows=dict(self.counter.rows),
            rates=self.counter.rates(),
            lag_p50_s=None if p50 is None else p50 / 1000,
            lag_p99_s=None if p99 is None else p99 / 1000,
            lags_p99_s={name: each / 1000 for name, each in sorted(p99s.items()) if each is not None},
            stages=[StageLag(*row) for row in queries.stages(conn)],
            leases=[FeedLease(*row) for row in queries.leases(conn)],
            gaps=sum(count for _, count, _ in gaps),
            gaps_by_cause={cause: count for cause, count, _ in gaps},
            open_gaps=sum(still_open for *_, still_open in gaps),
            quarantined=queries.quarantined(conn),
            past=self._past(conn, force=count_all),
        )

    def _past(self, conn: psycopg.Connection[Any], *, force: bool) -> BackfillFigures | None:
        """Return the back-fill's progress, if there is one; its counts are updated every few seconds."""
        from sql.queries import figures as queries

        state = queries.backfill(conn)
        if state is None:
            return None
        done, steps = sum(state.get("done", {}).values()), state.get("steps") or 1
        share = 1.0 if state.get("finished_at") else min((done + state.get("share", 0.0)) / steps, 1.0)
        began = time.monotonic()
        if force or began >= self._past_due:
            self._counts = dict(zip(COUNTED, queries.past(conn), strict=True))
            self._past_due = time.monotonic() + max(PAST_INTERVAL_S, (time.monotonic() - began) / MAX_COUNTING_SHARE)
        return BackfillFigures(
            days=state["days"],
            doing=state.get("doing"),
            share=round(share, 3),
            trades=state.get("trades", 0),
            settlements=state.get("settlements", 0),
            **self._counts,
        )

    def close(self) -> None:
        """Close the connection."""
        if self._conn is not None:
            with contextlib.suppress(Exception):
                self._conn.close()
            self._conn = None
