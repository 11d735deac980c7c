"""What rankings and the taxonomy are read from: each market's recent activity, and how many markets a name has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from sql.queries import activity as queries

if TYPE_CHECKING:
    import psycopg

COUNT_EVERY = timedelta(minutes=5)


@dataclass(frozen=True)
class Activity:
    """What a pass came to."""

    markets: int
    written: int
    gone: int
    names: int | None  # counted, when it was their turn


def bring_up_to_date(conn: psycopg.Connection[Any], now: datetime) -> Activity:
    """Compute every market's activity; every few minutes, count what categories, tags and series hold."""
    markets, written, gone = queries.upsert(conn, now=now)
    lately = queries.counted_since(conn, since=now - COUNT_EVERY)
    return Activity(markets, written, gone, None if lately else queries.count_taxonomy(conn, now=now))
