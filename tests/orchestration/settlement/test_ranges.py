"""Ranges backfilled and recounted."""

from __future__ import annotations

import json

import pytest

from orchestration.assets.settlement import progress_metadata
from orchestration.settlement.figures import SettlementFigures
from orchestration.settlement.ranges import BatchSizer
from orchestration.settlement.reading import Inconsistent
from sql.queries import settlement as queries
from tests.chain import events
from tests.orchestration.settlement import truth
from tests.orchestration.settlement.plain import Plain
from upstream.chain.wire import Heads
from upstream.transport.errors import Unavailable

FINAL = Heads(10**6, 10**6)


def test_a_range_is_filled_in_and_filled_in_again_nothing_changes(chain, db, ranges, match):
    chain.extend([[match(n % 4 + 1)] if n % 2 else [] for n in range(60)])

    said = [(p.done, p.blocks) for p in ranges().fill(0, 60, BatchSizer(40, 8))]
    again = list(ranges().fill(0, 60))

    assert said[-1] == (61, 61)
    assert len(said) > 2
    assert again == []
    assert truth.compare(db, chain) == {}


def test_only_the_holes_of_a_range_are_asked_for(chain, db, ranges, match):
    chain.extend([[match(1)]] * 30)
    filling = ranges()
    list(filling.fill(5, 9))
    list(filling.fill(20, 22))
    asked = []
    source = Plain(chain)
    source.omit = lambda log: asked.append(int(log.block_number, 16))

    list(ranges(source).fill(0, 30))

    assert not set(asked) & {*range(5, 10), *range(20, 23)}
    assert truth.compare(db, chain) == {}


def test_history_is_kept_and_not_told(chain, db, ranges, match):
    chain.extend([[match(1)]] * 5)

    list(ranges(publish_within_s=3600).fill(0, 5))

    assert truth.compare(db, chain, told=False) == {}
    assert truth.net(db) == {}


def test_a_moody_chain_is_asked_again_and_a_dead_one_given_up(chain, db, ranges, match):
    chain.extend([[match(1)]] * 20)

    class Moody(Plain):
        faults = 0
        most = 5

        def logs(self, *asked):
            if self.faults < self.most:
                self.faults += 1
                raise (Unavailable if self.faults % 2 else Inconsistent)("not now")
            return super().logs(*asked)

    moody, dead = Moody(chain), Moody(chain)
    dead.most = 10**9
    with pytest.raises((Unavailable, Inconsistent)):
        list(ranges(dead).fill(0, 20))
    last = list(ranges(moody).fill(0, 20))[-1]

    assert last.retries == 5
    assert truth.compare(db, chain) == {}


def test_two_who_fill_in_the_same_range_write_it_once(chain, db, ranges, match):
    chain.extend([[match(n % 4 + 1)] for n in range(40)])
    one, other = (ranges().fill(0, 40, BatchSizer(10, 4)) for _ in range(2))

    for progress in zip(one, other, strict=False):
        both = progress
    rest = list(ranges().fill(0, 40))[-1:]

    assert truth.compare(db, chain) == {}
    assert sum(each.written.counts["fills"] for each in (*both, *rest)) == len(truth.settlements(db))


def test_what_lies_between_two_ranges_joins_them(chain, db, ranges):
    chain.mine(30)
    filling = ranges()

    for low, high in ((0, 4), (10, 14), (5, 7), (20, 30), (8, 9), (15, 19)):
        list(filling.fill(low, high))

    assert db.execute("select from_block, to_block from chain_ranges").fetchall() == [(0, 30)]


def test_a_log_that_is_found_later_changes_what_the_whole_match_counts(chain, db, ranges, match):
    """Without its taker's row a maker's counts; with it, it does not: both are published."""
    chain.emit(match(1))
    chain.emit(match(2))
    source = Plain(chain)
    source.omit = lambda log: log.block_number == "0x1" and log.log_index == "0x1"
    list(ranges(source).fill(0, 2))
    before = [row[-2:] for row in truth.settlements(db)]

    checked = ranges().check(0, 2, FINAL)

    assert before == [(True, -1), (False, 1), (True, 1)]
    assert (checked.missing, checked.withheld) == (1, 0)
    assert truth.compare(db, chain) == {}
    assert ranges().check(0, 2, FINAL).missing == 0
    kinds = db.execute("select kind, subject, detail from data_incidents").fetchall()
    assert kinds == [("logs_missing", "block 1", {"found": 3, "had": 2})]


def test_a_block_of_another_branch_that_became_final_is_replaced(chain, db, ranges, match):
    chain.extend([[match(1)]] * 6)
    list(ranges().fill(0, 6))
    chain.reorg(2, [[match(5)], [match(6), match(7)]])

    checked = ranges().check(0, 6, FINAL)

    assert checked.replaced == 2
    assert truth.compare(db, chain) == {}


def test_logs_nobody_understands_are_kept_some_and_counted_all(chain, db, ranges, follower, until_done):
    strange = [events.raw("exchange_v3", [bytes([7]) * 32], b"\1" * 32)] * 15
    chain.emit(strange, [events.raw("exchange_v2", [bytes([9]) * 32])])

    until_done(follower())

    rows = db.execute("select source, reason, payload from quarantine order by quarantine_id").fetchall()
    assert [row[0] for row in rows] == ["chain"] * 11
    assert {"Exchange V3" in row[1] for row in rows[:10]} == {True}
    assert json.loads(rows[0][2])["data"] == "0x" + "01" * 32
    assert db.execute("select detail ->> 'refused' from chain_heads").fetchone() == ("16",)


def test_what_is_odd_is_kept_counted_once_and_shown(chain, db, ranges, follower):
    dust = events.fill_v2(shares=9_999, usd=5_000)
    strange = events.raw("exchange_v2", [bytes([9]) * 32])
    plain = events.match_v2([events.fill_v2()])
    chain.emit(plain, [events.fill_v2(shares=0), dust, events.fill_v2(usd=10_000_001), strange])
    odd = {"refused": 1, "zero_amounts": 1, "dust": 1, "impossible_prices": 1, "maker_rows_without_match": 3}
    nothing = dict.fromkeys((*odd, "unattributed", "foreign_collateral", "fee_refunds"), 0)
    figures = SettlementFigures()

    def shown(told):
        return {name: told[name] for name in nothing}

    def stage():
        figures.beat(db, None)
        return shown(db.execute("select detail from stage_clocks where stage = 'settlement'").fetchone()[0])

    figures.record_step(follower().step())
    assert len(truth.settlements(db)) == 5
    assert shown(figures.totals()) == stage() == nothing | odd
    assert figures.observation()["dust_since"] == 1

    db.execute("update chain_blocks set logs = logs - 1 where number = 1")
    assert ranges().check(0, 1, FINAL).missing == 1
    assert stage() == nothing | odd, "written anew, and not counted anew"

    chain.emit([dust])
    (progress,) = ranges().fill(0, 2)
    more = {"dust": 1, "maker_rows_without_match": 1}
    assert shown(progress_metadata(progress, 1.0)) == nothing | more
    assert stage() == nothing | odd | {name: odd[name] + more[name] for name in more}


def test_a_cut_takes_the_logs_of_the_blocks_that_its_range_loses_and_no_others(conn):
    queries.add_range(conn, from_block=0, to_block=100, logs=30)
    queries.add_range(conn, from_block=120, to_block=163, logs=122)

    queries.cut_ranges(conn, from_block=90, numbers=[95, 130], logs=[5, 122])

    assert conn.execute("select from_block, to_block, logs from chain_ranges").fetchall() == [(0, 89, 25)]
