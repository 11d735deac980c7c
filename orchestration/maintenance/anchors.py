"""Whole books kept every few minutes, so that the book of any past moment is one short read."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sql.queries import books as queries

if TYPE_CHECKING:
    import psycopg

# The busiest token changes some hundred times a second: what lies between two whole books is read within milliseconds.
APART = timedelta(minutes=5)


def keep(conn: psycopg.Connection[Any]) -> int:
    """Keep the live books that have changed since they were last kept; give how many."""
    return int(queries.keep_anchors(conn, apart=APART))
