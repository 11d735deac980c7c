"""A lake and the retention that drops what it has, for tests of what the API answers from it."""

from __future__ import annotations

import datetime as dt

import pytest

from api.app import create_app
from api.data.lake import LakeFiles
from api.data.pool import Pool
from api.metering.ledger_location import LazyLedger
from api.service import Service
from api.stream.hub import StreamHub
from config.settings import Settings
from orchestration.lake import writing
from orchestration.lake.catalogue import Lake
from orchestration.lake.tables import TABLES
from orchestration.maintenance import retention
from sql import database
from tests.api.conftest import Client, generous

FIRST = dt.datetime(2026, 3, 1, tzinfo=dt.UTC)
DAYS = 4
HOT_FROM = FIRST + dt.timedelta(days=DAYS - 1)
NOW = HOT_FROM + dt.timedelta(days=30, hours=5)


@pytest.fixture
def given(tmp_path):
    return Settings(_env_file=None, lake=f"{tmp_path}/lake", trades_retention_days=30, books_retention_days=30)


@pytest.fixture
def asking(database_url, conn, given):
    """Return a function that makes a client of a new API process."""
    pools = []

    def client(settings=given):
        pools.extend(
            [reads := Pool(database_url, 2, {"default_transaction_read_only": "on"}), writes := Pool(database_url, 2)]
        )
        ledger = LazyLedger()
        lake = LakeFiles(settings) if settings.lake else None
        hub = StreamHub(reads, ledger.ended)
        made = Client(create_app(Service(reads=reads, writes=writes, hub=hub, ledger=ledger, lake=lake)))
        made.key = generous(conn, f"{len(pools)}@example.com")
        return made

    yield client
    for pool in pools:
        pool.close()


@pytest.fixture
def write(conn, database_url, given):
    """Return a function that writes the lake."""

    def run(settings=given):
        if database.license(conn) == "timescale":  # no jobs run here
            for name in ("candles_1m", "candles_1h"):
                conn.execute(f"call refresh_continuous_aggregate('{name}', null, null)")
        with Lake(database_url, settings) as lake:
            for table in TABLES:
                writing.write_due(conn, lake, table, HOT_FROM + dt.timedelta(days=2, hours=2), lambda _: None)

    return run


def say(conn, given):
    """Have retention say what it will drop."""
    conn.execute("update stage_clocks set last_data_at = %s where stage = 'ingestion'", [NOW])
    dropped = retention.drop_old(conn, given, NOW)
    assert [dropped[name] for name in ("trades", "book_events", "book_packs", "book_anchors", "quotes")] == [0] * 5


def drop(conn, given):
    """Have a later pass of retention drop it; return how many days of each table it drops."""
    conn.execute(
        "update settings set updated_at = updated_at - interval '11 minutes' where name like 'lake_hot_from.%'"
    )
    return retention.drop_old(conn, given, NOW)
