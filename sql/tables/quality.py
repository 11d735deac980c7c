"""Data-quality findings, and how far each suite has come."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Identity, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import INT8MULTIRANGE, JSONB

from sql.tables.base import NOW, Time, metadata

EMPTY_LIST = text("'[]'::jsonb")

quality_suites = Table(
    "quality_suites",
    metadata,
    Column("suite", Text, primary_key=True, comment="The table that it is about"),
    Column("stage", Text, nullable=False),
    Column("until", Time, nullable=False, comment="Rows up to here have been checked"),
    Column("after", BigInteger, comment="The same, of rows that are numbered"),
    Column("blocks", INT8MULTIRANGE, comment="The same, of blocks: also holes that are filled in later are noticed"),
    Column("ran_at", Time, nullable=False, server_default=NOW),
    Column("rows", BigInteger, nullable=False, comment="Of the last pass"),
    Column("seconds", Double, nullable=False),
    Column(
        "from_group",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="The first of the groups of markets (market_key % 1000) that the last pass checked",
    ),
    Column(
        "groups",
        Integer,
        nullable=False,
        server_default=text("1000"),
        comment="How many groups, in a ring; the others are unchecked until it is their turn",
    ),
    comment="A row each suite: the next pass takes up where the last one ended",
)

quality_checks = Table(
    "quality_checks",
    metadata,
    Column("suite", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("stage", Text, nullable=False),
    Column("severity", Text, nullable=False, comment="warn makes the stage late, fail makes it stale"),
    Column("ran_at", Time, nullable=False, server_default=NOW),
    Column("rows_checked", BigInteger, nullable=False),
    Column("rows_failed", BigInteger, nullable=False),
    Column("failed_at", Time, comment="When it last failed"),
    Column(
        "counts_until",
        Time,
        comment="Until then its last failure is held against the stage; while rows_failed is above 0, always",
    ),
    comment="The newest result of each check, which pipeline_status reads",
)

quality_results = Table(
    "quality_results",
    metadata,
    Column("result_id", BigInteger, Identity(always=True), primary_key=True),
    Column("ran_at", Time, nullable=False, server_default=NOW),
    Column("suite", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("stage", Text, nullable=False),
    Column("severity", Text, nullable=False),
    Column("rows_checked", BigInteger, nullable=False),
    Column("rows_failed", BigInteger, nullable=False, comment="0: it held"),
    Column("samples", JSONB, nullable=False, server_default=EMPTY_LIST, comment="Some of the rows that failed"),
    Index("quality_results_check_idx", "suite", "name", text("ran_at desc")),
    Index("quality_results_ran_at_idx", "ran_at"),
    Index("quality_results_failed_idx", text("ran_at desc"), postgresql_where=text("rows_failed > 0")),
    comment="Each check of each pass that had rows to look at: those that held are kept for days, failures for months",
)
