"""A gap is filled from the exchange's list only if it had been over for long enough when the feed looked."""

from __future__ import annotations

import datetime as dt
from time import monotonic

import pytest

from orchestration.ingest.gaps.from_data_api import GapFiller
from tests.factories import insert
from tests.orchestration.coverage.conftest import MINUTES, NOON

TO = NOON + dt.timedelta(minutes=MINUTES)


@pytest.mark.parametrize(("asked_ago_s", "fills"), [(0, True), (1_200, False)])
def test_the_time_until_the_database_answers_does_not_make_a_gap_older(db, exchange, traded, asked_ago_s, fills):
    insert(db, "coverage_gaps", {"kind": "trades", "cause": "asleep", "from_ts": NOON, "to_ts": TO})
    (age_s,) = db.execute("select date_part('epoch', now() - %s::timestamptz)", [TO]).fetchone()
    filler = GapFiller(db.info.dsn, "polymarket", "me", exchange)

    added = filler.from_data_api(age_s - 600, monotonic() - asked_ago_s)

    filler.close()
    assert added == (len(traded) if fills else 0)
    assert db.execute("select filled_at is not null from coverage_gaps").fetchone() == (fills,)


@pytest.mark.parametrize(("ended_ago_ms", "fills"), [(1, True), (0, False)])
def test_a_gap_that_ended_after_what_is_committed_is_not_filled_yet(db, exchange, traded, ended_ago_ms, fills):
    insert(db, "coverage_gaps", {"kind": "trades", "cause": "asleep", "from_ts": NOON, "to_ts": TO})
    filler = GapFiller(db.info.dsn, "polymarket", "me", exchange)

    added = filler.from_data_api(1.0, monotonic(), int(TO.timestamp() * 1000) + ended_ago_ms)

    filler.close()
    assert added == (len(traded) if fills else 0)
    assert db.execute("select filled_at is not null from coverage_gaps").fetchone() == (fills,)
