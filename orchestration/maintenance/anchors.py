"""Book anchors: full books stored every few minutes, so that the book of any past moment is one short read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sql.queries import books as queries

if TYPE_CHECKING:
    import psycopg

# The busiest token changes some hundred times a second: the events between two full books are read within milliseconds.
ANCHOR_INTERVAL = timedelta(minutes=5)


def keep(conn: psycopg.Connection[Any]) -> int:
    """Store the live books that have changed since they were last stored; return how many."""
    return int(queries.keep_anchors(conn, apart=ANCHOR_INTERVAL))
