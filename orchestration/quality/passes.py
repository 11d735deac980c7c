"""A pass: the rows that are new since the last one are laid out, judged, and what came of it is noted."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from config import tunables as parameters
from orchestration.quality import columns
from orchestration.quality.expecting import SCHEMA
from orchestration.quality.suites import SUITES
from sql.queries import quality as queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from orchestration.quality.expecting import Check, Suite

OVERLAP = timedelta(minutes=1)  # what comes later, by its own instant, is found when whoever filled it in has said so
LOOK_BACK = timedelta(minutes=10)  # of the first pass
LONGEST = timedelta(hours=1)  # of a pass after a long rest; what is older than that it says to have skipped


@dataclass(frozen=True)
class Result:
    """What became of one check."""

    suite: Suite
    check: Check
    rows_checked: int
    rows_failed: int
    samples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Name it with its table."""
        return f"{self.suite.table}.{self.check.name}"


@dataclass
class Passed:
    """What a pass came to."""

    results: list[Result] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)

    @property
    def failed(self) -> list[Result]:
        """Pick what did not hold."""
        return [result for result in self.results if result.rows_failed]


class Reached(NamedTuple):
    """How far a suite has come."""

    until: datetime | None = None
    after: int | None = None
    blocks: str | None = None


def run(url: str, now: datetime, *, suites: Sequence[Suite] = SUITES) -> Passed:
    """Judge the new rows; wait for another pass that is under way.

    A pass over some of the suites alone is a look by hand: the next whole one looks at the same rows again.
    """
    from orchestration.quality.judging import Judge  # noqa: PLC0415 (Great Expectations takes seconds to import)

    with Judge(url) as judge:
        conn = judge.conn
        queries.pass_alone(conn)
        with judge.snapshot():
            passed, reached = _judged(conn, judge, now, suites)
        whole = len(suites) == len(SUITES)
        with conn.transaction():
            _note(conn, passed)
            if whole:
                _reach(conn, passed, reached)
    return passed


def _judged(
    conn: psycopg.Connection[Any], judge: Any, now: datetime, suites: Sequence[Suite]
) -> tuple[Passed, dict[str, Reached]]:
    """Lay out the rows of every suite, as some are found by others', and judge those that are asked for."""
    passed, reached = Passed(), {}
    queries.make_room(conn)
    amiss = columns.amiss(conn, [suite.table for suite in SUITES])
    for suite in (each for each in SUITES if each.table not in amiss):
        began = time.monotonic()
        last = Reached(*(queries.reached(conn, suite=suite.table) or ()))
        passed.rows[suite.table] = _lay_out(conn, suite, last, now)
        if "since" in suite.takes and last.until is not None and last.until < now - LONGEST:
            passed.skipped[suite.table] = (last.until, now - LONGEST)
        reached[suite.table] = _next(conn, suite, last, now)
        passed.seconds[suite.table] = time.monotonic() - began
    for suite in suites:
        began = time.monotonic()
        wrong = amiss.get(suite.table, [])
        rows = passed.rows.get(suite.table, 0)
        passed.results.append(Result(suite, SCHEMA, rows, len(wrong), wrong))
        if not wrong:
            passed.results += [Result(suite, check, rows, *found) for check, found in judge.judge(suite, rows)]
        passed.seconds[suite.table] = passed.seconds.get(suite.table, 0) + time.monotonic() - began
    return passed, reached


def _lay_out(conn: psycopg.Connection[Any], suite: Suite, last: Reached, now: datetime) -> int:
    """Copy the new rows aside, and let the planner know how many they are."""
    since = now - LOOK_BACK if last.until is None else max(last.until - OVERLAP, now - LONGEST)
    given = {"since": since, "after": last.after, "seen": last.blocks, "most": suite.most}
    rows = getattr(queries, suite.table)(conn, **{name: given[name] for name in suite.takes})
    conn.execute(sql.SQL("analyze {}").format(sql.Identifier(suite.fresh)))
    return int(rows)


def _next(conn: psycopg.Connection[Any], suite: Suite, last: Reached, now: datetime) -> Reached:
    """Tell how far the suite has come with the rows that are laid out."""
    if suite.by == "number":
        after = getattr(queries, f"reach_{suite.table}")(conn, after=last.after, most=suite.most)
        return Reached(now, after)
    if suite.by == "blocks":
        return Reached(now, None, queries.reach_chain_blocks(conn, seen=last.blocks, most=suite.most))
    return Reached(now)


def _note(conn: psycopg.Connection[Any], passed: Passed) -> None:
    results = [
        {
            "suite": result.suite.table,
            "name": result.check.name,
            "stage": result.suite.stage,
            "severity": result.check.severity,
            "rows_checked": result.rows_checked,
            "rows_failed": result.rows_failed,
            "samples": result.samples,
        }
        for result in passed.results
    ]
    hold_s = 60 * parameters.value(conn, "quality_hold_min")
    queries.note(conn, results=json.dumps(results, default=str), hold_s=hold_s)


def _reach(conn: psycopg.Connection[Any], passed: Passed, reached: dict[str, Reached]) -> None:
    for suite in SUITES:
        if suite.table in reached:
            queries.reach(
                conn,
                suite=suite.table,
                stage=suite.stage,
                rows=passed.rows[suite.table],
                seconds=passed.seconds[suite.table],
                **reached[suite.table]._asdict(),
            )
    queries.forget_checks(conn, names=[result.name for result in passed.results])
