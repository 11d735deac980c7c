"""Resolves the tokens of listed trades from our catalogue and, where missing, from the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestration.ingest.storage.rows import Token
from orchestration.markets import catalogue
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from orchestration.ingest.exchanges.base import ExchangeClient, Listed

MAX_LOOKUPS = 10_000  # markets requested per pass; the others stay unknown until the next


class TokenResolver:
    """Resolves tokens during one pass; each market is requested once."""

    def __init__(self, exchange: ExchangeClient) -> None:
        self._exchange = exchange
        self._requested: set[str] = set()

    def tokens(self, conn: psycopg.Connection[Any], listed: Sequence[Listed]) -> dict[str, Token]:
        """Return the tokens of listed trades by id; those in neither catalogue are absent."""
        token_ids = list({trade.token_id for trade in listed})
        found = _named(conn, token_ids)
        markets = {trade.market for trade in listed if trade.token_id not in found} - self._requested - {""}
        requested = sorted(markets)[: MAX_LOOKUPS - len(self._requested)]
        if not requested:
            return found
        rows, events = self._exchange.markets(requested)
        self._requested.update(requested)
        for active in (True, False):  # a market that is over is not announced as new
            group = [row for row in rows if (row["status"] == "ACTIVE") == active]
            catalogue.store(conn, group, cause="traded", events=events, announce_new=active)
        return _named(conn, token_ids)


def _named(conn: psycopg.Connection[Any], token_ids: list[str]) -> dict[str, Token]:
    return {row[0]: Token(*row) for row in queries.tokens_named(conn, token_ids=token_ids)}
