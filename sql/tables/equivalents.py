"""Pairs of markets of two exchanges, and whether they ask the same question."""

from __future__ import annotations

from sqlalchemy import ARRAY, REAL, BigInteger, Column, ForeignKey, Index, Integer, SmallInteger, Table, Text

from sql.tables.base import NOW, Time, metadata

equivalents = Table(
    "equivalents",
    metadata,
    Column("left_key", Integer, ForeignKey("markets.market_key", ondelete="CASCADE"), primary_key=True),
    Column("right_key", Integer, ForeignKey("markets.market_key", ondelete="CASCADE"), primary_key=True),
    Column("verdict", Text, nullable=False, comment="identical, inverted, subset, related, different or unreadable"),
    Column("clause", Text, comment="The clause that decided; null: every clause is equal"),
    Column("detail", Text, nullable=False, comment="What it says on either side"),
    Column("within", Text, comment="left or right: the side whose Yes implies the other's, of a subset"),
    Column("score", REAL, nullable=False, comment="How alike the titles are, 0 to 100"),
    Column("rules_version", SmallInteger, nullable=False, comment="Of the rules that judged"),
    Column("left_text", BigInteger, nullable=False, comment="A hash of the text that was judged"),
    Column("right_text", BigInteger, nullable=False, comment="The same of the other side"),
    Column("judged_at", Time, nullable=False, server_default=NOW),
    Column("overruled", Text, comment="An operator's verdict"),
    Column("overruled_within", Text, comment="left or right, of a subset"),
    Column("overruled_why", Text),
    Column("overruled_at", Time),
    Column("overruled_texts", ARRAY(BigInteger), comment="Hashes of the texts that the operator's verdict is of"),
    Index("equivalents_right_idx", "right_key"),
    comment="Markets of two exchanges with similar titles: the left one is Polymarket's",
)
