"""ClickHouse reads the lake, from a folder and from an object store, by the lines in docs/lake.md."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import duckdb
import pytest

from config.settings import Settings
from orchestration.lake import writing
from orchestration.lake.catalogue import Lake
from orchestration.lake.tables import BY_NAME, TABLES
from tests.clients.environments import python_of, results
from tests.factories import insert
from tests.object_store import object_store  # noqa: F401 (a fixture)

pytestmark = pytest.mark.soak  # chdb, ClickHouse as a library, is 0.8 GB

NOON = dt.datetime(2026, 11, 19, 12, tzinfo=dt.UTC)
SUMS = {
    "trades": "count(*), sum(price), sum(size), max(tx_hash), min(outcome)",
    "book_events": "count(*), sum(price), max(bids)",
}


@pytest.mark.parametrize("stored", ["folder", "bucket"])
def test_clickhouse_counts_the_same_as_duckdb(
    conn,
    database_url,
    tmp_path,
    object_store,  # noqa: F811
    add_market,
    add_trades,
    duck,
    stored,
):
    folder = tmp_path / "lake"
    settings = {"lake": str(folder)}
    if stored == "bucket":
        settings = {"lake": "s3://presage/days", "lake_s3_endpoint": object_store}
        settings |= {"lake_s3_key": "key", "lake_s3_secret": "secret"}
    market = add_market("rain", question='Will it "rain", or\nnot?', tags=["a,b", "ü"], created_at=NOON)
    add_trades(market, [{"ts": NOON + dt.timedelta(hours=n), "price": "0.123456", "size": "7.5"} for n in (-12, 0, 11)])
    add_trades(market, [{"ts": NOON, "side": -1, "tx_hash": b"\x0f" * 32}], outcome=1)
    key = {"market_key": market["market_key"], "outcome": 0, "ts": NOON}
    insert(conn, "book_events", {**key, "event_id": 1, "seq": 1, "side": 1, "price": 250_000, "size": 1_000_000})
    levels = {"bid_prices": [240_000], "bid_sizes": [5_000_000], "ask_prices": [], "ask_sizes": []}
    insert(conn, "book_events", {**key, "event_id": 2, "seq": 2, **levels})
    with Lake(database_url, Settings(_env_file=None, **settings)) as lake:
        for table in TABLES:
            writing.write(conn, lake, table, NOON.date())
        add_trades(market, [{"ts": NOON + dt.timedelta(minutes=1), "price": "0.5"}])
        writing.write(conn, lake, BY_NAME["trades"], NOON.date())  # the day's file is replaced
        asked = {table.name: SUMS.get(table.name, "count(*)") for table in TABLES}
        tables = {name: lake.table(BY_NAME[name]) for name in asked}
        if stored == "folder":
            counted = {name: duck(f"select {sums} from LAKE", tables[name]) for name, sums in asked.items()}
        else:  # DuckDB's extension for HTTP is not among the tests' packages
            scans = {name: duckdb.from_arrow(table.scan().to_arrow()) for name, table in tables.items()}
            counted = {name: scans[name].aggregate(sums).fetchall() for name, sums in asked.items()}

    source = "icebergLocal('{}')"
    if stored == "bucket":
        source = f"icebergS3('{object_store}/presage/days/{{}}', 'key', 'secret')"
    queries = [[name, f"select {sums} from {source.format(name)}"] for name, sums in asked.items()]
    folder.mkdir(exist_ok=True)
    by_clickhouse = results(python_of(".venv-chdb"), "chdb_client.py", said=json.dumps(queries), folder=folder)

    assert by_clickhouse == {name: [*map(as_json, rows)] for name, rows in counted.items()}
    assert by_clickhouse["trades"][0][:3] == [5, 1.370368, 42.5]


def as_json(row):
    """Return a row as ClickHouse's JSON has it: with floats for decimals."""
    return [float(value) if isinstance(value, Decimal) else value for value in row]
