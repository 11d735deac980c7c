"""What has expired in the database and is in the lake: from when on a table is whole, and a market's older rows."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from gevent.lock import BoundedSemaphore

from api.data.statements import run
from api.errors import Problem
from sql.queries import lake as queries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import date, datetime

    import pyarrow as pa

    from api.data.lake import LakeFiles
    from api.data.lookup import MarketRef
    from api.data.pool import Pool
    from api.data.replica import ReplicaReads

log = logging.getLogger("presage.api")

HOT_FROM_TTL_S = 60.0  # retention drops nothing before ten minutes have passed
MAX_ROWS = 200_000  # of a question: more than 20,000 candles of a second usually take
MAX_AT_ONCE = 2  # questions whose rows a process holds, up to 100 MB each


class Query(NamedTuple):
    """A query, as `sql.queries` has them."""

    sql: str
    operation: Any


class Expired:
    """Reads rows that have expired in the database."""

    def __init__(self, reads: Pool | ReplicaReads, files: LakeFiles | None = None) -> None:
        self._reads, self._files = reads, files
        self._hot_from: dict[str, tuple[datetime | None, float]] = {}  # by name, and when to look again
        self.turns = BoundedSemaphore(MAX_AT_ONCE)

    def hot_from(self, name: str) -> datetime | None:
        """Return the instant from which on the database has all rows of `trades` or `books`; None: it has all."""
        if self._files is None:
            return None
        found, until = self._hot_from.get(name, (None, float("-inf")))
        if time.monotonic() > until:
            row = self.run(queries.hot_from, {"name": name})
            found = row and row[0]
            self._hot_from[name] = found, time.monotonic() + HOT_FROM_TTL_S
        return found

    def paths(self, names: Collection[str], since: date, until: date) -> dict[tuple[str, date], list[str]]:
        """Return the files of some of the lake's tables, by table and day."""
        asked = {"names": list(names), "since": since, "until": until}
        return {(name, day): paths for name, day, paths in self.run(queries.paths, asked)}

    def rows(self, paths: Collection[str], market: MarketRef, columns: Collection[str]) -> pa.Table | None:
        """Return a market's rows of some files; None: there are no files. Problem: one cannot be read."""
        assert self._files is not None
        if not paths:
            return None
        try:
            return self._files.rows(paths, market.market_id, list(columns))
        except OSError as error:
            log.warning("files of the lake cannot be read: %s", error)
            raise Problem(
                "overloaded",
                "Rows of expired days cannot be read at the moment",
                hint="Retry in a minute, or ask for a later `from`",
                headers={"Retry-After": "60"},
            ) from None

    def run(self, query: Any, arguments: Mapping[str, Any]) -> Any:
        """Run a query, and return its value, row or rows."""
        return self._reads.read(lambda conn: run(conn, query, arguments))


def beside(query: Any, tables: Mapping[str, str]) -> Query:
    """Return a query that reads some tables as one that reads these common table expressions in their place."""
    text = query.sql.lstrip()
    expressions = ", ".join(f"{name} as not materialized ({rows})" for name, rows in tables.items())
    rest = f", {text[5:]}" if text.lower().startswith("with ") else f"\n{text}"
    return Query(f"with {expressions}{rest}", query.operation)


def too_many(name: str, allowed: str) -> Problem:
    """Return the Problem for a question that takes more expired rows than one answer may."""
    return Problem(
        "invalid_parameter",
        f"`{name}` would take more than {MAX_ROWS:,} rows of expired days",
        hint=f"Allowed: {allowed}",
        errors=[{"name": name, "detail": f"more than {MAX_ROWS:,} expired rows", "allowed": allowed}],
    )
