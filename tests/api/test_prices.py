from __future__ import annotations

import datetime as dt

import pytest

from tests.factories import insert

NOW = dt.datetime.now(dt.UTC)


def price(market, outcome=0, **columns):
    return {"market_key": market["market_key"], "outcome": outcome, "ts": NOW, **columns}


def test_a_price_is_what_the_exchange_last_said(client, conn, add_market):
    market = add_market("rain")
    said = {
        "bid": 510_000,
        "ask": 530_000,
        "mid": 520_000,
        "bid_size": 1_500_000,
        "ask_size": 2_000_000,
        "last": 500_000,
    }
    insert(conn, "live_prices", price(market, last_ts=NOW, **said))

    found = client.ask("/v1/markets/rain/price").json

    assert found.pop("age_ms") >= 0
    assert found == {
        "market_id": market["market_id"],
        "outcome": 0,
        "token_id": market["token_ids"][0],
        "mid": 0.52,
        "bid": 0.51,
        "ask": 0.53,
        "spread": 0.02,
        "bid_size": 1.5,
        "ask_size": 2,
        "last": 0.5,
        "last_ts": int(NOW.timestamp() * 1000),
        "volume_24h_usd": None,
        "ts": int(NOW.timestamp() * 1000),
    }


def test_a_market_without_a_live_price_says_so(client, add_market):
    add_market("rain")

    answer = client.ask("/v1/markets/rain/price")

    assert (answer.status_code, answer.json["detail"]) == (404, "The outcome has no live price")


def test_several_prices_come_by_the_name_each_was_asked_by(client, conn, add_market):
    rain, snow = add_market("rain", gamma_id="7"), add_market("snow")
    insert(conn, "live_prices", price(rain, mid=520_000))
    insert(conn, "live_prices", price(rain, outcome=1, mid=480_000))

    found = client.ask("/v1/prices", ids=f"rain,7,{rain['market_id']},snow,{snow['market_id']},nothing,").json

    assert list(found) == ["rain", "7", rain["market_id"], "snow", snow["market_id"], "nothing"]
    assert [one and one["mid"] for one in found.values()] == [0.52, 0.52, 0.52, None, None, None]


@pytest.mark.parametrize(("ids", "status"), [("", 400), (",", 400), (",".join(map(str, range(101))), 400), ("a", 200)])
def test_one_to_a_hundred_prices_can_be_asked_for(client, ids, status):
    assert client.ask("/v1/prices", ids=ids).status_code == status


@pytest.mark.parametrize(("count", "cost"), [(1, "1"), (25, "1"), (26, "2"), (100, "4")])
def test_twenty_five_prices_cost_a_credit(client, count, cost):
    answer = client.ask("/v1/prices", ids=",".join(map(str, range(count))))

    assert answer.headers["X-Request-Cost"] == cost


def test_a_book_is_given_best_first_and_only_if_it_agrees_with_the_exchange(client, conn, add_market):
    market = add_market("rain")
    row = {
        "market_key": market["market_key"],
        "outcome": 1,
        "bid_prices": [510_000, 500_000],
        "bid_sizes": [10_000_000, 20_500_000],
        "ask_prices": [530_000],
        "ask_sizes": [5_000_000],
        "tick_size": 10_000,
        "hash": bytes.fromhex("ab" * 20),
        "seq": 1_795_262_400_123 << 20 | 5,
        "ts": NOW,
        "verified": True,
    }
    insert(conn, "live_books", row)

    assert client.ask("/v1/markets/rain/orderbook", outcome="No").json == {
        "market_id": market["market_id"],
        "outcome": 1,
        "token_id": market["token_ids"][1],
        "bids": [{"price": 0.51, "size": 10}, {"price": 0.5, "size": 20.5}],
        "asks": [{"price": 0.53, "size": 5}],
        "best_bid": 0.51,
        "best_ask": 0.53,
        "mid": 0.52,
        "spread": 0.02,
        "depth_usd": 18.0,
        "tick_size": 0.01,
        "hash": "ab" * 20,
        "seq": str(1_795_262_400_123 << 20 | 5),
        "ts": int(NOW.timestamp() * 1000),
    }
    assert client.ask("/v1/markets/rain/orderbook").status_code == 404

    conn.execute("update live_books set verified = false")
    doubted = client.ask("/v1/markets/rain/orderbook", outcome=1)
    assert doubted.status_code == 404
    assert "try in a few seconds" in doubted.json["hint"]


def test_an_empty_side_of_a_book_has_no_best_price(client, conn, add_market):
    market = add_market("rain")
    conn.execute(
        "insert into live_books values (%s, 0, '{}', '{}', '{530000}', '{1000000}', null, null, 1, now(), true)",
        [market["market_key"]],
    )

    book = client.ask("/v1/markets/rain/orderbook").json

    assert (book["bids"], book["best_bid"], book["mid"], book["spread"]) == ([], None, None, None)
    assert (book["best_ask"], book["depth_usd"], book["hash"]) == (0.53, 0.53, None)
