"""Markets that the chain resolves."""

from __future__ import annotations

import datetime as dt
import json

import pytest

from orchestration.markets import catalogue
from orchestration.settlement import judging, resolutions
from tests import factories, stream_rows
from tests.chain import events
from tests.orchestration.settlement.plain import Plain

CONDITION = events.word(77)


@pytest.fixture
def market(db):
    def make(**columns):
        return factories.add_market(db, "rain", market_id="0x" + CONDITION.hex(), **columns)

    return make


def state(db):
    return db.execute("select status, outcome_prices, winning_outcome, resolved_at from markets").fetchone()


@pytest.mark.parametrize(
    ("payouts", "prices", "winner"),
    [((1, 0), [1_000_000, 0], 0), ((0, 1), [0, 1_000_000], 1), ((1, 1), [500_000, 500_000], None)],
)
def test_a_market_is_resolved_by_what_the_oracle_reported(
    chain, db, follower, until_done, market, payouts, prices, winner
):
    market(outcome_prices=[480_000, 520_000])
    block = chain.emit(events.resolution(CONDITION, payouts))
    chain.mine(3)
    until_done(follower(Plain(chain, finality=2)))

    assert resolutions.apply(db) == 1
    assert resolutions.apply(db) == 0

    assert state(db) == ("RESOLVED", prices, winner, dt.datetime.fromtimestamp(block.ts_s, dt.UTC))
    assert db.execute("select from_status, to_status, cause from market_status_changes").fetchall() == [
        ("ACTIVE", "RESOLVED", "chain_resolution")
    ]
    told = json.loads(stream_rows.rows(db, "market")[0].message)
    assert (told["data"]["status"], told["data"]["cause"]) == ("RESOLVED", "chain_resolution")
    assert told["data"]["outcome_prices"] == [price / 1e6 for price in prices]


def test_what_is_not_final_resolves_nothing(chain, db, follower, until_done, market):
    market()
    chain.mine(5)
    chain.emit(events.resolution(CONDITION, (1, 0)))
    following = follower(Plain(chain, finality=2))
    until_done(following)

    early = resolutions.apply(db)
    chain.reorg(1, [[events.resolution(CONDITION, (0, 1))]])
    chain.mine(2)
    until_done(following)
    late = resolutions.apply(db)

    assert (early, late) == (0, 1)
    assert state(db)[:3] == ("RESOLVED", [0, 1_000_000], 1)


def test_a_market_that_the_catalogue_met_later_is_resolved_all_the_same(chain, db, follower, until_done, market):
    chain.emit(events.resolution(CONDITION, (1, 0)))
    until_done(follower(Plain(chain, finality=0)))
    resolutions.apply(db)
    market(status="CLOSED")

    assert resolutions.catch_up(db) == 1
    assert resolutions.catch_up(db) == 0
    assert state(db)[0] == "RESOLVED"


def test_exchange_and_chain_that_disagree_are_an_incident_until_they_agree(chain, db, follower, until_done, market):
    row = market(status="RESOLVED", outcome_prices=[0, 1_000_000], winning_outcome=1)
    chain.emit(events.resolution(CONDITION, (1, 0)))
    until_done(follower(Plain(chain, finality=0)))

    resolutions.apply(db)

    assert state(db)[1] == [0, 1_000_000]
    kind, subject, detail = db.execute("select kind, subject, detail from data_incidents").fetchone()
    assert (kind, subject) == ("resolution_disagrees", row["market_id"])
    assert (detail["payouts"], detail["exchange"]) == ([1, 0], [0.0, 1.0])
    judged = judging.no_incidents(db)
    assert (judged.holds, judged.severity) == (False, "error")
    assert row["market_id"] in judged.figures["newest"]

    catalogue.store(db, [{"market_id": row["market_id"], "outcome_prices": [1_000_000, 0]}], cause="exchange")
    block_time = db.execute("select max(ts) from chain_blocks").fetchone()[0]

    assert resolutions.compare(db, block_time) == 0
    assert db.execute("select mended_at is not null from data_incidents").fetchall() == [(True,)]


def test_an_exchange_that_changes_its_mind_is_noticed(chain, db, follower, until_done, market):
    row = market()
    chain.emit(events.resolution(CONDITION, (1, 0)))
    until_done(follower(Plain(chain, finality=0)))
    resolutions.apply(db)
    block_time = db.execute("select max(ts) from chain_blocks").fetchone()[0]
    agreed = resolutions.compare(db, block_time)

    catalogue.store(db, [{"market_id": row["market_id"], "outcome_prices": [500_000, 500_000]}], cause="exchange")

    assert (agreed, resolutions.compare(db, block_time)) == (0, 1)


def test_payouts_of_another_number_of_outcomes_resolve_nothing_and_are_an_incident(
    chain, db, follower, until_done, market
):
    market()
    chain.emit(events.resolution(CONDITION, (1, 0, 0)))
    until_done(follower(Plain(chain, finality=0)))

    assert resolutions.apply(db) == 0
    assert state(db)[0] == "ACTIVE"
    assert db.execute("select kind from data_incidents").fetchall() == [("resolution_disagrees",)]
