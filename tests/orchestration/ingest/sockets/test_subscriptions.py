import asyncio
import datetime as dt
import re
from types import SimpleNamespace

import psycopg
import pytest

from orchestration.candles import activity, aggregates
from orchestration.feeds.lease import FeedLease
from orchestration.ingest.housekeeping import Housekeeping
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.sockets.subscriptions import MIN_ENDING_S, QUIET_S, Catalogue, Subscriptions
from orchestration.ingest.storage.rows import Token
from sql.queries import feed as queries
from tests.factories import add_market, add_trades, insert
from tests.orchestration.ingest.builders import NO_CALLBACKS, UNREACHABLE
from upstream.polymarket.market_channel.socket import NewMarket


def time_out(*_, **__):
    raise psycopg.errors.QueryCanceled


@pytest.fixture
def subscriptions():
    """Run calls on subscriptions whose sockets never open: nothing listens at this address."""
    loop = asyncio.new_event_loop()
    made, normalizer = None, Normalizer()

    async def make():
        return Subscriptions(UNREACHABLE, normalizer, 4, **NO_CALLBACKS | {"on_lost": lambda *_: None})

    made = loop.run_until_complete(make())

    def do(call):
        async def run():
            return call(made)

        return loop.run_until_complete(run())

    do.of, do.normalizer = made, normalizer
    yield do
    loop.run_until_complete(made.stop())
    loop.close()


def rows(*markets, follow=True):
    return [
        (f"{market}-{outcome}", f"0x{market}", market, outcome, None, None, None, None, follow)
        for market in markets
        for outcome in (0, 1)
    ]


def new_market(market):
    tokens = [f"{market}-0", f"{market}-1"]
    return NewMarket(
        f"0x{market}", 1, "1", "?", "", None, tokens, ["Yes", "No"], [], None, None, None, None, active=True
    )


def tokens_by_socket(subscriptions):
    return [sorted(listener.tokens) for listener in subscriptions.of.listeners]


def test_outcomes_of_one_market_share_a_socket_and_no_socket_gets_too_many(subscriptions):
    subscriptions(lambda it: it.apply(rows(1, 2, 3), whole=True, fresh=False))

    assert tokens_by_socket(subscriptions) == [["1-0", "1-1", "2-0", "2-1"], ["3-0", "3-1"]]


@pytest.fixture
def at_once(monkeypatch):
    """Markets that have ended are not followed any longer."""
    for name in ("MIN_ENDING_S", "QUIET_S"):
        monkeypatch.setattr(f"orchestration.ingest.sockets.subscriptions.{name}", 0.0)


@pytest.mark.usefixtures("at_once")
def test_room_that_was_left_is_used_again(subscriptions):
    subscriptions(lambda it: it.apply(rows(1, 2, 3), whole=True, fresh=False))
    subscriptions(lambda it: it.apply([*rows(1, follow=False), *rows(4, 5)], whole=False, fresh=True))

    assert tokens_by_socket(subscriptions) == [["2-0", "2-1", "4-0", "4-1"], ["3-0", "3-1", "5-0", "5-1"]]
    assert "1-0" not in subscriptions.of.of_token


@pytest.mark.usefixtures("at_once")
def test_a_whole_reading_leaves_what_it_does_not_name(subscriptions):
    subscriptions(lambda it: it.apply(rows(1, 2), whole=True, fresh=False))
    subscriptions(lambda it: it.apply(rows(2), whole=True, fresh=False))

    assert tokens_by_socket(subscriptions) == [["2-0", "2-1"]]


@pytest.mark.usefixtures("at_once")
def test_a_whole_reading_may_be_added_in_parts(subscriptions):
    subscriptions(lambda it: it.apply(rows(1, 2, 3), whole=True, fresh=False))
    listed = rows(2, 3, 4)

    begun = [subscriptions(lambda it, some=some: it.add(some, fresh=False)) for some in (listed[:3], listed[3:])]
    assert tokens_by_socket(subscriptions) == [["1-0", "1-1", "2-0", "2-1"], ["3-0", "3-1", "4-0", "4-1"]]
    subscriptions(lambda it: it.complete({token_id for token_id, *_ in listed}))

    assert begun == [set(), {4}]
    assert tokens_by_socket(subscriptions) == [["2-0", "2-1"], ["3-0", "3-1", "4-0", "4-1"]]


def test_a_market_that_is_cut_by_the_parts_of_a_reading_shares_a_socket_although_it_is_full(subscriptions):
    listed = [*rows(1), *rows(9)[:1], *rows(2, 3)]

    for some in (listed[:4], listed[4:]):
        subscriptions(lambda it, some=some: it.add(some, fresh=False))
    subscriptions(lambda it: it.complete({token_id for token_id, *_ in listed}))

    assert tokens_by_socket(subscriptions) == [["1-0", "1-1", "2-0", "2-1", "9-0"], ["3-0", "3-1"]]


def test_tokens_to_follow_are_read_market_by_market(conn):
    markets = [add_market(conn, outcomes=[])["market_key"] for _ in range(3)]
    for nth, market_key in enumerate([*markets, *reversed(markets)]):
        insert(conn, "tokens", {"token_id": str(nth), "market_key": market_key, "outcome": nth // 3})
    conn.execute("update markets set volume_usd = 1 where market_key = %s", [markets[0]])  # stored last now
    catalogue = Catalogue()

    every = [row[2] for row in catalogue.all(conn)]
    catalogue._cursor = (0, 0)
    changed = [row[2] for row in catalogue.changes(conn)]

    assert every == changed == sorted([*markets, *markets])


@pytest.mark.parametrize("name", ["changed_markets", "followed_markets", "tokens_of"])
def test_changes_of_the_catalogue_are_read_without_looking_at_every_market(conn, name):
    conn.execute("""
        insert into markets (market_id, slug, question, status, token_ids, outcomes, created_at)
        select '0x' || lpad(to_hex(n), 64, '0'), 'market-' || n, 'Rain?', 'ACTIVE', array[n || '0', n || '1'],
            array['Yes', 'No'], now()
        from generate_series(1, 3000) as n
    """)
    conn.execute("""
        insert into tokens (token_id, market_key, outcome)
        select unnest(token_ids), market_key, generate_subscripts(token_ids, 1) - 1 from markets
    """)
    conn.execute("analyze markets, tokens")
    newest = conn.execute("select max(market_key) from markets").fetchone()[0]
    given = {"market_key": newest - 2, "change_id": 0, "token_ids": ["10", "11"], "shard": 1, "shards": 1}
    given |= {"exchange": "polymarket", "market_keys": [newest - 1, newest], "first_key": newest, "last_key": newest}

    plan = conn.execute(f"explain (costs off) {getattr(queries, name).sql}", given).fetchall()

    assert not re.search(r"Seq Scan on (markets|tokens)", "\n".join(row[0] for row in plan))


def test_tokens_that_messages_name_are_read_alone(conn, monkeypatch):
    known, ended = add_market(conn), add_market(conn, status="CLOSED")
    tokens = dict(conn.execute("select token_id, market_key from tokens").fetchall())
    lease = SimpleNamespace(conn=conn)
    housekeeping = Housekeeping(lease, "polymarket", compare_s=300.0)
    read_whole = []
    monkeypatch.setattr(Catalogue, "all", lambda *_: read_whole.append(True) or [])

    assert housekeeping.tokens({}) == ([], True)
    housekeeping._catalogue._cursor = queries.catalogue_cursor(conn)
    rows, whole = housekeeping.tokens({}, [*tokens, "of nothing"])

    assert (whole, read_whole) == (False, [True])
    assert {row[0]: (row[2], row[-1]) for row in rows} == {
        token_id: (market_key, market_key == known["market_key"]) for token_id, market_key in tokens.items()
    }
    assert ended["market_key"] in tokens.values()
    assert housekeeping.tokens({}) == ([], False)


def test_what_is_followed_is_compared_with_the_catalogue_and_only_what_differs_is_read(conn):
    right, closed, paused, new, shorter = (add_market(conn) for _ in range(5))
    followed = states_of(right, closed, paused, shorter)
    del followed[shorter["token_ids"][1]]
    housekeeping = Housekeeping(SimpleNamespace(conn=conn), "polymarket", compare_s=0.0)
    assert len(housekeeping.tokens(followed)[0]) == 10
    assert housekeeping.tokens({**followed, **states_of(new, shorter)}) == ([], False)
    # As after a change that no message and no change of state has told.
    conn.execute("update markets set order_book = false where market_key = %s", [paused["market_key"]])
    conn.execute("update markets set status = 'CLOSED' where market_key = %s", [closed["market_key"]])

    rows, whole = housekeeping.tokens(followed)

    assert not whole
    assert {row[0]: row[-1] for row in rows} == {
        **dict.fromkeys([*closed["token_ids"], *paused["token_ids"]], False),
        **dict.fromkeys([*new["token_ids"], *shorter["token_ids"]], True),
    }


def states_of(*markets):
    return {
        token_id: SimpleNamespace(token=Token(token_id, market["market_id"], market["market_key"], outcome))
        for market in markets
        for outcome, token_id in enumerate(market["token_ids"])
    }


def test_a_comparison_that_fails_does_not_keep_changes_from_being_read(conn, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("orchestration.ingest.housekeeping.monotonic", lambda: now[0])
    housekeeping = Housekeeping(SimpleNamespace(conn=conn), "polymarket", compare_s=300.0)
    housekeeping.tokens({})
    new = add_market(conn)
    now[0] = 301.0
    with monkeypatch.context() as patch:
        patch.setattr(queries, "followed_markets", time_out)
        with pytest.raises(psycopg.errors.QueryCanceled):
            housekeeping.tokens({})

    assert {row[0] for row in housekeeping.tokens({})[0]} == set(new["token_ids"])


def test_a_reading_of_the_catalogue_that_has_failed_is_repeated(conn, monkeypatch):
    add_market(conn)
    housekeeping = Housekeeping(SimpleNamespace(conn=conn), "polymarket", compare_s=300.0)
    with monkeypatch.context() as patch:
        patch.setattr(queries, "followed_tokens", time_out)
        with pytest.raises(psycopg.errors.QueryCanceled):
            housekeeping.tokens({})

    rows, whole = housekeeping.tokens({})
    assert (len(rows), whole) == (2, True)


def test_many_markets_are_compared_in_parts_and_changes_are_read_meanwhile(conn, monkeypatch):
    monkeypatch.setattr("orchestration.ingest.sockets.subscriptions.COMPARED_MARKETS", 2)
    now = [0.0]
    monkeypatch.setattr("orchestration.ingest.housekeeping.monotonic", lambda: now[0])
    before, *followed, after = (add_market(conn) for _ in range(7))
    housekeeping = Housekeeping(SimpleNamespace(conn=conn), "polymarket", compare_s=300.0)
    housekeeping.tokens({})
    gone = followed[1]
    conn.execute("update markets set order_book = false where market_key = %s", [gone["market_key"]])
    now[0] = 301.0
    asked = []
    followed_markets = queries.followed_markets
    monkeypatch.setattr(
        queries, "followed_markets", lambda conn, **given: asked.append(given) or followed_markets(conn, **given)
    )

    found = [housekeeping.tokens(states_of(*followed))[0]]
    new = add_market(conn)
    found += [housekeeping.tokens(states_of(*followed))[0] for _ in range(3)]

    keys = [market["market_key"] for market in followed]
    assert [(each["first_key"], each["last_key"]) for each in asked] == [
        (keys[4], 2**31 - 1),
        (keys[2], keys[4] - 1),
        (0, keys[2] - 1),
    ]
    tokens = [{row[0]: row[-1] for row in rows} for rows in found]
    assert tokens == [
        dict.fromkeys(after["token_ids"], True),
        dict.fromkeys(new["token_ids"], True),  # by the change: the part was another one
        {**dict.fromkeys(before["token_ids"], True), **dict.fromkeys(gone["token_ids"], False)},
        {},
    ]


@pytest.mark.parametrize("failing", ["changed_markets", "tokens_of"])
def test_changes_that_a_failed_query_did_not_return_are_read_again(conn, monkeypatch, failing):
    add_market(conn, "rain")
    catalogue = Catalogue()
    catalogue.all(conn)
    snow = add_market(conn, "snow")
    with monkeypatch.context() as patch:
        patch.setattr(queries, failing, time_out)
        with pytest.raises(psycopg.errors.QueryCanceled):
            catalogue.changes(conn, ["named by a message"])

    assert {row[0] for row in catalogue.changes(conn)} == set(snow["token_ids"])
    assert catalogue.changes(conn) == []


def test_a_market_that_has_ended_is_followed_until_its_socket_has_delivered_what_was_sent_before(
    subscriptions, monkeypatch
):
    clock = [1000.0]
    monkeypatch.setattr("orchestration.ingest.sockets.subscriptions.monotonic", lambda: clock[0])
    subscriptions(lambda it: it.apply(rows(1, 2), whole=True, fresh=False))
    [listener] = subscriptions.of.listeners

    def followed_after(seconds, *, delivered_ms):
        clock[0] += seconds
        listener.newest_ms, listener.pulse.received_at = delivered_ms, clock[0]  # it delivers all the time
        subscriptions(lambda it: it.apply([], whole=False, fresh=True))
        return sorted(listener.tokens)

    subscriptions(lambda it: it.apply(rows(1, follow=False), whole=False, fresh=True))
    ended_ms = subscriptions.of._ending["1-0"][1]

    assert len(followed_after(1.0, delivered_ms=ended_ms + 1)) == 4  # what the other socket sent may be later
    assert len(followed_after(MIN_ENDING_S, delivered_ms=ended_ms - 1)) == 4  # the feed lags
    assert followed_after(0.1, delivered_ms=ended_ms) == ["2-0", "2-1"]


def test_a_market_that_has_ended_is_left_when_its_socket_delivers_nothing_more(subscriptions, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("orchestration.ingest.sockets.subscriptions.monotonic", lambda: clock[0])
    subscriptions(lambda it: it.apply(rows(1, 2), whole=True, fresh=False))
    [listener] = subscriptions.of.listeners
    listener.pulse.received_at = clock[0]
    subscriptions(lambda it: it.apply(rows(1, follow=False), whole=False, fresh=True))

    clock[0] += MIN_ENDING_S + QUIET_S
    subscriptions(lambda it: it.apply([], whole=False, fresh=True))

    assert sorted(listener.tokens) == ["2-0", "2-1"]


def test_a_market_that_opens_again_stays(subscriptions, monkeypatch):
    clock = [1000.0]
    monkeypatch.setattr("orchestration.ingest.sockets.subscriptions.monotonic", lambda: clock[0])
    subscriptions(lambda it: it.apply(rows(1), whole=True, fresh=False))
    subscriptions(lambda it: it.apply(rows(1, follow=False), whole=False, fresh=True))
    subscriptions(lambda it: it.apply(rows(1), whole=False, fresh=True))
    clock[0] += 1000
    subscriptions(lambda it: it.apply([], whole=False, fresh=True))

    assert tokens_by_socket(subscriptions) == [["1-0", "1-1"]]


def test_announced_markets_are_listened_to_until_the_catalogue_knows_them(subscriptions):
    subscriptions(lambda it: it.apply(rows(1), whole=True, fresh=False))
    subscriptions(lambda it: it.anticipate([new_market(7), new_market(7)]))
    subscriptions(lambda it: it.apply(rows(1), whole=True, fresh=True))
    assert tokens_by_socket(subscriptions) == [["1-0", "1-1", "7-0", "7-1"]]

    subscriptions(lambda it: it.apply(rows(7), whole=False, fresh=True))
    assert subscriptions.of.listeners[0].tokens.keys() == {"1-0", "1-1", "7-0", "7-1"}


@pytest.mark.parametrize("ready", [True, False])
def test_a_run_knows_when_a_market_was_listed_that_it_heard_announced_once_it_was_ready(subscriptions, ready):
    subscriptions(lambda it: it.anticipate([new_market(7)]))
    subscriptions(lambda it: it.apply(rows(7, 8), whole=False, fresh=ready))

    assert [subscriptions.normalizer.states[name].listed_ms for name in ("7-0", "8-0")] == [1 if ready else 0, 0]


def test_announced_markets_that_never_come_are_given_up(subscriptions, monkeypatch):
    monkeypatch.setattr("orchestration.ingest.sockets.subscriptions.ANTICIPATE_S", -1.0)
    subscriptions(lambda it: it.anticipate([new_market(7)]))
    subscriptions(lambda it: it.apply([], whole=False, fresh=True))

    assert tokens_by_socket(subscriptions) == [[]]


def test_the_volume_of_a_day_is_brought_up_to_date_between_two_looks_at_the_catalogue(
    subscriptions, conn, database_url, monkeypatch
):
    market, other = add_market(conn, "rain"), add_market(conn, "snow")
    conn.commit()
    tokens = [
        (token, row["market_id"], row["market_key"], outcome, None, None, None, 0, True)
        for row in (market, other)
        for outcome, token in enumerate(row["token_ids"])
    ]
    subscriptions(lambda made: made.apply(tokens, whole=True, fresh=False))
    housekeeping = Housekeeping(FeedLease(database_url, "all", "run", 60.0), "all", compare_s=300.0)

    def stored_volumes():
        volumes = subscriptions.of._normalizer.volumes_24h_usd
        volumes.update(housekeeping.volumes())
        return [volumes[market_key] for _, _, market_key, *_ in tokens]

    def add_trade(row, size, now):
        add_trades(conn, row, [{"price": "0.5", "size": size, "ts": now}])
        aggregates.compute_stats(conn, now)
        activity.bring_up_to_date(conn, now)
        conn.commit()

    try:
        assert stored_volumes() == [0, 0, 0, 0]
        now = dt.datetime.now(dt.UTC)
        add_trade(market, 100, now - dt.timedelta(seconds=60))
        assert stored_volumes() == [50_000_000, 50_000_000, 0, 0]
        add_trade(other, 10, now)
        with monkeypatch.context() as patch:
            patch.setattr(queries, "volumes", time_out)
            with pytest.raises(psycopg.errors.QueryCanceled):
                housekeeping.volumes()
        assert stored_volumes() == [50_000_000, 50_000_000, 5_000_000, 5_000_000]
        assert housekeeping.volumes() == {}
    finally:
        housekeeping.lease.close()
