"""The endpoints of one market."""

from __future__ import annotations

import datetime as dt

import pytest

from orchestration.candles import activity, aggregates
from tests.api.endpoints.test_shapes import book
from tests.factories import go_live, insert, keep_alive

NOW = dt.datetime.now(dt.UTC)
pytestmark = pytest.mark.usefixtures("present")


def priced(conn, market, mid=520_000):
    insert(conn, "live_prices", {"market_key": market["market_key"], "outcome": 0, "mid": mid, "ts": NOW})


def test_a_summary_has_price_and_day_and_says_when_there_is_none(client, conn, add_market, add_trades):
    market = add_market("rain")
    empty = client.ask("/v1/markets/rain/summary").json
    assert (empty["price"], empty["stats_24h"], empty["signals"]) == (None, None, [])

    go_live(conn, market, mid=520_000)
    add_trades(market, [{}])
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))

    summary = client.ask("/v1/markets/rain/summary").json
    assert summary["price"]["mid"] == 0.52
    assert summary["stats_24h"]["trades"] == 1
    assert (summary["question"], summary["status"]) == ("Rain?", "ACTIVE")


def test_stats_are_told_also_of_a_day_without_trades(client, conn, add_market, add_trades):
    market = add_market("rain")
    quiet = client.ask("/v1/markets/rain/stats").json
    assert (quiet["trades"], quiet["volume"], quiet["open"], quiet["price_change_pct"]) == (0, 0, None, None)
    assert quiet["window_end"] - quiet["window_start"] == 86_400_000

    add_trades(market, [{"price": "0.5", "size": 10}, {"price": "0.6", "size": 30}, {"price": "0.4", "size": 10}])
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))

    stats = client.ask("/v1/markets/rain/stats").json
    assert [stats[name] for name in ("open", "high", "low", "close")] == [0.5, 0.6, 0.4, 0.4]
    assert (stats["trades"], stats["volume"], stats["volume_usd"]) == (3, 50, 27)
    assert (stats["price_change_pct"], stats["vwap"]) == (-20, 0.54)


def test_related_markets_share_the_event(client, add_market):
    add_market("rain", event_id="7")
    add_market("snow", event_id="7", end_time=NOW + dt.timedelta(days=2))
    add_market("hail", event_id="7", end_time=NOW + dt.timedelta(days=1))
    add_market("election", event_id="8")
    add_market("alone")

    related = client.ask("/v1/markets/rain/related").json
    assert [market["slug"] for market in related["data"]] == ["hail", "snow"]
    assert (related["event_id"], related["count"]) == ("7", 2)
    assert client.ask("/v1/markets/alone/related").json == {"event_id": None, "data": [], "count": 0}


def test_health_is_fresh_stale_or_missing(client, conn, add_market):
    market = add_market("rain")

    def health():
        answer = client.ask("/v1/markets/rain/health").json
        return answer["status"], answer["orderbook"]["freshness"], answer["price"]["freshness"]

    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now()")
    assert health() == ("missing", "missing", "missing")
    priced(conn, market)
    assert health() == ("missing", "missing", "stale")
    insert(conn, "live_books", book(market["market_key"]))
    assert health() == ("fresh", "fresh", "fresh")
    conn.execute("update live_books set verified = false")
    assert health() == ("stale", "stale", "stale")
    conn.execute("update live_books set verified = true")
    conn.execute("update stage_clocks set last_data_at = now() - interval '10 minutes'")
    assert health() == ("stale", "stale", "stale")


def test_liquidity_is_the_book_as_what_can_be_bought_and_sold(client, conn, add_market):
    market = add_market("rain")
    assert client.ask("/v1/markets/rain/liquidity").status_code == 404
    insert(conn, "live_books", book(market["market_key"]))
    keep_alive(conn)

    found = client.ask("/v1/markets/rain/liquidity").json

    assert [found[name] for name in ("best_bid", "best_ask", "mid_price", "spread")] == [0.51, 0.53, 0.52, 0.02]
    assert found["bids"] == [{"price": 0.51, "size": 10}, {"price": 0.5, "size": 20.5}]
    assert client.ask("/v1/markets/rain/liquidity", outcome="No").status_code == 404


@pytest.mark.parametrize(
    ("prices", "sentiment"),
    [
        (("0.50", "0.53"), "bullish"),
        (("0.50", "0.47"), "bearish"),
        (("0.50", "0.525"), "neutral"),
        (("0.010", "0.011"), "neutral"),  # a tenth more, and dust
        (("0.010", "0.030"), "bullish"),
        (("0.95", "0.99"), "bullish"),  # four per cent, and a fifth of the doubt
        (("0.99", "0.95"), "bearish"),
        (("0.97", "0.989"), "neutral"),
        ((), "neutral"),
    ],
)
def test_sentiment_leans_by_odds_and_by_two_cents_at_least(client, conn, add_market, add_trades, prices, sentiment):
    market = add_market("rain")
    add_trades(market, [{"price": price} for price in prices])
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
    activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))

    assert client.ask("/v1/markets/rain/sentiment").json["sentiment"] == sentiment


@pytest.mark.parametrize(("size", "trend"), [(13, "up"), (12, "flat"), (8, "flat"), (7, "down"), (None, "down")])
def test_the_trend_of_volume_is_against_the_hourly_mean(client, conn, add_market, add_trades, size, trend):
    market = add_market("rain")
    steady = [{"ts": NOW - dt.timedelta(minutes=30 + 60 * hour), "size": 10} for hour in range(23, 0, -1)]
    add_trades(market, [*steady, *([{"size": size}] if size else [])])
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
    activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))

    told = client.ask("/v1/markets/rain/sentiment").json

    assert told["volume_trend"] == trend
    assert told["vol_1h"] == (size or 0) / 2
    assert told["signals_count"] == 0


@pytest.mark.parametrize("rest", ["summary", "stats", "related", "health", "liquidity", "sentiment"])
def test_nothing_is_told_of_a_market_that_is_not_there(client, rest):
    answer = client.ask(f"/v1/markets/nothing/{rest}")

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


# --- The newest trades


def test_recent_trades_are_of_all_markets_newest_first_without_wallets(client, add_market, add_trades):
    rain, snow = add_market("rain"), add_market("snow")
    add_trades(rain, [{"ts": NOW - dt.timedelta(days=3), "price": "0.1"}, {"ts": NOW - dt.timedelta(seconds=2)}])
    add_trades(snow, [{"ts": NOW - dt.timedelta(seconds=1), "price": "0.7"}], outcome=1)

    found = client.ask("/v1/trades/recent").json

    assert [(trade["market_id"], trade["outcome"], trade["price"]) for trade in found] == [
        (snow["market_id"], 1, 0.7),
        (rain["market_id"], 0, 0.5),
        (rain["market_id"], 0, 0.1),
    ]
    assert found[0]["token_id"] == snow["token_ids"][1]
    assert {(trade["maker"], trade["taker"], trade["block_number"]) for trade in found} == {("", "", None)}


def test_recent_trades_of_one_market_are_of_all_its_outcomes(client, add_market, add_trades):
    rain, snow = add_market("rain"), add_market("snow")
    add_trades(rain, [{"ts": NOW - dt.timedelta(seconds=9), "price": "0.1"}])
    add_trades(rain, [{"ts": NOW - dt.timedelta(seconds=5), "price": "0.9"}], outcome=1)
    add_trades(snow, [{}])

    assert [trade["price"] for trade in client.ask("/v1/trades/recent", market_id="rain").json] == [0.9, 0.1]
    assert [trade["price"] for trade in client.ask("/v1/trades/recent", market_id="rain", limit=1).json] == [0.9]
    assert client.ask("/v1/trades/recent", market_id="nothing").status_code == 404


def test_fifty_recent_trades_are_given_unless_asked_otherwise(client, add_market, add_trades):
    add_trades(add_market("rain"), [{}] * 60)

    assert len(client.ask("/v1/trades/recent").json) == 50
    assert len(client.ask("/v1/trades/recent", limit=500).json) == 60
    assert client.ask("/v1/trades/recent", limit=501).status_code == 400
