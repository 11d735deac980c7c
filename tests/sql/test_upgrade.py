"""A database of the first migration is upgraded to any later one with all its data, while it is used."""

from __future__ import annotations

import datetime as dt
import shutil
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from psycopg import sql as composed
from psycopg.types.json import Jsonb
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Date,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    SmallInteger,
    Text,
    create_engine,
)
from sqlalchemy.dialects.postgresql import BIT, INT8MULTIRANGE, JSONB, UUID

from sql import database, migrate
from tests import stream_rows
from tests.databases import new_database
from tests.factories import insert
from tests.sql import schema

ROOT = Path(__file__).parents[2]
AT = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)
FIRST = "0001"
MESSAGE = '{"type":"x","seq":1,"ts":0,"market_id":"x","data":{}}'
# Where a column does not accept every value of its type.
CHOSEN = {"format": "parquet", "status": "RESOLVED", "message": MESSAGE, "secret": "whsec_x", "next_secret": "whsec_x"}
REPACKED = {"stream_events"}  # since revision 0010 in blocks
# Since revision 0013, while the release before may be running.
ADDED = {
    "settings": composed.SQL("name = 'webhook_secrets_in_clear'"),
    "stage_clocks": composed.SQL("stage in ('discovery_kalshi', 'ingestion_kalshi')"),
}

# What later migrations consist of: columns, a view over them, an index that must not lock its table for long.
NEXT = '''
"""Who reported a trade, and what mood a market is in."""

from alembic import op

revision, down_revision = "next", "{before}"


def upgrade() -> None:
    op.execute("alter table trades add column reported_by text")
    op.execute("alter table markets add column mood text not null default 'calm'")
    op.execute("create view moods as select market_id, mood from markets")
    {more}


def downgrade() -> None:
    op.execute("drop view moods")
    op.execute("alter table markets drop column mood")
    op.execute("alter table trades drop column reported_by")
'''
INDEXES = """with op.get_context().autocommit_block():
        op.execute("create index concurrently markets_mood_idx on markets (mood)")
        op.execute(
            "create index trades_reported_by_idx on trades (reported_by) with (timescaledb.transaction_per_chunk)"
        )"""


@pytest.fixture
def later(tmp_path, monkeypatch):
    """`later(more)` makes a later release: the existing migrations, and one more."""

    def make(more=INDEXES):
        folder = tmp_path / "alembic"
        shutil.copytree(migrate.FOLDER, folder)
        text = NEXT.format(before=head(), more=more)
        (folder / "versions" / "9999_next.py").write_text(text.lstrip())
        monkeypatch.setattr(migrate, "FOLDER", folder)

    return make


def head():
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(migrate.FOLDER)).get_current_head()


def value(column):
    """Return a value that a column accepts."""
    if column.name in CHOSEN:
        return CHOSEN[column.name]
    kinds = {
        (Integer, BigInteger, SmallInteger, Float, Numeric): 1,
        (Text,): "x",
        (Boolean,): False,
        (DateTime,): AT,
        (Date,): AT.date(),
        (LargeBinary,): b"\1" * 20,
        (JSONB,): Jsonb({}),
        (INT8MULTIRANGE,): "{[1,2)}",
        (UUID,): "00000000-0000-4000-8000-000000000001",
        (BIT,): "0" * 16_384,
    }
    if isinstance(column.type, ARRAY):
        return [value(SimpleNamespace(type=column.type.item_type, name=column.name))]
    for types, given in kinds.items():
        if isinstance(column.type, types):
            return given
    raise AssertionError(f"what does {column.name} take? ({column.type!r})")


def tables_of(url):
    """Return the tables that the database has, which need not be the current ones; without the kept candles."""
    engine = create_engine(database.sqlalchemy_url(url))
    found = MetaData()
    found.reflect(engine)
    engine.dispose()
    return [table for table in found.sorted_tables if table.name not in ("candles_1m", "candles_1h")]


def fill(conn, tables):
    """Insert a row into every table that has none."""
    for table in tables:
        name = composed.Identifier(table.name)
        if conn.execute(composed.SQL("select 1 from {} limit 1").format(name)).fetchone():
            continue
        given = {column.name: value(column) for column in table.columns if column.server_default is None}
        for column in table.columns:
            for key in column.foreign_keys:
                there = composed.SQL("select {} from {} limit 1").format(
                    composed.Identifier(key.column.name), composed.Identifier(key.column.table.name)
                )
                (given[column.name],) = conn.execute(there).fetchone()
        insert(conn, table.name, {key: each for key, each in given.items() if not table.columns[key].identity})


def held(conn, columns):
    """Return a digest of every row of every table, over these columns."""
    digests = {}
    for table, names in columns.items():
        row = composed.SQL(", ").join(map(composed.Identifier, names))
        question = composed.SQL(
            "select count(*), md5(string_agg(md5(row({})::text), '' order by row({})::text)) from {} where not {}"
        )
        added = ADDED.get(table, composed.SQL("false"))
        digests[table] = conn.execute(question.format(row, row, composed.Identifier(table), added)).fetchone()
    return digests


def kept(of_tables):
    """Return what is of tables that later revisions still have."""
    return {table: of for table, of in of_tables.items() if table not in REPACKED}


def columns_of(conn):
    rows = conn.execute(
        "select table_name, array_agg(column_name::text order by ordinal_position) from information_schema.columns"
        " join information_schema.tables using (table_schema, table_name)"
        " where table_schema = 'public' and table_type = 'BASE TABLE' and table_name <> 'alembic_version' group by 1"
    ).fetchall()
    return dict(rows)


@pytest.fixture
def first(cluster):
    """A database as the first migration made it, a row in each of its tables."""
    with new_database(cluster) as url:
        migrate.upgrade(url, FIRST)
        with database.connect(url, autocommit=True) as conn:
            fill(conn, tables_of(url))
        yield url


def test_a_database_of_the_first_migration_becomes_todays_and_keeps_every_row(first, conn):
    with database.connect(first, autocommit=True) as old:
        columns = columns_of(old)
        before = held(old, columns)

        migrate.upgrade(first)

        assert all(count for count, _ in before.values())
        assert held(old, kept(columns)) == kept(before)
        assert [row.message for row in stream_rows.rows(old)] == [MESSAGE]
        assert schema.describe(old) == schema.describe(conn)


def test_an_upgrade_and_its_way_back_keep_every_row(first, later):
    with database.connect(first, autocommit=True) as conn:
        columns, described = columns_of(conn), schema.describe(conn)
        before = held(conn, columns)
        later()

        migrate.upgrade(first)

        assert held(conn, kept(columns)) == kept(before)
        assert conn.execute("select distinct mood from moods").fetchall() == [("calm",)]
        assert conn.execute("select reported_by from trades").fetchall() == [(None,)]
        valid = conn.execute(
            "select count(*) from pg_index join pg_class on oid = indexrelid"
            " where relname ~ '(markets_mood|trades_reported_by)_idx' and indisvalid"
        ).fetchone()
        assert valid == (3,)  # of the hypertable, its chunk, and the table

        migrate.downgrade(first, FIRST)
        assert held(conn, columns) == before
        assert schema.describe(conn) == described


def test_an_upgrade_that_fails_half_way_changes_nothing_and_can_be_done_again(first, later):
    before = head()
    migrate.upgrade(first)
    later('op.execute("select 1 / 0")')
    with database.connect(first, autocommit=True) as conn:
        described = schema.describe(conn)

        with pytest.raises(Exception, match="division by zero"):
            migrate.upgrade(first)

        assert conn.execute("select version_num from alembic_version").fetchall() == [(before,)]
        assert schema.describe(conn) == described

        migration = migrate.FOLDER / "versions" / "9999_next.py"
        # Of another length: Python takes a file of the same length and second for the one that it has compiled.
        migration.write_text(migration.read_text().replace("1 / 0", "1 / 10"))
        migrate.upgrade(first)
        assert conn.execute("select mood from moods limit 1").fetchone() == ("calm",)


def test_readers_and_writers_of_the_old_release_go_on_while_it_is_upgraded(first, later):
    later()
    stop, wrong, written, read = threading.Event(), [], [], []

    def working(work):
        with database.connect(first, autocommit=True) as conn:
            while not stop.is_set():
                try:
                    work(conn)
                except psycopg.Error as error:
                    wrong.append(error)
                time.sleep(0.005)

    def write(conn):
        number = len(written) + 2
        conn.execute("insert into trades values (%s, 1, 0, %s, %s, 1, 1, 1, 1)", [AT, number, number])
        written.append(number)

    def look(conn):
        read.append(conn.execute("select count(*) from market_records").fetchone())

    threads = [threading.Thread(target=working, args=[work]) for work in (write, look, look)]
    for thread in threads:
        thread.start()
    try:
        until = time.monotonic() + 20
        while len(written) < 20 and time.monotonic() < until:
            time.sleep(0.01)
        migrate.upgrade(first)
        after = len(written)
        while len(written) < after + 20 and time.monotonic() < until:
            time.sleep(0.01)
    finally:
        stop.set()
        for thread in threads:
            thread.join()

    with database.connect(first) as conn:
        assert wrong == []
        assert len(read) > 2
        assert conn.execute("select count(*) from trades").fetchone() == (len(written) + 1,)


def test_the_community_edition_is_upgraded_too(community, later):
    now = head()
    community.execute("insert into trades values (now(), 1, 0, 1, 1, 1, 1, 1, 1)")
    later("pass")

    community.execute(migrate.script("timescale", f"{now}:next"))

    assert community.execute("select reported_by from trades") == [(None,)]
    assert community.execute("select version_num from alembic_version") == [("next",)]
