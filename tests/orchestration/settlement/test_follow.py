"""The head of a real chain, followed through reorganisations: the tables equal an independent reading."""

from __future__ import annotations

import pytest

from orchestration.settlement.figures import SettlementFigures
from orchestration.settlement.follow import OtherChain
from tests.chain import events
from tests.orchestration.settlement import truth
from tests.orchestration.settlement.plain import Plain


def test_what_a_chain_says_is_in_the_tables(chain, db, follower, until_done, match):
    chain.emit(match(1), match(2))
    chain.mine(2)
    chain.emit(events.fill_v1(), [events.split(events.wallet(3), events.word(5), 77)])

    step = until_done(follower())

    assert (step.indexed, step.behind) == (4, 0)
    assert truth.compare(db, chain, followed_from=0) == {}


@pytest.mark.parametrize("depth", [1, 2, 3, 7, 16, 31, 63, 64])
def test_a_reorganisation_leaves_no_trace_but_its_revocations(chain, db, follower, until_done, match, depth):
    chain.extend([[match(n % 5 + 1)] if n % 3 else [] for n in range(70)])
    following = follower()
    until_done(following)

    chain.reorg(depth, [[match(9), match(4)] for _ in range(depth)])
    step = following.step()
    until_done(following)

    assert (step.depth, step.revoked is not None) == (depth, True)
    assert truth.compare(db, chain, followed_from=0) == {}


def test_a_branch_that_comes_back_is_indexed_again(chain, db, follower, until_done, match):
    chain.extend([[match(1)]] * 5)
    following = follower()
    until_done(following)
    before = chain.snapshot()
    chain.emit(match(2))
    until_done(following)

    chain.revert(before)
    chain.extend([[match(3)], [match(4)]])
    until_done(following)

    assert truth.compare(db, chain, followed_from=0) == {}


def test_a_shorter_chain_is_waited_for_and_then_believed(chain, db, follower, until_done, match):
    chain.extend([[match(1)]] * 5)
    clock = [0.0]
    following = follower(patience_s=30.0, clock=lambda: clock[0])
    until_done(following)

    chain.reorg(3, [[match(2)]])
    waiting = following.step()
    clock[0] = 31.0
    until_done(following)

    assert (waiting.revoked, waiting.indexed) == (None, 5)
    assert truth.compare(db, chain, followed_from=0) == {}


def test_what_is_far_behind_begins_with_the_newest_and_fills_the_rest(chain, db, follower, until_done, match):
    chain.extend([[match(n % 4 + 1)] for n in range(120)])
    following = follower(Plain(chain, finality=10), jump=50)

    first = following.step()
    newest = following.step()
    until_done(following)

    assert (first.indexed, newest.indexed) == (110, 120)
    assert truth.compare(db, chain, followed_from=111) == {}


def test_new_blocks_are_published_however_far_the_host_s_clock_is_ahead(chain, db, follower, until_done, match):
    chain.extend([[match(1)]] * 3)

    until_done(follower(publish_within_s=3600))  # of the chain's time, which is long ago

    assert truth.compare(db, chain, followed_from=0) == {}


def test_of_a_long_outage_the_last_hour_is_published_and_the_rest_counted(chain, db, follower, until_done, match):
    chain.extend([[match(1)]] * 5)
    until_done(follower())
    chain.extend([[match(2)]] * 115)

    until_done(follower(Plain(chain, finality=10), publish_within_s=100, jump=50))  # two seconds a block

    assert truth.compare(db, chain, followed_from=0, told=False) == {}
    published = {number for number, _ in truth.net(db)}
    assert published == {*range(1, 6), *range(71, 121)}
    unpublished = sum(row[0] not in published for row in truth.settlements(db))
    SettlementFigures().beat(db, None)
    assert db.execute("select detail -> 'unpublished' from stage_clocks where stage = 'settlement'").fetchone() == (
        unpublished,
    )


def test_the_second_start_goes_on_where_the_first_one_ended(chain, db, follower, until_done, match):
    chain.extend([[match(1)]] * 4)
    until_done(follower(start=None))
    chain.extend([[match(2)]] * 4)
    until_done(follower(start=None))

    assert db.execute("select from_block, to_block from chain_ranges").fetchall() == [(4, 8)]
    assert {row[0] for row in truth.settlements(db)} == {4, 5, 6, 7, 8}


def test_another_chain_than_the_stored_one_is_refused(chain, db, follower, until_done, match):
    class Other(Plain):
        wrong = False

        def blocks(self, from_, to):
            told = super().blocks(from_, to)
            if not self.wrong:
                return told
            return [b._replace(hash=b.hash[::-1], parent=b.parent[::-1]) for b in told]

    chain.extend([[match(1)]] * 80)
    source = Other(chain)
    following = follower(source)
    until_done(following)
    rows = truth.settlements(db)

    source.wrong = True
    with pytest.raises(OtherChain, match="was final"):
        following.step()

    assert truth.settlements(db) == rows
    assert db.execute("select kind, mended_at from data_incidents").fetchall() == [("finalized_mismatch", None)]
    source.wrong = False
    following.step()
    assert db.execute("select mended_at is not null from data_incidents").fetchall() == [(True,)]


def test_logs_that_an_endpoint_left_out_are_found_and_told(chain, db, follower, until_done, match):
    chain.extend([[match(n % 4 + 1), match(n % 3 + 1)] for n in range(40)])
    source = Plain(chain, finality=4)
    source.omit = lambda log: int(log.log_index, 16) % 3 == 1
    following = follower(source, check_blocks=16)
    while following.step().behind:
        pass
    assert truth.compare(db, chain, followed_from=0) != {}

    source.omit = lambda _: False
    until_done(following)

    incidents = db.execute("select distinct kind, mended_at is not null from data_incidents").fetchall()
    assert incidents == [("logs_missing", True)]
    checked = db.execute("select to_block from chain_checks").fetchone()[0]
    different = truth.compare(db, chain, followed_from=0)
    assert checked >= 31
    # Of the last ones too few are final to be recounted.
    assert all(
        row[0] > checked
        for kind in ("settlements", "ledger_entries")
        for row in different.get(kind, {}).get("missing", [])
    )


def test_what_was_counted_right_stays_when_an_endpoint_withholds_it_later(chain, db, follower, until_done, match):
    chain.extend([[match(n % 4 + 1)] for n in range(40)])
    source = Plain(chain, finality=2)
    following = follower(source)
    while following.step().behind:
        pass

    source.omit = lambda log: int(log.block_number, 16) % 5 == 0
    until_done(following)

    assert truth.compare(db, chain, followed_from=0) == {}
    assert {kind for (kind,) in db.execute("select kind from data_incidents")} == {"logs_withheld"}
