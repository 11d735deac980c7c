"""The coverage check, evaluated against the database."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from config.exchanges import EXCHANGES
from orchestration.checks import Judgement
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import psycopg

MAX_AGE = timedelta(days=2)  # yesterday is counted during the night


def reconciled(conn: psycopg.Connection[Any], now: datetime, kinds: Mapping[str, Collection[str]]) -> Judgement:
    """Check that days of each kind, by exchange, are counted in time, and that stored data equals the sources'."""
    differing, worst = queries.disagreements(conn)
    expected = (now.astimezone(UTC) - MAX_AGE).date()
    newest: dict[str, date | None] = {}
    behind: list[str] = []
    for exchange, wanted in kinds.items():
        since_ms = queries.recorded_since(conn, exchange=exchange)
        for kind in wanted:
            name = f"{kind} of {EXCHANGES[exchange].title}"
            newest[name] = day = queries.newest_day(conn, kind=EXCHANGES[exchange].own(kind))
            if since_ms is not None and _day(since_ms) <= expected and (day is None or day < expected):
                behind.append(name)
    figures: dict[str, Any] = {"days_that_differ": differing}
    days = [day for day in newest.values() if day is not None]
    complete = bool(days) and len(days) == len(newest)
    if complete:
        figures["newest_day"] = str(min(days))
    if worst is not None:
        figures["newest_that_differs"] = str(worst)
    summary = (
        f"up to {min(days)}, {differing} of 30 days differ" if complete else "not every kind has a reconciled day yet"
    )
    return Judgement(
        not behind and not differing,
        f"{', '.join(behind)}: {expected} was not reconciled; {summary}" if behind else summary,
        "warn",
        figures,
    )


def _day(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000, UTC).date()
