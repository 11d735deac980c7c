"""Named queries, one file per topic: `queries.markets.listed(conn, status=…)`; `help()` of one shows its comment.

A topic is read when it is first imported: all of them together take a quarter of a second of each process's start.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiosql

FOLDER = Path(__file__).parent


def __getattr__(topic: str) -> Any:
    """Return a topic's queries; AttributeError: there is no such file."""
    file = FOLDER / f"{topic}.sql"
    if not topic.isidentifier() or not file.is_file():
        raise AttributeError(f"module {__name__!r} has no attribute {topic!r}")
    queries = globals()[topic] = aiosql.from_path(file, "psycopg")
    return queries
