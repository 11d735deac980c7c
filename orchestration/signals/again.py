"""Recomputation of a past day from stored data: includes late data and missed minutes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from math import inf
from typing import TYPE_CHECKING, Any

from orchestration.candles.aggregates import DAY, HOUR, MINUTE
from orchestration.maintenance import packs
from orchestration.signals import passes
from orchestration.signals.definitions import EDITION
from orchestration.signals.measures import Parameters
from sql.database import MICRO
from sql.queries import capture
from sql.queries import signals as queries

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    import psycopg

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Recomputed:
    """Result for a day: its number of signals, and the changes that were necessary."""

    found: Counter[str]
    added: int
    taken_out: int
    other_editions: int  # minutes that were analysed with other formulas


def recompute(
    conn: psycopg.Connection[Any],
    day: datetime,
    *,
    span: timedelta = DAY,
    kept_since: datetime | None = None,
    report: Callable[[datetime], None] = lambda _: None,
) -> Recomputed:
    """Recompute the signals of a day from stored data, with the parameters that were in force.

    Takes an autocommit connection: the long part only reads, and analysis continues meanwhile. Nothing is published. A
    day that needs data from before `kept_since` is left unchanged: the remaining data would delete valid signals.
    """
    if kept_since is not None and day - DAY < kept_since:
        raise LookupError(f"quotes and books of {day - DAY:%Y-%m-%d} are no longer kept: {day:%Y-%m-%d} stays as it is")
    end, until = day + span, queries.analysed_until(conn)
    if until is None or until < end:
        raise LookupError(f"analysis has not reached the end of {day:%Y-%m-%d} yet")
    history = _History(conn)
    last = passes.last_found(conn, day)
    computed: dict[int, tuple[datetime, dict[str, Any]]] = {}
    at, others = day, 0
    with packs.as_rows(conn, day - 2 * HOUR, end):  # the leans of books: of an hour and what ends with it
        while at < end:
            edition, given = history.at(at)
            others += edition != EDITION
            _, found = passes.findings_at(conn, at, given, last)
            for row in (passes.row(finding, at) for finding in found):
                computed[int(row["signal_id"])] = (at, row)
            at += MINUTE
            if at.minute == 0:
                report(at)
    added, taken_out = _replace(conn, day, end, computed)
    whales = _whales(conn, day, end, history)
    types = Counter(row["type"] for _, row in computed.values())
    types.update(dict(queries.whales(conn, since=day, until=end)))
    return Recomputed(types, added + whales[0], taken_out + whales[1], others)


class _History:
    """The parameters in force over time."""

    def __init__(self, conn: psycopg.Connection[Any]) -> None:
        self._rows = list(queries.parameter_history(conn))

    def at(self, at: datetime) -> tuple[int, Parameters]:
        """Return edition and parameters; before the first known ones, those."""
        edition, values = next(
            ((edition, values) for since, edition, values in reversed(self._rows) if since <= at), self._rows[0][1:]
        )
        return edition, Parameters.of(values)

    def whale_alert_usd(self, minute: datetime) -> float:
        """Return the threshold for a minute's settlements, given its first instant.

        A change applies to settlements at once, and is recorded with the end of a minute: around it the higher one
        counts.
        """
        return max(self.at(minute + n * MINUTE)[1].whale_alert_usd for n in range(-1, 3))


def _replace(
    conn: psycopg.Connection[Any],
    since: datetime,
    until: datetime,
    computed: dict[int, tuple[datetime, dict[str, Any]]],
) -> tuple[int, int]:
    """Keep unchanged signals, delete unconfirmed ones, add missing ones."""
    with conn.transaction():
        queries.analyse_alone(conn)
        stored = {row[3]: row for row in queries.between(conn, since=since, until=until)}
        same = {id_ for id_, (at, row) in computed.items() if id_ in stored and stored[id_] == _as_stored(at, row)}
        gone = [id_ for id_ in stored if id_ not in same]
        if gone:
            queries.take_out(conn, since=since, until=until, ids=gone)
        missing = [each for id_, each in computed.items() if id_ not in same]
        added = 0
        for at, rows in groupby(missing, key=lambda each: each[0]):
            added += len(passes.add(conn, at, (row for _, row in rows)))
    return added, len(gone)


def _whales(conn: psycopg.Connection[Any], since: datetime, until: datetime, history: _History) -> tuple[int, int]:
    """Delete whale alerts without a settlement, and add those of settlements whose market was unknown then.

    Existing ones stay: the threshold stored on them is the one that they were found with.
    """
    minutes = (since + n * MINUTE for n in range((until - since) // MINUTE))
    with conn.transaction():
        taken_out: int = queries.take_out_whales(conn, since=since, until=until)
        added = 0
        for threshold, of_one in groupby(minutes, key=history.whale_alert_usd):
            if threshold == inf:
                continue
            starts, least = list(of_one), round(threshold * MICRO)
            span = {"first_ts": starts[0], "last_ts": starts[-1] + MINUTE - timedelta(microseconds=1)}
            numbers = queries.whale_blocks(conn, **span, least=least)
            added += len(list(capture.add_whales(conn, **span, numbers=numbers, least=least, threshold=threshold)))
    return added, taken_out


def _as_stored(at: datetime, row: dict[str, Any]) -> Row:
    return (at, *(int(value) if name == "signal_id" else value for name, value in row.items()))
