import asyncio
import datetime as dt

import pytest

from orchestration.candles import activity, aggregates
from orchestration.feeds.lease import Lease
from orchestration.ingest.housekeeping import Housekeeping
from orchestration.ingest.normalizer import Tracker
from orchestration.ingest.sockets.subscriptions import Following
from tests.factories import add_market, add_trades
from upstream.polymarket.market_channel.socket import NewMarket


@pytest.fixture
def following():
    """Sockets that are never opened: there is nobody at this address."""
    loop = asyncio.new_event_loop()
    made = None

    async def make():
        return Following(
            "ws://127.0.0.1:9/", Tracker(), 4, heard=lambda *_: 0, opened=lambda _: None, lost=lambda *_: None
        )

    made = loop.run_until_complete(make())

    def do(call):
        async def run():
            return call(made)

        return loop.run_until_complete(run())

    do.of = made
    yield do
    loop.run_until_complete(made.stop())
    loop.close()


def rows(*markets, follow=True):
    return [
        (f"{market}-{outcome}", f"0x{market}", market, outcome, None, None, None, None, follow)
        for market in markets
        for outcome in (0, 1)
    ]


def announced(market):
    tokens = [f"{market}-0", f"{market}-1"]
    return NewMarket(
        f"0x{market}", 1, "1", "?", "", None, tokens, ["Yes", "No"], [], None, None, None, None, active=True
    )


def spread(following):
    return [sorted(listener.tokens) for listener in following.of.listeners]


def test_outcomes_of_one_market_share_a_socket_and_no_socket_gets_too_many(following):
    following(lambda it: it.take(rows(1, 2, 3), whole=True, fresh=False))

    assert spread(following) == [["1-0", "1-1", "2-0", "2-1"], ["3-0", "3-1"]]


def test_room_that_was_left_is_used_again(following):
    following(lambda it: it.take(rows(1, 2, 3), whole=True, fresh=False))
    following(lambda it: it.take([*rows(1, follow=False), *rows(4, 5)], whole=False, fresh=True))

    assert spread(following) == [["2-0", "2-1", "4-0", "4-1"], ["3-0", "3-1", "5-0", "5-1"]]
    assert "1-0" not in following.of.of_token


def test_a_whole_reading_leaves_what_it_does_not_name(following):
    following(lambda it: it.take(rows(1, 2), whole=True, fresh=False))
    following(lambda it: it.take(rows(2), whole=True, fresh=False))

    assert spread(following) == [["2-0", "2-1"]]


def test_announced_markets_are_listened_to_until_the_catalogue_knows_them(following):
    following(lambda it: it.take(rows(1), whole=True, fresh=False))
    following(lambda it: it.anticipate([announced(7), announced(7)]))
    following(lambda it: it.take(rows(1), whole=True, fresh=True))
    assert spread(following) == [["1-0", "1-1", "7-0", "7-1"]]

    following(lambda it: it.take(rows(7), whole=False, fresh=True))
    assert following.of.listeners[0].tokens.keys() == {"1-0", "1-1", "7-0", "7-1"}


def test_announced_markets_that_never_come_are_given_up(following, monkeypatch):
    monkeypatch.setattr("orchestration.ingest.sockets.subscriptions.ANTICIPATE_S", -1.0)
    following(lambda it: it.anticipate([announced(7)]))
    following(lambda it: it.take([], whole=False, fresh=True))

    assert spread(following) == [[]]


def test_the_volume_of_a_day_is_brought_up_to_date_between_two_looks_at_the_catalogue(following, conn, database_url):
    market, other = add_market(conn, "rain"), add_market(conn, "snow")
    conn.commit()
    tokens = [
        (token, row["market_id"], row["market_key"], outcome, None, None, None, 0, True)
        for row in (market, other)
        for outcome, token in enumerate(row["token_ids"])
    ]
    following(lambda made: made.take(tokens, whole=True, fresh=False))
    housekeeping = Housekeeping(Lease(database_url, "all", "run", 60.0), all_tokens_s=300.0)

    def told():
        volumes = housekeeping.volumes()
        following(lambda made: made.value(volumes))
        return [following.of._tracker.tracks[token].price().volume_24h_usd for token, *_ in tokens]

    def traded(row, size, now):
        add_trades(conn, row, [{"price": "0.5", "size": size, "ts": now}])
        aggregates.compute_stats(conn, now)
        activity.bring_up_to_date(conn, now)
        conn.commit()

    try:
        assert told() == [0, 0, 0, 0]
        now = dt.datetime.now(dt.UTC)
        traded(market, 100, now - dt.timedelta(seconds=60))
        assert told() == [50_000_000, 50_000_000, 0, 0]
        traded(other, 10, now)
        assert told() == [50_000_000, 50_000_000, 5_000_000, 5_000_000]
        assert housekeeping.volumes() == {}
    finally:
        housekeeping.close()
