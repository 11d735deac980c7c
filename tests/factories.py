"""Factories of database rows: tests give the relevant columns, the rest has defaults."""

from __future__ import annotations

import datetime as dt
import itertools
import secrets
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from sql.database import micro

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_numbers = itertools.count(1)


def add_market(conn: psycopg.Connection[Any], slug: str | None = None, **columns: Any) -> dict[str, Any]:
    """Insert a market with its tokens (two outcomes by default), and return the whole row."""
    number = next(_numbers)
    slug = slug or f"market-{number}"
    outcomes = columns.setdefault("outcomes", ["Yes", "No"])
    row = {
        "market_id": "0x" + secrets.token_hex(32),
        "slug": slug,
        "question": f"{slug.replace('-', ' ').capitalize()}?",
        "status": "ACTIVE",
        "token_ids": [str(secrets.randbits(250)) for _ in outcomes],
        "created_at": dt.datetime.now(dt.UTC),
        **columns,
    }
    row = insert(conn, "markets", row)
    for outcome, token_id in enumerate(row["token_ids"]):
        insert(conn, "tokens", {"token_id": token_id, "market_key": row["market_key"], "outcome": outcome})
    return row


def add_trades(
    conn: psycopg.Connection[Any], market: Mapping[str, Any], trades: Iterable[Mapping[str, Any]], *, outcome: int = 0
) -> list[dict[str, Any]]:
    """Insert trades of a market and return their rows; `price` and `size` in decimal ("0.52", 10).

    Without `ts`, trades are a millisecond apart and the last one is now.
    """
    given = list(trades)
    start = dt.datetime.now(dt.UTC) - dt.timedelta(milliseconds=len(given))
    rows = []
    for number, trade in enumerate(given):
        ts = trade.get("ts", start + dt.timedelta(milliseconds=number))
        price, size = micro(trade.get("price", "0.5")), micro(trade.get("size", 10))
        row = {
            "ts": ts,
            "market_key": market["market_key"],
            "outcome": outcome,
            "trade_id": next(_numbers),
            "seq": (int(ts.timestamp() * 1000) << 20) + number,
            "side": 1,
            "value_usd": micro(Decimal(price * size) / 10**12),
            **trade,
            "price": price,
            "size": size,
        }
        rows.append(insert(conn, "trades", row))
    return rows


def keep_alive(conn: psycopg.Connection[Any]) -> None:
    """Mark the live feed as alive for a day: otherwise no price or book is live."""
    conn.execute(
        "update stage_clocks set last_data_at = now(), beat_at = now() + interval '1 day',"
        """ detail = '{"backlog_events": 0}' where stage = 'ingestion'"""
    )


def go_live(conn: psycopg.Connection[Any], market: Mapping[str, Any], outcome: int = 0, **price: Any) -> dict[str, Any]:
    """Give an outcome a live price with a verified book and an alive feed; return the price's row."""
    keep_alive(conn)
    of = {"market_key": market["market_key"], "outcome": outcome, "ts": dt.datetime.now(dt.UTC)}
    levels: dict[str, Any] = {"bid_prices": [], "bid_sizes": [], "ask_prices": [], "ask_sizes": []}
    insert(conn, "live_books", {**of, **levels, "seq": 1, "verified": True})
    return insert(conn, "live_prices", {**of, **price})


def insert(conn: psycopg.Connection[Any], table: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Insert one row and return all its columns; dicts are stored as JSON."""
    values = [Jsonb(value) if isinstance(value, dict) else value for value in row.values()]
    statement = sql.SQL("insert into {} ({}) values ({}) returning *").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join([sql.Placeholder()] * len(row)),
    )
    with conn.cursor(row_factory=dict_row) as cursor:
        inserted = cursor.execute(statement, values).fetchone()
    assert inserted is not None
    return inserted
