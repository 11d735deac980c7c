"""Tokens of listed trades: from our catalogue, and from the exchange's where ours lacks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestration.ingest.storage.rows import Token
from orchestration.markets import catalogue
from sql.queries import coverage as queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    import psycopg

    from orchestration.ingest.exchange import Exchange
    from upstream.polymarket.data_api.client import Trade

MAX_LOOKUPS = 10_000  # markets asked for in one pass; the others stay unknown until the next


class Naming:
    """Names tokens during one pass; a market is asked for once."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._asked: set[str] = set()

    def tokens(self, conn: psycopg.Connection[Any], listed: Sequence[Trade]) -> dict[str, Token]:
        """Give the tokens of listed trades by their ids; those that neither catalogue knows are absent."""
        token_ids = list({trade.token_id for trade in listed})
        found = _named(conn, token_ids)
        markets = {trade.market for trade in listed if trade.token_id not in found} - self._asked - {""}
        asked = sorted(markets)[: MAX_LOOKUPS - len(self._asked)]
        if not asked:
            return found
        rows, events = self._exchange.markets(asked)
        self._asked.update(asked)
        for new_to_all in (True, False):  # a market that is over is told to nobody as new
            told = [row for row in rows if (row["status"] == "ACTIVE") == new_to_all]
            catalogue.store(conn, told, cause="traded", events=events, announce_new=new_to_all)
        return _named(conn, token_ids)


def _named(conn: psycopg.Connection[Any], token_ids: list[str]) -> dict[str, Token]:
    return {row[0]: Token(*row) for row in queries.tokens_named(conn, token_ids=token_ids)}
