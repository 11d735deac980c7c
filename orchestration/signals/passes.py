"""Continuous analysis: each minute once; signals are stored and published in one transaction."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from config import tunables
from orchestration import stream
from orchestration.candles.aggregates import MINUTE, floor
from orchestration.signals import definitions, measures
from orchestration.signals.definitions import EDITION, Finding
from orchestration.signals.measures import Parameters
from sql.queries import feed
from sql.queries import signals as queries
from upstream.polymarket.identity import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    import psycopg

    from orchestration.stream import StreamMessage

SETTLE = timedelta(seconds=5)  # data that we commit later than this is found when the day is recomputed
CATCH_UP = timedelta(hours=24)
MAX_COOLDOWN = timedelta(days=1)

SignalKind = tuple[str, int, int, int | None]  # type, market, outcome, direction


@dataclass
class AnalysisPass:
    """Result of a pass."""

    until: datetime | None = None
    minutes: int = 0
    markets: int = 0  # of the last minute, that traded enough to be judged
    behind: int = 0  # minutes still to be analysed
    found: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0


def analyse(conn: psycopg.Connection[Any], now: datetime, *, budget_s: float = 40.0) -> AnalysisPass:
    """Analyse the minutes that have ended, oldest first, each in a transaction of its own.

    Minutes missed during a downtime are caught up with, up to one day; what exceeds the budget is left to the next
    pass.
    """
    passed, deadline = AnalysisPass(), time.monotonic() + budget_s
    while True:
        began = time.monotonic()
        with conn.transaction():
            queries.analyse_alone(conn)
            passed.until = queries.analysed_until(conn)
            newest = _newest(conn, now)
            at = _next(passed.until, newest)
            if at is None or newest is None or (passed.minutes and began > deadline):
                passed.behind = 0 if at is None or newest is None else (newest - at) // MINUTE + 1
                _beat(conn, passed, passed.until if passed.behind else now)
                return passed
            measured, added = _minute(conn, at)
            passed.until, passed.minutes, passed.markets = at, passed.minutes + 1, measured
            passed.found.update(type_ for type_, _, _ in added)
            _beat(conn, passed, at)
            messages = [_message(at, market_id, record) for _, market_id, record in added]
            stream.publish(conn, messages, int(now.timestamp() * 1000))
        passed.slowest_s = max(passed.slowest_s, time.monotonic() - began)


def findings_at(
    conn: psycopg.Connection[Any], at: datetime, given: Parameters, last: dict[SignalKind, datetime]
) -> tuple[int, list[Finding]]:
    """Return how many markets were judged, and the findings at an instant; findings are entered in `last`.

    A kind that was found within its cool-down is not found again.
    """
    measured = measures.read(conn, at, given)
    found = []
    for finding in definitions.findings(measured, given):
        kind = kind_of(finding.type, finding.market_key, 0, finding.direction)
        before = last.get(kind)
        if before is None or at - before >= cooldown(finding.type, given):
            found.append(finding)
            last[kind] = at
    return len(measured), found


def kind_of(type_: str, market_key: int, outcome: int, direction: int | None) -> SignalKind:
    """Return the key that a cool-down applies to."""
    return type_, market_key, outcome, direction if type_ in definitions.DIRECTED else None


def cooldown(type_: str, given: Parameters) -> timedelta:
    """Return for how long a kind is suppressed after it was found."""
    return timedelta(minutes=getattr(given, f"{type_}_cooldown_min"))


def last_found(conn: psycopg.Connection[Any], until: datetime) -> dict[SignalKind, datetime]:
    """Return when each kind was last found before an instant."""
    rows = queries.last_found(conn, since=until - MAX_COOLDOWN, until=until)
    return {kind_of(*kind): ts for *kind, ts in rows}  # oldest first, so that the newest of a kind stays


def row(finding: Finding, at: datetime) -> dict[str, Any]:
    """Return a finding as a row; its ID depends only on its content."""
    return {
        "market_key": finding.market_key,
        "outcome": 0,
        "signal_id": str(digest(f"{finding.type}|{finding.market_id}|0|{round(at.timestamp() * 1000)}")),
        "type": finding.type,
        "value": finding.value,
        "threshold": finding.threshold,
        "score": finding.score,
        "direction": finding.direction,
        "window_s": finding.window_s,
        "detail": finding.detail,
    }


def add(conn: psycopg.Connection[Any], at: datetime, rows: Iterable[dict[str, Any]]) -> list[tuple[str, str, str]]:
    """Store signals of an instant; return type, market and record of those that were new."""
    given = list(rows)
    return list(queries.add(conn, ts=at, rows=json.dumps(given))) if given else []


def _minute(conn: psycopg.Connection[Any], at: datetime) -> tuple[int, list[tuple[str, str, str]]]:
    given = Parameters.of(tunables.values(conn))
    if queries.parameters_at(conn, at=at) != (EDITION, asdict(given)):
        queries.note_parameters(conn, since=at, definitions=EDITION, parameters=json.dumps(asdict(given)))
    markets, found = findings_at(conn, at, given, last_found(conn, at))
    return markets, add(conn, at, (row(finding, at) for finding in found))


def _newest(conn: psycopg.Connection[Any], now: datetime) -> datetime | None:
    """Return the minute up to which all data is in; None while the feed has received nothing."""
    ingested = queries.ingested_until(conn)
    return None if ingested is None else floor(min(now - SETTLE, ingested), MINUTE)


def _next(until: datetime | None, newest: datetime | None) -> datetime | None:
    """Return the next minute to analyse; None if there is none yet."""
    if newest is None or until is None:
        return newest
    at = max(until + MINUTE, newest - CATCH_UP)
    return at if at <= newest else None


def _beat(conn: psycopg.Connection[Any], passed: AnalysisPass, data_at: datetime | None) -> None:
    """Touch the stage's clock. Without a backlog it is not late, even if the feed is stopped: that clock shows it."""
    until = None if passed.until is None else passed.until.isoformat()
    detail = {"until": until, "markets": passed.markets, "found": dict(passed.found), "behind_min": passed.behind}
    feed.beat(conn, stage="analysis", last_data_at=data_at, detail=json.dumps(detail))


def _message(at: datetime, market_id: str, record: str) -> StreamMessage:
    return stream.message("signal", round(at.timestamp() * 1000), market_id, msgspec.Raw(record.encode()))
