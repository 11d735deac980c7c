"""Which exchanges' stages a failed check counts against: those of the rows that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.exchanges import EXCHANGES
from sql.queries import quality as queries

if TYPE_CHECKING:
    import psycopg

    from orchestration.quality.expecting import Suite
    from orchestration.quality.judging import FailedRows

BY_EXCHANGE = {"discovery", "ingestion"}  # stages that each exchange has one of


def stages(conn: psycopg.Connection[Any], suite: Suite, failed: FailedRows) -> list[str]:
    """Return the stages of the exchanges whose rows failed.

    What cannot be told, and whatever is beyond the rows that were looked at, counts against the suite's own stage.
    """
    if suite.stage not in BY_EXCHANGE:
        return [suite.stage]
    market_keys = {row["market_key"] for row in failed.rows if row.get("market_key") is not None}
    market_ids = {row["market_id"] for row in failed.rows if row.get("market_id") is not None}
    of_market: dict[object, str] = {}
    for key, name, exchange in queries.exchanges_of(conn, market_keys=[*market_keys], market_ids=[*market_ids]):
        of_market[key] = of_market[name] = exchange
    names = {_named(row) or of_market.get(row.get("market_key") or row.get("market_id"), "") for row in failed.rows}
    if failed.number > len(failed.rows):
        names.add("")
    return sorted({EXCHANGES[name].own(suite.stage) if name in EXCHANGES else suite.stage for name in names})


def _named(row: dict[str, Any]) -> str:
    """Return the exchange that a row names, itself or by its feed, or ""."""
    return str(row.get("exchange") or row.get("feed") or "").partition("/")[0]
