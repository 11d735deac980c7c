import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.feeds.shards import MAX_SHARDS, WHOLE, Shard, shard_of
from orchestration.ingest.progress import NOTHING, Progress
from sql.queries import feed as queries
from tests.factories import add_market

SHARDS = range(1, MAX_SHARDS + 1)
MARKETS = [
    *(f"0x{nth * 2_654_435_761:064x}" for nth in range(500)),
    "",
    "0x",
    "0xabcdef",
    "0x1234567\n",
    "0xABCDEF0",
    "ß" * 9,
]


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 64])
def test_python_and_sql_agree_on_the_shard_of_a_market(conn, shards):
    rows = conn.execute("select id, shard_of(id, %s) from unnest(%s::text[]) as id", [shards, MARKETS]).fetchall()

    assert dict(rows) == {market: shard_of(market, shards) for market in MARKETS}
    assert {shard for _, shard in rows} == set(range(1, shards + 1))


def test_python_and_sql_agree_on_the_name_of_a_shards_feed(conn):
    for shard in (WHOLE, Shard(2, 4), Shard(64, 64)):
        name = conn.execute("select feed_of('polymarket', %s, %s)", shard).fetchone()
        assert name == (shard.feed("polymarket"),)
    assert (WHOLE.feed("polymarket"), Shard(2, 4).feed("polymarket")) == ("polymarket", "polymarket/2of4")


def test_every_token_is_followed_by_exactly_one_shard(conn):
    keys = [add_market(conn)["market_key"] for _ in range(40)]
    every = {row[0] for row in queries.followed_tokens(conn, exchange="polymarket", **WHOLE.columns())}

    assert len(every) == 80
    for shards in (2, 3, 5):
        parts = [
            [row[0] for row in queries.followed_tokens(conn, exchange="polymarket", **shard.columns())]
            for shard in Shard.all(shards)
        ]
        later = [
            [row[0] for row in queries.tokens_of(conn, market_keys=keys, exchange="polymarket", **shard.columns())]
            for shard in Shard.all(shards)
        ]
        assert sorted(token for part in parts for token in part) == sorted(every)
        assert [set(part) for part in parts] == [set(part) for part in later]


@given(st.sampled_from(SHARDS), st.sampled_from(SHARDS), st.data())
def test_a_shard_covers_another_if_it_holds_all_of_its_markets(of, other_of, data):
    shard = Shard(data.draw(st.integers(1, of)), of)
    other = Shard(data.draw(st.integers(1, other_of)), other_of)
    theirs = [market for market in range(of * other_of) if market % other_of + 1 == other.number]

    assert shard.covers(other) == all(market % of + 1 == shard.number for market in theirs)


def test_where_two_shards_meet_is_a_shard_too():
    assert Shard(1, 2).meet(Shard(3, 3)) == Shard(3, 6)
    assert WHOLE.meet(Shard(3, 3)) == Shard(3, 3).meet(Shard(3, 3)) == Shard(3, 3)
    assert Shard(4, 4).meet(Shard(2, 2)) == Shard(4, 4)


def test_a_shard_is_read_as_it_is_given_and_as_it_is_written():
    assert Shard.parse("2/4") == Shard.parse("2 of 4") == Shard(2, 4)
    assert str(Shard(2, 4)) == "2 of 4"
    for wrong in ("0/4", "5/4", "1/65", "2", "a/b", ""):
        with pytest.raises(ValueError, match=r"."):
            Shard.parse(wrong)


def market(number):
    return f"0x{number:064x}"


def test_the_last_leader_that_held_a_market_says_how_far_it_is_committed():
    progress = Progress([(1, 1, 10, 100), (1, 2, 20, 250), (2, 2, 21, 240), (1, 1, 5, 999)])

    assert progress.of(market(0)) == ((20, 250), Shard(1, 2))
    assert progress.of(market(1)) == ((21, 240), Shard(2, 2))
    again = Progress([(1, 1, 30, 300), (1, 2, 20, 250), (2, 2, 21, 240)])
    assert again.of(market(0)) == again.of(market(1)) == ((30, 300), WHOLE)
    assert Progress([]).of(market(0)) == (NOTHING, WHOLE)


def test_a_ring_is_kept_from_what_the_last_leaders_have_committed():
    one, two = Shard(1, 2), Shard(2, 2)
    former = Progress([(1, 1, 10, 100)])
    assert former.least_ms(one) == former.least_ms(two) == 100
    current = Progress([(1, 1, 10, 100), (1, 2, 20, 250), (2, 2, 21, 240)])
    assert (current.least_ms(one), current.least_ms(two), current.least_ms(WHOLE)) == (250, 240, 240)
    half = Progress([(1, 1, 10, 100), (1, 2, 20, 250)])
    assert (half.least_ms(one), half.least_ms(two), half.least_ms(Shard(1, 3))) == (250, 0, 0)
    assert Progress([]).least_ms(one) == 0
