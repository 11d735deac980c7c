import asyncio

import pytest

from orchestration.feeds.shards import WHOLE
from orchestration.ingest.gaps.from_data_api import CoverageGap
from orchestration.ingest.gaps.from_standby import StandbyGapFiller
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.storage.backlog import Backlog
from tests.orchestration.ingest.builders import NOW, book, token, trade

STAYS, ENDED, UNSYNCED, OTHER = token(1), token(2), token(3), token(4)


class RecordedFiller:
    """Keeps what would be written, and whether the gap is marked filled."""

    def __init__(self, gap):
        self.gap = gap
        self.markets, self.whole = [], None

    def gaps_of_others(self):
        return [self.gap]

    def from_ring(self, gap, received, to_ms, *, whole):
        self.markets, self.whole = [row.token.market_key for row in received.trades], whole


def fill(market_keys, *, listed_ms=None):
    """Fill a gap of some markets (None: all) as a standby that followed them in it, one of which has ended since.

    `listed_ms`: another's first book came within the gap, and when this run heard it listed (0: it did not).
    """
    normalizer, backlog = Normalizer(lambda: NOW / 1000), Backlog(1_000_000)
    filler = RecordedFiller(CoverageGap((1,), market_keys and frozenset(market_keys), WHOLE, NOW + 5_000, NOW + 6_000))

    async def in_filler(call, *args, **named):
        return call(*args, **named)

    for of in (STAYS, ENDED, UNSYNCED, OTHER):
        normalizer.follow(of)
        normalizer.apply([book(of, [], []), trade(of, ts_ms=NOW + 5_500)])
    backlog.add(normalizer.cut_batch())
    normalizer.invalidate([UNSYNCED.token_id])
    normalizer.unfollow(ENDED.token_id)
    for state in normalizer.states.values():
        state.complete_since_ms = state.complete_since_ms and 1
    if listed_ms is not None:
        state = normalizer.states[OTHER.token_id]
        state.listed_ms, state.complete_since_ms = listed_ms, normalizer.exchange.to_local_ms(NOW + 5_800)
    standby = StandbyGapFiller(normalizer, None, backlog, filler, in_filler)
    asyncio.run(standby.fill_on_takeover(NOW + 7_000))
    return filler.markets, filler.whole


def test_what_was_received_of_a_market_that_has_ended_since_is_written():
    markets, whole = fill(None)

    assert markets == [1, 2, 4]
    assert not whole, "one market's book is not in step"


@pytest.mark.parametrize(("market_keys", "whole"), [([1], True), ([1, 2], False), ([2], False), ([1, 3], False)])
def test_a_gap_of_named_markets_is_filled_only_if_all_of_them_are_still_followed(market_keys, whole):
    written, filled = fill(market_keys)

    assert written == [key for key in market_keys if key != UNSYNCED.market_key]
    assert filled is whole


@pytest.mark.parametrize(("after_ms", "whole"), [(5_000, True), (5_700, True), (6_001, True), (4_999, False)])
def test_a_gap_is_filled_though_a_market_was_listed_since_it_began_if_this_run_has_heard_that(after_ms, whole):
    assert fill([STAYS.market_key, OTHER.market_key], listed_ms=NOW + after_ms)[1] is whole


def test_a_gap_in_which_a_market_was_listed_is_not_filled_if_this_run_has_not_heard_that():
    assert not fill([STAYS.market_key, OTHER.market_key], listed_ms=0)[1]
