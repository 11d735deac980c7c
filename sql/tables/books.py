"""Whole books, kept now and then, so that the book of any instant is one short read."""

from __future__ import annotations

from sqlalchemy import ARRAY, BigInteger, Column, Index, Integer, SmallInteger, Table, text

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
