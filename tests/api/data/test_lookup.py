from __future__ import annotations

import pytest

from api.data.lookup import CACHE_TTL_S, MarketLookup
from api.errors import Problem
from tests.api.conftest import OneConnection


class CountingConnection(OneConnection):
    """Counts the reads."""

    reads = 0

    def read(self, work):
        self.reads += 1
        return super().read(work)


def test_a_market_is_read_once_for_its_time_and_then_again(conn, add_market):
    market, now = add_market("rain"), 0.0
    pool = CountingConnection(conn)
    lookup = MarketLookup(pool, clock=lambda: now)

    assert {lookup.of("rain").market_id for _ in range(3)} == {market["market_id"]}
    assert pool.reads == 1
    now = CACHE_TTL_S
    assert lookup.of("rain").market_id == market["market_id"]
    assert pool.reads == 2


def test_a_market_that_is_not_there_is_asked_for_each_time(conn, add_market):
    lookup = MarketLookup(OneConnection(conn))
    for name in ("rain", "ra\0in"):
        with pytest.raises(Problem) as refusal:
            lookup.of(name)
        assert refusal.value.problem == "not_found"

    market = add_market("rain")

    assert lookup.of("rain").market_id == market["market_id"]
