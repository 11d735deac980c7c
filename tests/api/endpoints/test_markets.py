from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.queries import aggregates
from tests import factories
from tests.factories import add_market as insert_market


def slugs(answer):
    assert answer.status_code == 200, answer.text
    return [market["slug"] for market in answer.json["data"]]


def rank(conn, generation, markets, apart=1):
    for number, market in enumerate(markets):
        placed = [generation, 1 + number * apart, market["market_key"]]
        conn.execute("insert into market_rankings values (%s, %s, %s)", placed)
    aggregates.index_ranking(conn, generation=generation)


def test_markets_are_listed_by_activity_then_newest_first(client, conn, add_market):
    quiet, busy, newer, busiest = (add_market(slug) for slug in ("quiet", "busy", "newer", "busiest"))
    rank(conn, 1, [quiet, busy])
    rank(conn, 2, [busiest, busy])

    assert slugs(client.ask("/v1/markets")) == ["busiest", "busy", "newer", "quiet"]
    assert newer["market_key"] > quiet["market_key"]


def test_a_page_has_fifty_markets_unless_asked_otherwise(client, add_market):
    for number in range(60):
        add_market(f"m{number}")

    assert len(slugs(client.ask("/v1/markets"))) == 50
    assert len(slugs(client.ask("/v1/markets", limit=200))) == 60
    assert len(slugs(client.ask("/v1/markets", limit=7))) == 7


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ({"status": "CLOSED"}, ["closed"]),
        ({"category": "sports"}, ["ball"]),
        ({"tag": "rain"}, ["rainy"]),
        ({"series": "daily"}, ["serial"]),
        ({"exchange": "polymarket", "status": "RESOLVED"}, []),
    ],
)
@pytest.mark.parametrize("ranked", [True, False])
def test_markets_are_filtered(client, conn, add_market, chosen, found, ranked):
    markets = [
        add_market("closed", status="CLOSED"),
        add_market("ball", category="sports"),
        add_market("rainy", tags=["wind", "rain"]),
        add_market("serial", series="daily"),
    ]
    if ranked:
        rank(conn, 1, markets)

    assert slugs(client.ask("/v1/markets", **chosen)) == found


def test_an_offset_passes_over_ranked_and_other_markets_alike(client, conn, add_market):
    markets = [add_market(f"m{number}") for number in range(6)]
    rank(conn, 1, markets[:3])
    whole = slugs(client.ask("/v1/markets"))

    for offset in range(8):
        assert slugs(client.ask("/v1/markets", offset=offset, limit=2)) == whole[offset : offset + 2]


def walk(client, limit, between=lambda: None, **chosen):
    met, cursor = [], None
    while cursor != "":
        answer = client.ask("/v1/markets", limit=limit, **chosen, **({"cursor": cursor} if cursor else {}))
        met += slugs(answer)
        assert answer.json["has_more"] == bool(answer.json["next_cursor"])
        cursor = answer.json["next_cursor"]
        between()
    return met


@settings(max_examples=20)
@given(markets=st.integers(0, 30), ranked=st.integers(0, 30), limit=st.integers(1, 12), seed=st.integers(0, 9))
def test_a_walk_meets_each_market_once_whatever_is_written_meanwhile(
    client, conn, service, markets, ranked, limit, seed
):
    chance = random.Random(seed)
    with conn.transaction(force_rollback=True):
        there = [insert_market(conn, f"there-{number}") for number in range(markets)]
        rank(conn, 1, chance.sample(there, min(ranked, markets)))
        generations = iter(range(2, 1000))

        def write():
            coming = insert_market(conn)
            rank(conn, next(generations), chance.sample([*there, coming], markets))

        met = walk(client, limit, write)
        service.cache.__init__()

    assert len(met) == len(set(met))
    assert {market["slug"] for market in there} <= set(met)


def test_a_walk_with_a_filter_meets_only_what_passes(client, conn, add_market):
    markets = [add_market(f"m{number}", status="ACTIVE" if number % 3 else "CLOSED") for number in range(20)]
    rank(conn, 1, markets[:10])

    met = walk(client, 2, status="CLOSED")

    assert sorted(met) == sorted(market["slug"] for market in markets if market["status"] == "CLOSED")


def test_a_cursor_that_is_not_ours_is_refused(client, conn, add_market):
    markets = [add_market() for _ in range(3)]
    rank(conn, 1, markets[:2])
    good = client.ask("/v1/markets", limit=1).json["next_cursor"]
    altered = good[:-2] + ("AA" if good[-2:] != "AA" else "BB")

    for cursor in ("nonsense", "####", altered, good[:10]):
        answer = client.ask("/v1/markets", cursor=cursor)
        assert (answer.status_code, answer.json["code"]) == (400, "invalid_cursor")


def test_a_cursor_belongs_to_its_filter_and_ranking(client, conn, add_market):
    markets = [add_market() for _ in range(3)]
    rank(conn, 1, markets[:2])
    cursor = client.ask("/v1/markets", limit=1).json["next_cursor"]

    assert client.ask("/v1/markets", cursor=cursor, status="ACTIVE").json["code"] == "invalid_cursor"
    assert client.ask("/v1/markets", cursor=cursor, offset=1).json["code"] == "invalid_cursor"
    assert client.ask("/v1/markets", cursor=cursor, limit=2).status_code == 200

    conn.execute("delete from market_rankings")
    assert client.ask("/v1/markets", cursor=cursor, limit=3).json["code"] == "invalid_cursor"


def test_a_market_is_found_by_any_of_its_names(client, add_market):
    market = add_market("rain-tomorrow", gamma_id="517")

    for name in (market["market_id"], market["market_id"].upper().replace("0X", "0x"), "rain-tomorrow", "517"):
        answer = client.ask(f"/v1/markets/{name}")
        assert answer.json["market_id"] == market["market_id"]


def test_a_slug_means_the_open_market_rather_than_an_ended_one(client, add_market):
    opened = add_market("again")
    add_market("again", status="RESOLVED")

    assert client.ask("/v1/markets/again").json["market_id"] == opened["market_id"]


@pytest.mark.parametrize("name", ["nothing", "0x" + "0" * 64, "99999999", "%00", "a%2Fb", "x" * 600, "%ff"])
@pytest.mark.parametrize("rest", ["", "/price", "/orderbook", "/trades", "/price-history", "/candles"])
def test_an_unknown_market_is_not_found(client, name, rest):
    answer = client.ask(f"/v1/markets/{name}{rest}")

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


@pytest.mark.parametrize("rest", ["price", "orderbook", "trades", "price-history", "candles"])
def test_an_outcome_is_said_by_index_or_name_and_must_exist(client, add_market, rest):
    add_market("game", outcomes=["Lakers", "Celtics"])

    for outcome in ("0", "1", "celtics", "Lakers"):
        assert client.ask(f"/v1/markets/game/{rest}", outcome=outcome).status_code in {200, 404}
    for outcome in ("2", "-1", "Bulls", "0.5", "²"):
        answer = client.ask(f"/v1/markets/game/{rest}", outcome=outcome)
        assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")
        assert answer.json["hint"] == "Allowed: 0 (Lakers), 1 (Celtics)"


def test_the_detail_tells_the_state_of_the_book(client, conn, add_market):
    market = add_market("rain")
    assert client.ask("/v1/markets/rain").json["orderbook"]["status"] == "missing"

    factories.keep_alive(conn)
    conn.execute(
        "insert into live_books values (%s, 0, '{510000}', '{1000000}', '{}', '{}', 10000, null, 1, now(), false)",
        [market["market_key"]],
    )
    doubted = client.ask("/v1/markets/rain").json["orderbook"]
    assert (doubted["status"], doubted["best_bid"]) == ("unverified", None)

    conn.execute("update live_books set verified = true")
    live = client.ask("/v1/markets/rain").json["orderbook"]
    assert (live["status"], live["best_bid"], live["best_ask"], live["bid_levels"]) == ("live", 0.51, None, 1)
