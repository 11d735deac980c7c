"""An exchange with a day of trades in the past, a database that knows its markets, and the reconciliation of both."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import pytest

from orchestration.coverage import tape
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.markets import catalogue
from sql import database
from upstream.polymarket.gamma.client import Gamma
from upstream.sandbox.server import Sandbox
from upstream.transport.http import Client

DAY = dt.datetime.now(dt.UTC).date() - dt.timedelta(days=2)
NOON = dt.datetime(DAY.year, DAY.month, DAY.day, 12, tzinfo=dt.UTC)
MINUTES = 25


@pytest.fixture(autouse=True)
def few_requests(monkeypatch):
    """Request four hours at once: the exchange's rate limit would slow the tests down."""
    monkeypatch.setattr(tape, "WINDOW_MS", 4 * 3_600_000)


@pytest.fixture(scope="module")
def sandbox():
    """A sandbox that traded for 25 minutes of the day before yesterday, and has been paused since."""
    start_ms = int(NOON.timestamp() * 1000)
    with Sandbox(simulate=5, markets=12, rate=4, start_ms=start_ms, hold=True) as running:
        until = start_ms + MINUTES * 60_000
        while not running.call(lambda: running.source.advance(until, 2000)):
            pass
        yield running


@pytest.fixture
def exchange(sandbox):
    made = PolymarketClient(sandbox.gamma_url, sandbox.clob_url, sandbox.socket_url, sandbox.data_api_url, "simulated")
    yield made
    made.close()


@pytest.fixture
def db(database_url, sandbox):
    """A connection to a database that knows the exchange's markets."""
    with database.connect(database_url, autocommit=True) as conn:
        with Client() as client:
            markets = list(Gamma(client, sandbox.gamma_url).markets())
        catalogue.store(conn, [market.row("simulated") for market in markets], cause="discovered")
        yield conn


@pytest.fixture(scope="module")
def traded(sandbox):
    """Trades of the exchange, oldest first: token, side, price, size, transaction and instant (ms)."""
    trades = sandbox.call(lambda: list(sandbox.exchange.trades.newest_first()))[::-1]
    assert len(trades) > 200
    return [
        (each.token, 1 if each.side == "BUY" else -1, each.price, each.size, bytes.fromhex(each.tx[2:]), each.ts_ms)
        for each in trades
    ]


@pytest.fixture
def held(db):
    """Stored trades, without the instants: sources differ in them."""

    def read():
        rows = db.execute(
            "select token_id, side, price, size, tx_hash from trades join tokens using (market_key, outcome)"
        )
        return Counter(rows.fetchall())

    return read
