"""Gaps in Kalshi's trades, filled from its own list."""

import time

import pytest

from orchestration.coverage import filling
from orchestration.ingest.exchanges.kalshi import KalshiClient
from orchestration.ingest.storage import ids
from orchestration.markets import catalogue
from sql import database
from tests.factories import insert
from tests.upstream.sandbox.kalshi.conftest import play
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.http import Client

MINUTE = 60_000
START_MS = (int(time.time()) - 7_200) * 1000


@pytest.fixture
def sandbox():
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=20, rate=40, hold=True) as exchange:
        yield exchange


@pytest.fixture
def stored(database_url, sandbox):
    with database.connect(database_url, autocommit=True) as conn, Client() as client:
        for page in KalshiListings(Kalshi(client, sandbox.rest_url)).open_pages():
            catalogue.store(conn, [item.row("simulated") for item in page.items], cause="discovered")
        play(sandbox, 3 * MINUTE)
        yield conn


def gap(conn, exchange, from_ms, to_ms):
    span = {"from_ts": from_ms / 1000, "to_ts": to_ms / 1000}
    row = {name: conn.execute("select to_timestamp(%s)", [at]).fetchone()[0] for name, at in span.items()}
    return insert(conn, "coverage_gaps", {"kind": "trades", "cause": "closed", "exchange": exchange, **row})


def test_a_gap_of_all_markets_is_filled_and_one_of_the_other_exchange_is_left_alone(sandbox, stored):
    from_ms, to_ms = START_MS + MINUTE, START_MS + 2 * MINUTE
    gap(stored, "kalshi", from_ms, to_ms)
    gap(stored, "polymarket", from_ms, to_ms)
    client = KalshiClient(sandbox.rest_url, sandbox.socket_url, None, "simulated")
    try:
        filled = filling.fill(stored, client)
    finally:
        client.close()

    made = [each for each in sandbox.exchange.trades.newest_first(None) if not each.market.combo]
    within = {ids.trade_id(each.id) for each in made if from_ms <= each.ts_ms <= to_ms}
    found = {row[0] for row in stored.execute("select trade_id from trades")}
    assert len(within) > 20
    assert within <= found, "nothing is taken for another trade: equal ones within seconds are not the same"
    assert (filled.gaps, filled.failed, filled.added) == (1, 0, len(found))
    states = dict(stored.execute("select exchange, filled_at is not null from coverage_gaps").fetchall())
    assert states == {"kalshi": True, "polymarket": False}
