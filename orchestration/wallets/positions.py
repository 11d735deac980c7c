"""Positions by average cost: each final row is added once; positions with a changed past are recomputed.

A request is answered from a position stored here plus the rows after `positions_head.done`, which `positions_now` of
`sql/timescale/positions.sql` adds with the same function. So nothing is computed from a wallet's first trade twice.
Rows are dropped after some weeks, positions never. Before that, each position's *base* is moved forward to where rows
begin: recomputation starts there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sql.queries import positions as queries
from sql.queries import retention

if TYPE_CHECKING:
    import psycopg

FILLS_PER_TRANSACTION = 500_000  # fills in one transaction
DUE_PER_TRANSACTION = 20_000  # entries of positions_due read for one transaction
HOURS_KEPT = timedelta(hours=49)
DAYS_KEPT = timedelta(days=40)
# Advisory lock: one process computes positions at a time. Any number that nobody else locks will do.
LOCK = 0x506F736974696F6E


@dataclass
class PositionsPass:
    """Result of a pass."""

    block: int | None = None  # positions include all blocks up to here; None: there is no chain
    slices: int = 0
    positions: int = 0  # written by slices
    remade: int = 0
    learnt: int = 0  # changes of markets that the catalogue has learnt
    based: int = 0
    due: int = 0  # left for the next pass
    behind: int = 0  # blocks left for the next pass


class PositionsProgress(NamedTuple):
    """Current progress."""

    final: int | None  # settlements, without a hole
    done: int
    done_ts: datetime
    base_block: int
    base_ts: datetime
    due: int


class PassLimits(NamedTuple):
    """How much a pass does."""

    hours_since: datetime  # hourly figures are computed from here on
    base_before: datetime  # rows before it will be dropped
    done_by: float  # of the monotonic clock
    rows: int
    due: int


def bring_up_to_date(
    conn: psycopg.Connection[Any],
    now: datetime,
    *,
    kept: timedelta = timedelta(days=30),
    seconds: float = 40.0,
    rows: int = FILLS_PER_TRANSACTION,
    due: int = DUE_PER_TRANSACTION,
) -> PositionsPass:
    """Add newly final rows, then recompute what is due; stop after some seconds and continue in the next pass.

    `kept` is how long rows are kept. Takes an autocommit connection: each slice is a transaction of its own. A second
    caller finds the lock taken and does nothing.
    """
    passed = PositionsPass()
    now = retention.clock(conn, now=now)
    hour = now.replace(minute=0, second=0, microsecond=0)
    # A day early: chunks of a day are dropped whole.
    before = hour.replace(hour=0) - kept + timedelta(days=1)
    limits = PassLimits(hour - HOURS_KEPT, before, time.monotonic() + seconds, rows, due)
    if not conn.execute("select pg_try_advisory_lock(%s)", [LOCK]).fetchone()[0]:  # type: ignore[index]
        return passed
    try:
        queries.make_slice(conn)
        final = _reached(conn).final
        if final is not None:
            with conn.transaction():
                claimed = queries.claim(conn, block=final)
                passed.learnt = queries.learn_markets(conn)
            _advance(conn, passed, claimed, limits)
            if passed.behind == 0:
                _recompute(conn, passed, limits)
                _move_bases(conn, passed, limits)
        queries.end_pass(conn, hours_before=limits.hours_since, days_before=now - DAYS_KEPT)
        reached = _reached(conn)
        passed.block, passed.due = None if final is None else reached.done, reached.due
    finally:
        conn.execute("select pg_advisory_unlock(%s)", [LOCK])
    return passed


def _reached(conn: psycopg.Connection[Any]) -> PositionsProgress:
    return PositionsProgress(*queries.reached(conn))


def _advance(conn: psycopg.Connection[Any], passed: PositionsPass, claimed: int, limits: PassLimits) -> None:
    """Add the rows of final blocks, some at a time."""
    while True:
        at = _reached(conn)
        passed.behind = claimed - at.done
        if at.done >= claimed or time.monotonic() > limits.done_by:
            return
        with conn.transaction():
            until = _fill(conn, at.done, claimed, at.done_ts, limits.rows)
            passed.positions += queries.advance_positions(conn, base=False)
            queries.advance_totals(conn)
            queries.advance_hours(conn, since=limits.hours_since)
            queries.advance_days(conn)
            queries.finish_slice(conn, until=until)
        passed.slices += 1


def _fill(conn: psycopg.Connection[Any], done: int, most: int, since: datetime, rows: int) -> int:
    """Collect the rows of the next blocks; return the last of these blocks."""
    queries.empty_slice(conn)
    until: int = queries.slice_end(conn, done=done, claimed=most, rows=rows, since=since)
    queries.fill_slice(conn, done=done, until=until, since=since)
    queries.analyze_slice(conn)
    return until


def _recompute(conn: psycopg.Connection[Any], passed: PositionsPass, limits: PassLimits) -> None:
    """Recompute positions, and the hours and days in which something changed.

    A transaction takes positions with `rows` fills in all, so an interrupted pass keeps what it did. A single position
    is never divided.
    """
    while time.monotonic() < limits.done_by:
        with conn.transaction():
            queries.empty_slice(conn)
            if not queries.take_due(conn, most=limits.due, rows=limits.rows):
                return
            done = _reached(conn).done
            queries.fill_due(conn, done=done)
            queries.analyze_slice(conn)
            queries.forget_due_hours(conn)
            queries.remake_hours(conn, since=limits.hours_since, done=done)
            queries.forget_due_days(conn)
            queries.remake_days(conn, done=done)
            queries.forget_due_positions(conn)
            queries.begin_due_positions(conn)
            passed.remade += queries.advance_positions(conn, base=False)
            queries.forget_due_totals(conn)
            queries.remake_totals(conn)
            queries.finish_due(conn)


def _move_bases(conn: psycopg.Connection[Any], passed: PositionsPass, limits: PassLimits) -> None:
    """Add the rows that will be dropped next to the bases."""
    while time.monotonic() < limits.done_by:
        end = queries.base_end(conn, before=limits.base_before)
        if end is None:
            return
        with conn.transaction():
            queries.claim(conn, block=-1)  # locks out writers: what becomes due later would be in no base
            at = _reached(conn)
            if at.due:
                return
            until = _fill(conn, at.base_block, end, at.base_ts, limits.rows)
            passed.based += queries.advance_positions(conn, base=True)
            queries.finish_base(conn, until=until)
