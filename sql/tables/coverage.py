"""Reconciliation by day: stored data, counted against the exchange and the chain."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Date, Integer, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from sql.tables.base import EMPTY_OBJECT, NOW, Time, metadata

coverage_days = Table(
    "coverage_days",
    metadata,
    Column("day", Date, primary_key=True, comment="UTC"),
    Column(
        "kind",
        Text,
        primary_key=True,
        comment="trades or settlements; of another exchange than Polymarket with its name, as trades_kalshi",
    ),
    Column("listed", BigInteger, nullable=False, comment="Trades that the exchange lists, or logs that the chain has"),
    Column("held", BigInteger, nullable=False, comment="How many of those are held by now"),
    Column("added", BigInteger, nullable=False, comment="How many of those were missing, and were filled in"),
    Column("unlisted", BigInteger, nullable=False, comment="Held, though the source does not tell of it"),
    Column("unknown", BigInteger, nullable=False, comment="Listed, but of no market that the catalogue knows"),
    Column("agrees", Boolean, nullable=False, comment="Nothing is missing, nothing unlisted, nothing unknown"),
    Column("checked_at", Time, nullable=False, server_default=NOW),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT),
    comment="One row a day and kind that was reconciled with its source; done again, the newest word counts",
)

coverage_market_days = Table(
    "coverage_market_days",
    metadata,
    Column("day", Date, primary_key=True, comment="UTC"),
    Column("market_key", Integer, primary_key=True, autoincrement=False),
    Column("listed", Integer, nullable=False, comment="Trades that the exchange lists"),
    Column("held", Integer, nullable=False, comment="How many of those are held by now"),
    Column("added", Integer, nullable=False, comment="How many of those were missing, and were filled in"),
    Column("unlisted", Integer, nullable=False, comment="Held, though the exchange does not list it"),
    comment="The same of the trades of each market that had any",
)
