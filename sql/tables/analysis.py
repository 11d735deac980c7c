"""Results and inputs of the analysis: signals, and the history of the parameters."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Index, Integer, SmallInteger, Table, Text, text
from sqlalchemy.dialects.postgresql import JSONB

from sql.tables.base import EMPTY_OBJECT, NOW, Time, metadata

signals = Table(
    "signals",
    metadata,
    Column("ts", Time, nullable=False, comment="The end of the window that it was found in"),
    Column("market_key", Integer, nullable=False),
    Column("outcome", SmallInteger, nullable=False),
    Column(
        "signal_id",
        BigInteger,
        nullable=False,
        comment="Digest of type, market, outcome and instant: found twice, it is one",
    ),
    Column("type", Text, nullable=False),
    Column("value", Double, nullable=False),
    Column("threshold", Double, nullable=False),
    Column("score", Double, nullable=False, comment="value / threshold"),
    Column("direction", SmallInteger, comment="1 up, -1 down"),
    Column("window_s", Integer, nullable=False),
    Column("detail", JSONB, nullable=False, server_default=EMPTY_OBJECT, comment="The figures behind it"),
    Column("found_at", Time, nullable=False, server_default=NOW),
    Index("signals_market_idx", "market_key", text("ts desc"), "signal_id", unique=True),
    Index("signals_ts_idx", text("ts desc")),
    Index("signals_score_idx", text("score desc"), text("ts desc")),
    Index("signals_type_idx", "type", text("ts desc")),
    info={"timescale": "hypertable", "time": "ts", "chunk": "1 day"},
)

analysis_parameters = Table(
    "analysis_parameters",
    metadata,
    Column("since", Time, primary_key=True, comment="The first minute that was analysed with them"),
    Column("definitions", Integer, nullable=False, comment="Edition of the formulas in orchestration/analytics"),
    Column("parameters", JSONB, nullable=False),
    comment="A row whenever a parameter of analysis changed, so that a past day is computed with what was in force",
)
