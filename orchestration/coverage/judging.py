"""The coverage check, evaluated against the database."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from orchestration.checks import Judgement
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Collection

    import psycopg

MAX_AGE = timedelta(days=2)  # yesterday is counted during the night


def reconciled(conn: psycopg.Connection[Any], now: datetime, kinds: Collection[str]) -> Judgement:
    """Check that days of each kind are counted in time, and that stored data equals the exchange's and the chain's."""
    newest, differing, worst = queries.disagreements(conn, kinds=list(kinds))
    since_ms = queries.recorded_since(conn)
    expected = (now.astimezone(UTC) - MAX_AGE).date()
    figures: dict[str, Any] = {"days_that_differ": differing}
    if newest is not None:
        figures["newest_day"] = str(newest)
    if worst is not None:
        figures["newest_that_differs"] = str(worst)
    behind = since_ms is not None and _day(since_ms) <= expected and (newest is None or newest < expected)
    summary = (
        "not every kind has a reconciled day yet"
        if newest is None
        else f"up to {newest}, {differing} of 30 days differ"
    )
    return Judgement(
        not behind and not differing,
        f"{expected} was not reconciled; {summary}" if behind else summary,
        "warn",
        figures,
    )


def _day(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000, UTC).date()
