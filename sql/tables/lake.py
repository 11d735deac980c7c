"""The lake: its Iceberg catalogue, and which days it has."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Date, Integer, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from sql.tables.base import NOW, Time, metadata

lake_days = Table(
    "lake_days",
    metadata,
    Column("name", Text, primary_key=True, comment="The lake's table"),
    Column("day", Date, primary_key=True, comment="UTC; of a table that is written whole, when it was"),
    Column("rows", BigInteger, nullable=False),
    Column("files", Integer, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("fingerprint", Text, nullable=False, comment="Of the day's rows in the database when they were written"),
    Column("written_at", Time, nullable=False, server_default=NOW),
    Column(
        "paths",
        ARRAY(Text),
        comment="The day's files; null: written by an earlier release, which the lake's job amends",
    ),
    comment="Days of the lake's tables that are committed there",
)

# The next two are those of pyiceberg's SqlCatalog, which any client of Iceberg's JDBC catalogue reads.
iceberg_tables = Table(
    "iceberg_tables",
    metadata,
    Column("catalog_name", Text, primary_key=True),
    Column("table_namespace", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    Column("metadata_location", Text, comment="The file that describes the table as it stands"),
    Column("previous_metadata_location", Text),
    Column("iceberg_type", Text),
    comment="The lake's tables, as Iceberg's JDBC catalogue has them",
)
iceberg_namespace_properties = Table(
    "iceberg_namespace_properties",
    metadata,
    Column("catalog_name", Text, primary_key=True),
    Column("namespace", Text, primary_key=True),
    Column("property_key", Text, primary_key=True),
    Column("property_value", Text, nullable=False),
    comment="The lake's namespaces, as Iceberg's JDBC catalogue has them",
)
