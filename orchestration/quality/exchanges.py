"""The exchanges whose rows failed a check: each has a result, and a stage, of its own."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from config.exchanges import EXCHANGES, POLYMARKET
from sql.queries import quality as queries

if TYPE_CHECKING:
    import psycopg

    from orchestration.quality.expecting import Suite
    from orchestration.quality.judging import FailedRows

BY_EXCHANGE = {"discovery", "ingestion"}  # stages that each exchange has one of
FIELDS = ("market_key", "market_id", "event_id")


def failed(conn: psycopg.Connection[Any], suite: Suite, found: FailedRows) -> dict[str, int]:
    """Return how many rows failed, by exchange; those that name none, or what is not known, are Polymarket's.

    If not all of them were returned, all count against each exchange that was seen.
    """
    if suite.stage not in BY_EXCHANGE:
        return {POLYMARKET.name: found.number}
    named = {field: {row[field] for row in found.rows if row.get(field) is not None} for field in FIELDS}
    exchange_of = dict(queries.exchanges_of(conn, **{f"{field}s": list(values) for field, values in named.items()}))
    counts = Counter(_exchange(row, exchange_of) for row in found.rows)
    return dict(counts) if counts.total() == found.number else dict.fromkeys(counts, found.number)


def _exchange(row: dict[str, Any], exchange_of: dict[str, str]) -> str:
    for field in FIELDS:
        if row.get(field) is not None:
            return exchange_of.get(str(row[field]), POLYMARKET.name)
    name = row.get("exchange") or str(row.get("feed") or "").partition("/")[0] or _suffix(str(row.get("kind") or ""))
    return name if name in EXCHANGES else POLYMARKET.name


def _suffix(name: str) -> str:
    """Return whose own something is by its name: `trades_kalshi`."""
    return name.rpartition("_")[2]
