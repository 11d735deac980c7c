"""A validation pass: rows that are new since the last one are prepared and validated, and the results are stored."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import sql

from config import tunables
from config.exchanges import DEFAULT, EXCHANGES
from orchestration.quality import columns, exchanges
from orchestration.quality.expecting import SCHEMA
from orchestration.quality.suites import SUITES
from sql.queries import quality as queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import psycopg

    from config.exchanges import Exchange
    from orchestration.quality.expecting import Check, Suite

OVERLAP = timedelta(minutes=1)  # later rows are found when whoever filled them in has recorded it
LOOK_BACK = timedelta(minutes=10)  # of the first pass
SAMPLES = 10  # rows of a failed check that are stored
MAX_SPAN = timedelta(hours=1)  # max span of a pass after a long pause; older rows are reported as skipped
MAX_ROWS = 400_000  # about, of a table of the feed; if there are more, some of the markets are checked
GROUPS = 1_000  # of markets, by their key; a pass checks those of the next groups in turn
MIN_GROUPS = 10  # of a pass
COUNTED = {"feed_stats", "live_books"}  # these say how many there are


@dataclass(frozen=True)
class Result:
    """Result of one check."""

    suite: Suite
    check: Check
    rows_checked: int
    rows_failed: int
    samples: Sequence[dict[str, Any]] = ()
    by_exchange: Mapping[str, tuple[int, list[dict[str, Any]]]] = field(default_factory=dict)
    """How many rows failed, and some of them, by exchange; of a stage that all share, as if all were Polymarket's."""

    @property
    def name(self) -> str:
        """Return the check's name, prefixed with its table."""
        return f"{self.suite.table}.{self.check.name}"

    @property
    def exchanges(self) -> list[Exchange]:
        """Return the exchanges that have a result of their own."""
        return [each for each in EXCHANGES.values() if each is DEFAULT or self.suite.stage in exchanges.BY_EXCHANGE]

    def of(self, exchange: Exchange, hold: timedelta) -> dict[str, Any]:
        """Return an exchange's result as it is stored; `rows_checked` are those of all exchanges."""
        failed, rows = self.by_exchange.get(exchange.name, (0, []))
        return {
            "suite": exchange.own(self.suite.table),
            "name": self.check.name,
            "stage": exchange.own(self.suite.stage),
            "severity": self.check.severity,
            "rows_checked": self.rows_checked,
            "rows_failed": failed,
            "samples": rows[:SAMPLES],
            "is_default": exchange is DEFAULT,
            "hold_s": hold.total_seconds(),
        }


class Share(NamedTuple):
    """The markets that a pass checks: those of some of the groups."""

    from_group: int = 0
    groups: int = GROUPS
    round: timedelta = timedelta(0)
    """After how long the same markets have been checked again."""

    @property
    def is_partial(self) -> bool:
        """Whether some markets are left unchecked."""
        return self.groups < GROUPS

    @property
    def percent(self) -> str:
        """Return the share of the markets."""
        return f"{100 * self.groups / GROUPS:g} %"


ALL = Share()


class StandingFailure(NamedTuple):
    """A failure that still counts against its stage."""

    suite: str
    name: str
    severity: str
    failed_at: datetime


@dataclass
class PassResult:
    """Result of a pass."""

    results: list[Result] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, tuple[datetime, datetime]] = field(default_factory=dict)
    share: Share = ALL
    """Of the tables whose suites are `by_market`."""
    standing: list[StandingFailure] = field(default_factory=list)
    """Failures of those of earlier passes whose markets may not have been checked again yet."""

    @property
    def failed(self) -> list[Result]:
        """Return the results that did not hold."""
        return [result for result in self.results if result.rows_failed]


class SuiteProgress(NamedTuple):
    """How far a suite has come."""

    until: datetime | None = None
    after: int | None = None
    blocks: str | None = None
    from_group: int = 0
    groups: int = GROUPS


def run(url: str, now: datetime, *, suites: Sequence[Suite] = SUITES) -> PassResult:
    """Validate the new rows; wait for another pass that is under way.

    A pass over some of the suites is a manual check: the next complete one validates the same rows again.
    """
    from orchestration.quality.judging import Validator  # noqa: PLC0415 (Great Expectations takes seconds to import)

    with Validator(url) as judge:
        conn = judge.conn
        queries.pass_alone(conn)
        with judge.snapshot():
            passed, reached = _judged(conn, judge, now, suites)
        whole = len(suites) == len(SUITES)
        with conn.transaction():
            _note(conn, passed)
            if passed.share.is_partial:
                passed.standing = [StandingFailure(*row) for row in queries.standing(conn)]
            if whole:
                _reach(conn, passed, reached)
    return passed


def _judged(
    conn: psycopg.Connection[Any], judge: Any, now: datetime, suites: Sequence[Suite]
) -> tuple[PassResult, dict[str, SuiteProgress]]:
    """Prepare the rows of every suite, as some are found by others', and validate those of the selected suites."""
    passed, reached = PassResult(), {}
    queries.make_room(conn)
    mismatches = columns.mismatches(conn, [suite.stored_in or suite.table for suite in SUITES])
    passed.share = share = _share(conn, now) if not COUNTED & mismatches.keys() else ALL
    for suite in (each for each in SUITES if (each.stored_in or each.table) not in mismatches):
        began = time.monotonic()
        last = SuiteProgress(*(queries.reached(conn, suite=suite.table) or ()))
        if suite.by_market:
            last = last._replace(from_group=share.from_group, groups=share.groups)
        passed.rows[suite.table] = _lay_out(conn, suite, last, now)
        if "since" in suite.takes and last.until is not None and last.until < now - MAX_SPAN:
            passed.skipped[suite.table] = (last.until, now - MAX_SPAN)
        reached[suite.table] = _next(conn, suite, last, now)
        passed.seconds[suite.table] = time.monotonic() - began
    for suite in suites:
        began = time.monotonic()
        wrong = mismatches.get(suite.stored_in or suite.table, [])
        rows = passed.rows.get(suite.table, 0)
        passed.results.append(Result(suite, SCHEMA, rows, len(wrong), wrong, {DEFAULT.name: (len(wrong), wrong)}))
        if not wrong:
            for check, found in judge.judge(suite, rows):
                by_exchange = exchanges.failed(conn, suite, found) if found.number else {}
                passed.results.append(Result(suite, check, rows, found.number, found.rows[:SAMPLES], by_exchange))
        passed.seconds[suite.table] = passed.seconds.get(suite.table, 0) + time.monotonic() - began
    return passed, reached


def _share(conn: psycopg.Connection[Any], now: datetime) -> Share:
    """Return the markets to check: all unless the feed's tables have very many new rows, else the next in turn."""
    tables = [suite.table for suite in SUITES if suite.by_market]
    until, next_group = queries.last_share(conn, suites=tables) or (None, 0)
    rows = queries.new_rows(conn, since=_since(until, now))
    if rows <= MAX_ROWS:
        return ALL
    groups = max(MIN_GROUPS, GROUPS * MAX_ROWS // rows)
    passes = 1 + math.ceil(GROUPS / groups)
    return Share(next_group % GROUPS, groups, min(passes * (now - (until or now)), MAX_SPAN))


def _since(until: datetime | None, now: datetime) -> datetime:
    return now - LOOK_BACK if until is None else max(until - OVERLAP, now - MAX_SPAN)


def _lay_out(conn: psycopg.Connection[Any], suite: Suite, last: SuiteProgress, now: datetime) -> int:
    """Copy the new rows into a temporary table, and analyse it for the planner."""
    given = {**last._asdict(), "since": _since(last.until, now), "seen": last.blocks, "most": suite.most}
    lay_out = suite.lay_out or getattr(queries, suite.table)
    rows = lay_out(conn, **{name: given[name] for name in suite.takes})
    conn.execute(sql.SQL("analyze {}").format(sql.Identifier(suite.fresh)))
    return int(rows)


def _next(conn: psycopg.Connection[Any], suite: Suite, last: SuiteProgress, now: datetime) -> SuiteProgress:
    """Return how far the suite has come with the prepared rows."""
    if suite.by == "number":
        after = getattr(queries, f"reach_{suite.table}")(conn, after=last.after, most=suite.most)
        return last._replace(until=now, after=after)
    if suite.by == "blocks":
        return SuiteProgress(now, None, queries.reach_chain_blocks(conn, seen=last.blocks, most=suite.most))
    return last._replace(until=now)


def _note(conn: psycopg.Connection[Any], passed: PassResult) -> None:
    hold = timedelta(minutes=tunables.value(conn, "quality_hold_min"))
    holds = {False: hold, True: max(hold, passed.share.round)}
    results = [
        result.of(exchange, holds[result.suite.by_market]) for result in passed.results for exchange in result.exchanges
    ]
    queries.note(conn, results=json.dumps(results, default=str))


def _reach(conn: psycopg.Connection[Any], passed: PassResult, reached: dict[str, SuiteProgress]) -> None:
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
    names = [f"{each.own(one.suite.table)}.{one.check.name}" for one in passed.results for each in one.exchanges]
    queries.forget_checks(conn, names=names)
