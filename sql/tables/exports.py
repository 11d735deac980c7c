"""Exports: the files that days of data were written to."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    LargeBinary,
    SmallInteger,
    Table,
    Text,
)

from sql.tables.base import Time, metadata

exports = Table(
    "exports",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("day", Date, primary_key=True, comment="UTC"),
    Column("part", SmallInteger, primary_key=True, comment="Of the day, from 0"),
    Column("format", Text, primary_key=True, comment="parquet or csv"),
    Column("file", Text, nullable=False, unique=True, comment="Below the folder of exports"),
    Column("rows", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", LargeBinary, nullable=False),
    Column("complete", Boolean, nullable=False, comment="Written after the part was over"),
    Column("created_at", Time, nullable=False),
    CheckConstraint("format in ('parquet', 'csv')", name="format"),
    comment="One row a file that is there whole",
)
