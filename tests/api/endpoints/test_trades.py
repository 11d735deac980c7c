from __future__ import annotations

import datetime as dt

import pytest

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)


def ms(moment):
    return int(moment.timestamp() * 1000)


@pytest.fixture
def market(add_market):
    return add_market("rain")


def ids(answer):
    assert answer.status_code == 200, answer.text
    return [trade["id"] for trade in answer.json]


def test_trades_are_listed_newest_first_as_the_taker_made_them(client, market, add_trades):
    rows = add_trades(
        market,
        [
            {"price": "0.5", "size": "10.5", "ts": NOW, "tx_hash": b"\xab" * 32},
            {"price": "0.123456", "side": -1, "ts": NOW},
        ],
    )

    newest, oldest = client.ask("/v1/markets/rain/trades").json

    assert oldest == {
        "id": str(rows[0]["trade_id"]),
        "market_id": market["market_id"],
        "token_id": market["token_ids"][0],
        "outcome": 0,
        "price": 0.5,
        "size": 10.5,
        "value_usd": 5.25,
        "side": "BUY",
        "tx_hash": "0x" + "ab" * 32,
        "ts": ms(NOW),
    }
    assert (newest["price"], newest["side"], newest["tx_hash"]) == (0.123456, "SELL", None)


def test_a_hundred_trades_are_given_unless_asked_otherwise(client, market, add_trades):
    add_trades(market, [{} for _ in range(120)])

    assert len(client.ask("/v1/markets/rain/trades").json) == 100
    assert len(client.ask("/v1/markets/rain/trades", limit=5000).json) == 120
    assert client.ask("/v1/markets/rain/trades", limit=5001).status_code == 400


def test_each_outcome_has_its_own_trades(client, market, add_trades):
    add_trades(market, [{}], outcome=0)
    (no,) = add_trades(market, [{}], outcome=1)

    (trade,) = client.ask("/v1/markets/rain/trades", outcome="No").json

    assert (trade["id"], trade["outcome"], trade["token_id"]) == (str(no["trade_id"]), 1, market["token_ids"][1])


def test_trades_of_all_outcomes_are_one_list_newest_first(client, market, add_trades):
    moments = [NOW - dt.timedelta(minutes=minutes) for minutes in range(6)]
    rows = [add_trades(market, [{"ts": at}], outcome=place % 2)[0] for place, at in enumerate(moments)]

    found = client.ask("/v1/markets/rain/trades", outcome="all").json

    assert [(trade["id"], trade["outcome"]) for trade in found] == [
        (str(row["trade_id"]), row["outcome"]) for row in rows
    ]
    assert {trade["token_id"] for trade in found} == set(market["token_ids"])
    (one,) = client.ask("/v1/markets/rain/trades", outcome="No", limit=1).json
    assert one == found[1]
    newest = client.ask("/v1/markets/rain/trades", outcome="ALL", limit=2, to=ms(moments[1])).json
    assert newest == found[2:4]
    assert [trade["id"] for trade in client.ask("/v1/markets/rain/trades").json] == [each["id"] for each in found[::2]]


def test_recent_trades_are_of_all_outcomes_or_of_one(client, market, add_trades):
    add_trades(market, [{}, {}], outcome=0)
    add_trades(market, [{}], outcome=1)

    def places(**asked):
        return sorted(trade["outcome"] for trade in client.ask("/v1/trades/recent", **asked).json)

    assert places() == places(outcome="all") == places(market_id="rain") == [0, 0, 1]
    assert places(market_id="rain", outcome="No") == [1]
    refused = client.ask("/v1/trades/recent", outcome="No")
    assert (refused.status_code, refused.json["errors"][0]["name"]) == (400, "outcome")


def test_a_range_begins_at_from_and_ends_before_to(client, market, add_trades):
    moments = [NOW - dt.timedelta(minutes=minutes) for minutes in (3, 2, 1)]
    rows = add_trades(market, [{"ts": moment} for moment in moments])
    expected = [str(row["trade_id"]) for row in rows]

    assert ids(client.ask("/v1/markets/rain/trades", from_=ms(moments[1]))) == [expected[2], expected[1]]
    assert ids(client.ask("/v1/markets/rain/trades", to=ms(moments[1]))) == [expected[0]]
    rfc = moments[1].isoformat()
    assert ids(client.ask("/v1/markets/rain/trades", from_=rfc, to=ms(moments[2]))) == [expected[1]]
    assert ids(client.ask("/v1/markets/rain/trades", from_=ms(moments[2]), to=ms(moments[0]))) == []


def test_a_quiet_market_still_shows_its_last_trades(client, market, add_trades):
    long_ago = [NOW - dt.timedelta(days=days) for days in (400, 20, 2)]
    rows = add_trades(market, [{"ts": moment} for moment in long_ago])

    assert ids(client.ask("/v1/markets/rain/trades")) == [str(row["trade_id"]) for row in reversed(rows)]
    assert ids(client.ask("/v1/markets/rain/trades", limit=1)) == [str(rows[2]["trade_id"])]


def test_a_wallet_is_known_to_the_exchange_only(client, market):
    answer = client.ask("/v1/markets/rain/trades", wallet="0x" + "1" * 40)

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")


@pytest.mark.parametrize(("limit", "cost"), [(1, "1"), (1000, "1"), (1001, "2"), (5000, "5")])
def test_a_thousand_trades_cost_a_credit(client, market, limit, cost):
    assert client.ask("/v1/markets/rain/trades", limit=limit).headers["X-Request-Cost"] == cost
