"""Gaps in the trades stay open while a trade listed in them belongs to an unknown market."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from time import monotonic

import pytest

from orchestration.coverage import days, filling
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.ingest.gaps.from_data_api import GapFiller
from tests.factories import insert
from tests.orchestration.coverage.conftest import DAY, MINUTES, NOON


@pytest.fixture
def gap(db):
    insert(
        db,
        "coverage_gaps",
        {"kind": "trades", "cause": "asleep", "from_ts": NOON, "to_ts": NOON + dt.timedelta(minutes=MINUTES)},
    )

    def read():
        return db.execute("select status, fault, added from coverage_gap_records").fetchone()

    return read


@pytest.fixture
def market_removed(db, traded):
    """Delete a market from the catalogue; return the number of its trades."""
    (market_id, token_ids) = db.execute(
        "select market_id, token_ids from markets join tokens using (market_key) where token_id = %s", [traded[0][0]]
    ).fetchone()
    db.execute("delete from markets where market_id = %s", [market_id])
    return sum(trade[0] in token_ids for trade in traded)


@pytest.fixture
def removed_from_exchange(monkeypatch):
    """Delete it from the exchange's catalogue, too."""
    monkeypatch.setattr(PolymarketClient, "markets", lambda *_: ([], []))
    return monkeypatch.undo


@pytest.fixture(params=["live", "hourly"])
def fill(request, db, exchange):
    """Fill gaps as the live feed does, and as the hourly job does."""
    filler = GapFiller(db.info.dsn, "polymarket", "me", exchange)

    def run():
        db.execute("update coverage_gaps set detail = detail - 'next_at'")
        return filler.from_data_api(0.0, monotonic()) if request.param == "live" else filling.fill(db, exchange)

    yield run
    filler.close()


def alike(traded):
    return Counter(trade[:5] for trade in traded)


def test_markets_that_the_catalogue_lacks_are_asked_for_and_their_trades_stored(
    gap, market_removed, fill, traded, held
):
    fill()

    assert market_removed > 0
    assert held() == alike(traded)
    assert gap() == ("filled", None, len(traded))


def test_a_gap_with_trades_of_a_market_that_nobody_knows_stays_open_and_says_so(
    gap, market_removed, removed_from_exchange, fill, traded, held
):
    fill()
    status, fault, added = gap()

    assert (status, added) == ("fillable", len(traded) - market_removed)
    assert fault.startswith(f"{market_removed} trades of 1 markets that the catalogue does not know: 0x")

    fill()
    assert gap()[::2] == ("fillable", len(traded) - market_removed)

    removed_from_exchange()  # undone: it has been listed
    fill()
    assert held() == alike(traded)
    assert gap() == ("filled", None, len(traded))


def test_only_what_was_left_is_fetched_again(
    gap, market_removed, removed_from_exchange, fill, db, exchange, monkeypatch
):
    fill()
    (unknown,) = db.execute("select detail -> 'unknown_markets' from coverage_gaps").fetchone()
    removed_from_exchange()
    listed, asked = exchange.listed, []
    monkeypatch.setattr(exchange, "listed", lambda markets, *span: asked.append(set(markets)) or listed(markets, *span))
    fill()

    assert asked
    assert all(markets == set(unknown) for markets in asked)


def test_markets_that_closed_long_ago_are_filled_in_like_any_other(gap, fill, traded, held, db):
    db.execute(
        "update markets set status = 'CLOSED', closed_at = now() - interval '30 days', updated_at = '2020-01-01'"
    )

    fill()

    assert held() == alike(traded)
    assert gap()[0] == "filled"


def test_a_counted_day_with_unknown_trades_closes_no_gap(gap, market_removed, removed_from_exchange, db, exchange):
    told = days.reconcile_trades(db, exchange, DAY)

    assert told.unknown == market_removed
    assert gap()[0] == "fillable"


def test_a_day_that_is_counted_asks_for_the_markets_it_lacks(gap, market_removed, db, exchange, traded, held):
    told = days.reconcile_trades(db, exchange, DAY)

    assert (told.unknown, told.agrees) == (0, True)
    assert held() == alike(traded)
