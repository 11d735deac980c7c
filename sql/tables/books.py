"""Book history: what makes the book of any instant one short read, and its history small; price granularity."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, Index, Integer, LargeBinary, SmallInteger, Table, text

from sql.tables.base import Time, metadata

book_anchors = Table(
    "book_anchors",
    metadata,
    Column("ts", Time, nullable=False, comment="The exchange's instant of the last event that is in it"),
    Column("market_key", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("seq", BigInteger, nullable=False, comment="Of that event"),
    Column("bid_prices", ARRAY(Integer), nullable=False, comment="Best first"),
    Column("bid_sizes", ARRAY(BigInteger), nullable=False),
    Column("ask_prices", ARRAY(Integer), nullable=False),
    Column("ask_sizes", ARRAY(BigInteger), nullable=False),
    Index("book_anchors_market_idx", "market_key", "outcome", text("ts desc"), text("seq desc"), unique=True),
    Index("book_anchors_ts_idx", text("ts desc")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
    comment="Verified live books as they stood; between two of them lie the events of some minutes",
)

book_packs = Table(
    "book_packs",
    metadata,
    Column("ts", Time, nullable=False, comment="Of the first event in it"),
    Column("market_key", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column("until_ts", Time, nullable=False, comment="Of the last event in it"),
    Column("whole_from", Time, comment="From when on its books are whole; null: never"),
    Column("events", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False, comment="See sql/packs.py"),
    Index("book_packs_market_idx", "market_key", "outcome", text("ts desc"), unique=True),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
    comment="Book events of past days, on the Apache licence: an event stands either here or in book_events",
)

tick_sizes = Table(
    "tick_sizes",
    metadata,
    Column("market_key", Integer, primary_key=True, autoincrement=False),
    Column("outcome", SmallInteger, primary_key=True, autoincrement=False),
    Column("ts", Time, primary_key=True),
    Column("before", BigInteger, comment="Null when the exchange did not say"),
    Column("tick_size", BigInteger, nullable=False, comment="From this instant on"),
    comment="Each time that the exchange changed how fine an outcome's prices are",
)
