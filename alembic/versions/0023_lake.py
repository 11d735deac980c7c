"""The lake: its Iceberg catalogue, and which days it has."""

from alembic import op

revision, down_revision = "0023", "0022"


def upgrade() -> None:
    op.execute("""
create table lake_days (
    name text not null,
    day date not null,
    rows bigint not null,
    files integer not null,
    bytes bigint not null,
    fingerprint text not null,
    written_at timestamp with time zone not null default now(),
    constraint lake_days_pkey primary key (name, day)
)
""")
    op.execute("comment on table lake_days is 'Days of the lake''s tables that are committed there'")
    for column, text in {
        "name": "The lake''s table",
        "day": "UTC; of a table that is written whole, when it was",
        "fingerprint": "Of the day''s rows in the database when they were written",
    }.items():
        op.execute(f"comment on column lake_days.{column} is '{text}'")
    op.execute("""
create table iceberg_tables (
    catalog_name text not null,
    table_namespace text not null,
    table_name text not null,
    metadata_location text,
    previous_metadata_location text,
    iceberg_type text,
    constraint iceberg_tables_pkey primary key (catalog_name, table_namespace, table_name)
)
""")
    op.execute("comment on table iceberg_tables is 'The lake''s tables, as Iceberg''s JDBC catalogue has them'")
    op.execute(
        "comment on column iceberg_tables.metadata_location is 'The file that describes the table as it stands'"
    )
    op.execute("""
create table iceberg_namespace_properties (
    catalog_name text not null,
    namespace text not null,
    property_key text not null,
    property_value text not null,
    constraint iceberg_namespace_properties_pkey primary key (catalog_name, namespace, property_key)
)
""")
    op.execute(
        "comment on table iceberg_namespace_properties is "
        "'The lake''s namespaces, as Iceberg''s JDBC catalogue has them'"
    )


def downgrade() -> None:
    for table in ("iceberg_namespace_properties", "iceberg_tables", "lake_days"):
        op.execute(f"drop table {table}")
