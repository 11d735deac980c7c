"""Kalshi's trades: gaps filled, and days reconciled with its own list."""

import datetime as dt
import json

import pytest

from orchestration.coverage import days, filling, judging
from orchestration.ingest.exchanges.kalshi import KalshiClient
from orchestration.ingest.storage import ids
from orchestration.markets import catalogue
from sql import database
from sql.queries import coverage as queries
from tests.factories import add_market, add_trades, insert
from tests.orchestration.coverage.conftest import DAY, NOON
from tests.upstream.sandbox.kalshi.conftest import play
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.sandbox.kalshi.server import KalshiSandbox
from upstream.transport.http import Client

MINUTE = 60_000
START_MS = int(NOON.timestamp() * 1000)


@pytest.fixture
def sandbox():
    with KalshiSandbox(simulate=11, start_ms=START_MS, markets=20, rate=40, hold=True) as exchange:
        yield exchange


@pytest.fixture
def client(sandbox):
    made = KalshiClient(sandbox.rest_url, sandbox.socket_url, None, "simulated")
    yield made
    made.close()


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


def test_a_gap_of_all_markets_is_filled_and_one_of_the_other_exchange_is_left_alone(sandbox, stored, client):
    from_ms, to_ms = START_MS + MINUTE, START_MS + 2 * MINUTE
    gap(stored, "kalshi", from_ms, to_ms)
    gap(stored, "polymarket", from_ms, to_ms)

    filled = filling.fill(stored, client)

    traded = [each for each in sandbox.exchange.trades.newest_first(None) if not each.market.combo]
    within = {ids.trade_id(each.id) for each in traded if from_ms <= each.ts_ms <= to_ms}
    found = {row[0] for row in stored.execute("select trade_id from trades")}
    assert len(within) > 20
    assert within <= found, "nothing is taken for another trade: equal ones within seconds are not the same"
    assert (filled.gaps, filled.failed, filled.added) == (1, 0, len(found))
    states = dict(stored.execute("select exchange, filled_at is not null from coverage_gaps").fetchall())
    assert states == {"kalshi": True, "polymarket": False}


def made(sandbox):
    """The IDs of the day's trades as the exchange made them; combos are not recorded."""
    return {
        ids.trade_id(each.id)
        for each in sandbox.exchange.trades.newest_first(None)
        if not each.market.combo and dt.datetime.fromtimestamp(each.ts_ms / 1000, dt.UTC).date() == DAY
    }


def test_a_day_is_reconciled_with_its_own_list_and_leaves_the_other_exchange_alone(sandbox, stored, client):
    insert(stored, "settings", {"name": "recorded_since_kalshi", "value": str(START_MS)})
    other = add_market(stored)
    add_trades(stored, other, [{"ts": NOON + dt.timedelta(minutes=n)} for n in range(3)])

    result = days.reconcile_trades(stored, client, DAY)

    expected = made(sandbox)
    assert len(expected) > 60
    found = stored.execute("select trade_id from trades where market_key <> %s", [other["market_key"]]).fetchall()
    assert {row[0] for row in found} == expected
    count = len(expected)
    assert result.figures() == {
        "listed": count, "held": count, "added": count, "unlisted": 0, "unknown": 0, "agrees": True
    }  # fmt: skip
    noted = stored.execute("select distinct exchange, cause, filled_by from coverage_gaps").fetchall()
    assert noted == [("kalshi", days.MISSED, days.COUNTED)]
    assert stored.execute("select day, kind from coverage_days").fetchall() == [(DAY, "trades_kalshi")]

    again = days.reconcile_trades(stored, client, DAY)
    assert (again.held, again.added, again.unlisted) == (count, 0, 0)


def test_a_day_is_due_for_the_exchange_that_was_recorded_and_not_reconciled(stored, client):
    night = NOON + dt.timedelta(hours=15, minutes=20)
    both = {"polymarket": ["trades"], "kalshi": ["trades"]}
    assert [*days.due(stored, night, both)] == []
    insert(stored, "settings", {"name": "recorded_since_kalshi", "value": str(START_MS)})
    assert ([*days.due(stored, night, both)], [*days.due(stored, night, {"polymarket": ["trades"]})]) == ([DAY], [])
    two_nights_later = judging.reconciled(stored, night + dt.timedelta(days=2), both)
    assert (two_nights_later.holds, two_nights_later.summary.startswith("trades of Kalshi: ")) == (False, True)

    days.reconcile_trades(stored, client, DAY)

    assert [*days.due(stored, night, both)] == []
    insert(stored, "settings", {"name": "recorded_since", "value": str(START_MS)})
    assert [*days.due(stored, night, both)] == [DAY], "the other exchange's day is its own"


def test_what_is_covered_is_told_by_exchange(stored, client):
    insert(stored, "settings", {"name": "recorded_since_kalshi", "value": str(START_MS)})
    days.reconcile_trades(stored, client, DAY)
    spans = dict(
        stored.execute("select exchange, held @> tstzrange(%s, %s) from coverage_held where kind = 'trades'", [
            NOON - dt.timedelta(hours=6), NOON + dt.timedelta(hours=6)
        ]).fetchall()
    )  # fmt: skip
    assert spans["kalshi"] is True
    assert spans["polymarket"] is False
    assert [json.loads(queries.days(stored, exchange=each)) == [] for each in ("kalshi", "polymarket")] == [False, True]
