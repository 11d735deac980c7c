"""The exchanges whose rows failed a check: each has a result, and a stage, of its own."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from config.exchanges import DEFAULT, EXCHANGES
from sql.queries import quality as queries

if TYPE_CHECKING:
    import psycopg

    from orchestration.quality.expecting import Suite
    from orchestration.quality.judging import FailedRows

BY_EXCHANGE = {"discovery", "ingestion"}  # stages that each exchange has one of
FIELDS = ("market_key", "market_id", "event_id")
Row = dict[str, Any]


def failed(conn: psycopg.Connection[Any], suite: Suite, found: FailedRows) -> dict[str, tuple[int, list[Row]]]:
    """Return how many rows failed, and some of them, by exchange; what names none that is known is Polymarket's.

    If not all of them were returned, all count against each exchange that was seen.
    """
    if suite.stage not in BY_EXCHANGE or not found.rows:
        return {DEFAULT.name: (found.number, [*found.rows])}
    named = {field: {row[field] for row in found.rows if row.get(field) is not None} for field in FIELDS}
    known = queries.exchanges_of(conn, **{f"{field}s": list(values) for field, values in named.items()})
    exchange_of = {(field, value): exchange for field, value, exchange in known}
    rows: dict[str, list[Row]] = defaultdict(list)
    for row in found.rows:
        rows[_exchange(row, exchange_of)].append(row)
    whole = len(found.rows) == found.number
    return {exchange: (len(of) if whole else found.number, of) for exchange, of in rows.items()}


def _exchange(row: Row, exchange_of: dict[tuple[str, str], str]) -> str:
    """Return the exchange that a row names, itself, by its feed or kind (`trades_kalshi`), or by its market."""
    name = row.get("exchange") or str(row.get("feed") or "").partition("/")[0]
    name = name or str(row.get("kind") or "").rpartition("_")[2]
    if name not in EXCHANGES:
        of = ((field, str(row[field])) for field in FIELDS if row.get(field) is not None)
        name = next((exchange_of[each] for each in of if each in exchange_of), "")
    return name if name in EXCHANGES else DEFAULT.name
