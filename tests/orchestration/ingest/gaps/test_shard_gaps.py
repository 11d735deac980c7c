"""Gaps of a shard: whom they concern, who closes and who fills them."""

import datetime as dt

import pytest

from orchestration.feeds.shards import WHOLE, Shard
from orchestration.ingest.gaps.losses import Loss, Losses
from sql.queries import books, coverage
from sql.queries import feed as queries
from tests.factories import add_market, insert
from tests.orchestration.ingest.builders import save

BEGAN = dt.datetime(2026, 11, 3, 12, tzinfo=dt.UTC)
SPAN = {"from_ts": BEGAN, "to_ts": BEGAN + dt.timedelta(minutes=1)}


@pytest.fixture
def markets(conn):
    """Return a market of each of two shards."""
    return [add_market(conn, market_id=f"0x{number:064x}") for number in (2, 3)]


OF = {"name": "followed"}


def gap(conn, market=None, shard=WHOLE, kind="trades", **columns):
    of = {} if shard == WHOLE else shard.columns()
    key = market["market_key"] if market else None
    row = insert(conn, "coverage_gaps", {"kind": kind, "market_key": key, "cause": "x", **SPAN, **of, **columns})
    return row["gap_id"]


def test_a_loss_of_everything_in_a_shard_is_one_of_its_markets_only(conn, markets):
    losses = Losses("run", Shard(2, 2))
    losses.add(Loss("closed", 1_000, None, None, to_ms=2_000))
    losses.add(Loss("closed", 1_000, frozenset(), frozenset({7}), to_ms=2_000))
    save(losses, conn)

    rows = conn.execute("select distinct market_key, shard, shards from coverage_gaps order by 1").fetchall()
    assert rows == [(7, None, None), (None, 2, 2)]


def test_a_gap_of_a_shard_concerns_its_markets_and_no_others(conn, markets):
    gap(conn, shard=Shard(2, 2), kind="books")
    gap(conn, kind="books", from_ts=BEGAN - dt.timedelta(hours=1))
    span = {"since": BEGAN, "until": BEGAN + dt.timedelta(hours=1)}
    page = {"kind": None, "status": None, "since": BEGAN - dt.timedelta(days=1), "until": BEGAN + dt.timedelta(days=1)}
    page |= {"recorded": ["polymarket"], "before_ts": BEGAN + dt.timedelta(days=9), "before_place": 1 << 60, "limit": 9}
    conn.execute("update markets set created_at = %s", [BEGAN - dt.timedelta(days=1)])

    found = {
        market["market_id"][-1]: (
            len(list(books.gaps(conn, market_key=market["market_key"], **span))),
            len(list(coverage.gaps_of_market(conn, market_key=market["market_key"], **page))),
        )
        for market in markets
    }
    assert found == {"2": (1, 1), "3": (2, 2)}


def fills(conn, shard, settled_ms=None):
    rows = queries.trade_gaps_to_fill(
        conn, settle_s=1.0, settled_ms=settled_ms, exchange="polymarket", **shard.columns()
    )
    return {row[0] for row in rows}


def test_each_gap_is_filled_by_exactly_one_shard(conn, markets):
    of_markets = [gap(conn, market) for market in markets]
    of_shards = [gap(conn, shard=shard) for shard in Shard.all(2)]
    others = {gap(conn), gap(conn, shard=Shard(2, 3))}
    settled_ms = int(SPAN["to_ts"].timestamp() * 1000) + 4_000

    first, second = (fills(conn, shard) for shard in Shard.all(2))
    assert (first, second) == ({of_markets[0], of_shards[0]}, {of_markets[1], of_shards[1]})
    assert fills(conn, Shard(1, 2), settled_ms) == first | others, "all have committed what lies in them"
    assert fills(conn, Shard(1, 2), settled_ms - 2_000) == first
    assert fills(conn, WHOLE) == {*of_markets, *of_shards, *others}
    finer = gap(conn, shard=Shard(4, 6))
    assert fills(conn, Shard(2, 2)) == second | {finer}, "all of its markets are in this one"


def close_abandoned(conn, shard, **ends):
    queries.close_abandoned_gaps(conn, exchange="polymarket", **ends, **shard.columns())


def test_no_shard_closes_what_another_may_still_miss(conn, markets):
    mine, theirs = (gap(conn, shard=shard, to_ts=None) for shard in Shard.all(2))
    former = gap(conn, to_ts=None)
    named = [gap(conn, market, to_ts=None) for market in markets]
    later_ms = int(BEGAN.timestamp() * 1000) + 60_000

    def still_open():
        return {row[0] for row in conn.execute("select gap_id from coverage_gaps where to_ts is null")}

    close_abandoned(conn, Shard(1, 2), to_ms=later_ms, settled_ms=None)
    assert still_open() == {theirs, former, named[1]}
    close_abandoned(conn, Shard(1, 2), to_ms=later_ms, settled_ms=later_ms - 1_000)
    assert still_open() == {theirs, named[1]}
    close_abandoned(conn, Shard(2, 2), to_ms=later_ms, settled_ms=None)
    assert still_open() == set()
    ends = dict(conn.execute("select gap_id, as_ms(to_ts) from coverage_gaps").fetchall())
    assert (ends[mine], ends[former]) == (later_ms, later_ms - 1_000)


def test_a_trade_that_lies_in_another_shards_gap_was_missing_in_no_known_gap(conn, markets):
    gap(conn, shard=Shard(2, 2))
    instant = BEGAN + dt.timedelta(seconds=30)
    keys = [market["market_key"] for market in markets]
    named = {"exchange": "polymarket", "cause": "missed", "filled_by": "x"}
    coverage.note_missed(conn, market_keys=keys, instants=[instant] * 2, **named)

    noted = conn.execute("select market_key from coverage_gaps where cause = 'missed'").fetchall()
    assert noted == [(keys[0],)]


def test_which_starts_were_seen_is_known_for_each_shard_and_the_least_for_another_number(conn):
    def seen(shard):
        return queries.starts_seen(conn, **OF, discovery="discovery", **shard.columns())[:2]

    one, two = Shard.all(2)
    assert seen(WHOLE) == (None, None)
    queries.note_seen(conn, **OF, market_key=10, change_id=5, **WHOLE.columns())
    assert seen(WHOLE) == seen(one) == seen(two) == (10, 5)
    queries.note_seen(conn, **OF, market_key=12, change_id=6, **one.columns())
    assert (seen(one), seen(two), seen(WHOLE)) == ((12, 6), (10, 5), (10, 5))
    queries.note_seen(conn, **OF, market_key=11, change_id=8, **two.columns())
    assert (seen(one), seen(two), seen(WHOLE), seen(Shard(3, 3))) == ((12, 6), (11, 8), (11, 6), (11, 6))


def test_a_start_noted_before_shards_were_known_counts_for_all(conn):
    conn.execute("""insert into settings (name, value) values ('followed', '{"market_key": 7, "change_id": 3}')""")

    assert queries.starts_seen(conn, **OF, discovery="discovery", **WHOLE.columns())[:2] == (7, 3)
    queries.note_seen(conn, **OF, market_key=9, change_id=4, **Shard(1, 2).columns())
    assert queries.starts_seen(conn, **OF, discovery="discovery", **Shard(2, 2).columns())[:2] == (7, 3)


def test_recording_began_when_each_shard_had_received_something(conn):
    def since():
        return conn.execute("select recorded_since()").fetchone()[0]

    def received(shard, minute):
        row = {"feed": shard.feed("polymarket"), "run_id": "r", "messages": 1, "rows": 1, "lag_counts": []}
        insert(conn, "feed_stats", {"ts": BEGAN + dt.timedelta(minutes=minute), **row})

    received(Shard(1, 2), 1)
    assert since() is None
    received(Shard(2, 2), 3)
    received(Shard(2, 2), 4)
    assert since() == BEGAN + dt.timedelta(minutes=3)
    received(WHOLE, 9)
    assert since() == BEGAN + dt.timedelta(minutes=3)
