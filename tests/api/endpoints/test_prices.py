from __future__ import annotations

import datetime as dt

import pytest

from tests.factories import go_live, insert, keep_alive

NOW = dt.datetime.now(dt.UTC)


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
    go_live(conn, market, last_ts=NOW, **said)
    conn.execute("update live_prices set ts = %s", [NOW])

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
        "volume_24h_usd": 0,
        "ts": int(NOW.timestamp() * 1000),
    }


def test_a_market_without_a_live_price_says_so(client, add_market):
    add_market("rain")

    answer = client.ask("/v1/markets/rain/price")

    assert (answer.status_code, answer.json["detail"]) == (404, "The outcome has no live price")


UNLIVE = {
    "resolved": ("update markets set status = 'RESOLVED', outcome_prices = '{1000000,0}'", "are the payouts"),
    "closed": ("update markets set status = 'CLOSED'", "The market has ended"),
    "with a doubted book": ("update live_books set verified = false", "being refetched"),
    "without a book": ("delete from live_books", "not be trading actively"),
    "without a feed": (
        "update stage_clocks set beat_at = now() - interval '11 s' where stage = 'ingestion'",
        "/v1/status/pipeline",
    ),
    "behind what was heard": (
        "update stage_clocks set last_data_at = now() - interval '61 s', detail = '{\"backlog_events\": 7}'",
        "/v1/status/pipeline",
    ),
}


@pytest.mark.parametrize("why", UNLIVE)
def test_there_is_no_live_price_or_book_of_a_market_that_is(client, conn, add_market, why):
    market = add_market("rain")
    go_live(conn, market, bid=430_000, ask=880_000, mid=655_000, last=650_000, last_ts=NOW)
    paths = [f"/v1/markets/rain/{rest}" for rest in ("price", "orderbook", "liquidity")]
    assert [client.ask(path).status_code for path in paths] == [200, 200, 200]
    statement, hint = UNLIVE[why]

    conn.execute(statement)

    answers = [client.ask(path) for path in paths]
    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(404, "not_found")] * 3
    assert hint in answers[0].json["hint"]
    assert client.ask("/v1/prices", ids="rain").json == {"rain": None}
    detail = client.ask("/v1/markets/rain").json
    assert (detail["price"], detail["orderbook"]["best_bid"]) == (None, None)
    assert detail["orderbook"]["status"] != "live"
    assert client.ask("/v1/markets/rain/summary").json["price"] is None
    health = client.ask("/v1/markets/rain/health").json
    assert (health["status"] != "fresh", health["price"]["mid"]) == (True, None)
    (quote,) = client.ask("/v1/udf/quotes", symbols="rain").json["d"]
    assert quote["v"].keys().isdisjoint({"bid", "ask", "spread"})
    assert quote["v"]["lp"] == (1 if why == "resolved" else 0.65)


def test_a_price_stays_live_however_quiet_the_market_and_the_exchange_are(client, conn, add_market):
    market = add_market("rain")
    go_live(conn, market, mid=520_000)
    conn.execute("update live_prices set ts = now() - interval '3 days'")
    conn.execute("update stage_clocks set beat_at = now(), last_data_at = now() - interval '2 hours'")

    assert client.ask("/v1/markets/rain/price").json["age_ms"] >= 3 * 86_400_000
    assert client.ask("/v1/markets/rain/health").json["status"] == "fresh"


def test_how_late_the_feed_may_be_is_what_an_administrator_has_set(client, conn, add_market):
    go_live(conn, add_market("rain"), mid=520_000)
    conn.execute(
        "update stage_clocks set last_data_at = now() - interval '61 s', detail = '{}' where stage = 'ingestion'"
    )
    assert client.ask("/v1/markets/rain/price").status_code == 404

    conn.execute("insert into settings (name, value) values ('parameters.ingestion_fail_after_s', '120')")

    assert client.ask("/v1/markets/rain/price").status_code == 200


def test_several_prices_come_by_the_name_each_was_asked_by(client, conn, add_market):
    rain, snow = add_market("rain", gamma_id="7"), add_market("snow")
    go_live(conn, rain, mid=520_000)
    go_live(conn, rain, outcome=1, mid=480_000)

    found = client.ask("/v1/prices", ids=f"rain,7,{rain['market_id']},snow,{snow['market_id']},nothing,").json

    assert list(found) == ["rain", "7", rain["market_id"], "snow", snow["market_id"], "nothing"]
    assert [one and one["mid"] for one in found.values()] == [0.52, 0.52, 0.52, None, None, None]


def test_ids_that_name_no_market_are_told_apart_from_those_without_a_price(client, conn, add_market):
    rain, _ = add_market("rain"), add_market("snow")
    go_live(conn, rain, mid=520_000)
    shouted = rain["market_id"].upper().replace("0X", "0x")

    asked = {"ids": f"{shouted},snow,nothing,no thing é"}
    answer = client.ask("/v1/prices", headers={"Origin": "https://example.com"}, **asked)

    assert {name: found and found["mid"] for name, found in answer.json.items()} == {
        shouted: 0.52,
        "snow": None,
        "nothing": None,
        "no thing é": None,
    }
    assert answer.headers["X-Unknown-Ids"] == "nothing,no%20thing%20%C3%A9"
    assert "X-Unknown-Ids" in answer.headers["Access-Control-Expose-Headers"]
    assert "X-Unknown-Ids" not in client.ask("/v1/prices", ids="rain,snow").headers


def test_a_header_of_unknown_ids_is_no_longer_than_servers_in_between_let_pass(client):
    unknown = client.ask("/v1/prices", ids=",".join(f"{number:064x}" for number in range(100))).headers["X-Unknown-Ids"]

    assert unknown.endswith(",...")
    assert 1900 < len(unknown) < 2100


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
    keep_alive(conn)

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
    keep_alive(conn)
    conn.execute(
        "insert into live_books values (%s, 0, '{}', '{}', '{530000}', '{1000000}', null, null, 1, now(), true)",
        [market["market_key"]],
    )

    book = client.ask("/v1/markets/rain/orderbook").json

    assert (book["bids"], book["best_bid"], book["mid"], book["spread"]) == ([], None, None, None)
    assert (book["best_ask"], book["depth_usd"], book["hash"]) == (0.53, 0.53, None)
