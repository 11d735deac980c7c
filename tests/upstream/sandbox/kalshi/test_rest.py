"""The sandbox Kalshi's REST API: filters, pages, both sides of the cutoff, candles, errors, and the known traps."""

from datetime import datetime

import pytest

from tests.upstream.sandbox.kalshi.conftest import MINUTE, SECOND, START_MS, get, open_tickers, play, walk

DAY = 86_400


def refusal(http, sandbox, path, **query):
    response = http.get(f"{sandbox.rest_url}{path}", params=query)
    return response.status_code, response.json()


# --- Markets ---


def test_pages_have_every_market_once_and_the_last_cursor_is_empty(played, http):
    paged = walk(http, played, "/markets", "markets", limit=7)
    whole = get(http, played, "/markets", limit=1000)

    assert whole["cursor"] == ""
    assert [one["ticker"] for one in paged] == [one["ticker"] for one in whole["markets"]]
    assert len({one["ticker"] for one in paged}) == len(paged) > 100


def test_garbage_as_a_cursor_is_the_first_page_and_an_over_limit_is_refused(played, http):
    first = get(http, played, "/markets", limit=3)

    for garbage in ("garbage", "bm9uZQ==", "%00"):
        assert get(http, played, "/markets", limit=3, cursor=garbage)["markets"] == first["markets"]
    status, body = refusal(http, played, "/markets", limit=1001)
    assert (status, set(body)) == (400, {"code", "message", "details"})
    assert refusal(http, played, "/events", limit=201)[0] == 400


def test_the_three_shapes_of_errors(played, http):
    assert refusal(http, played, "/markets/none") == (404, {"error": {"code": "not_found", "message": "not found"}})
    status, body = refusal(http, played, "/markets", limit="many")
    assert (status, set(body)) == (400, {"msg"})
    assert body["msg"].startswith("Invalid format for parameter limit: ")
    assert refusal(http, played, "/nowhere")[0] == 404
    assert refusal(http, played, "/markets", limit="9" * 400)[0] == 400


def test_filters_name_other_states_than_the_field(played, http):
    meant = {
        "unopened": {"initialized"},
        "open": {"active"},
        "closed": {"closed", "determined", "disputed", "amended"},
        "settled": {"finalized"},
        "paused": {"inactive"},
    }
    every = walk(http, played, "/markets", "markets", limit=1000)
    for word, states in meant.items():
        found = walk(http, played, "/markets", "markets", status=word, limit=1000)
        assert found == [one for one in every if one["status"] in states]
    assert refusal(http, played, "/markets", status="active")[0] == 400


def test_combos_are_in_lists_unless_left_out(played, http):
    every = walk(http, played, "/markets", "markets", limit=1000)
    without = walk(http, played, "/markets", "markets", limit=1000, mve_filter="exclude")
    only = walk(http, played, "/markets", "markets", limit=1000, mve_filter="only")

    assert len(only) > 10
    assert all(one["ticker"].startswith("KXMVE") and one["mve_selected_legs"] for one in only)
    assert len(without) + len(only) == len(every)
    assert not [one for one in without if one["ticker"].startswith("KXMVE")]
    events = walk(http, played, "/events", "events")
    assert not [one for one in events if one["event_ticker"].startswith("KXMVE")]
    assert walk(http, played, "/events/multivariate", "events")


def test_markets_are_found_by_ticker_event_series_and_time(played, http):
    first, second = open_tickers(http, played, 2)
    market = get(http, played, f"/markets/{first}")["market"]
    event = get(http, played, f"/events/{market['event_ticker']}")["event"]

    named = get(http, played, "/markets", tickers=f"{first},{second},none")["markets"]
    assert {one["ticker"] for one in named} == {first, second}
    siblings = get(http, played, "/markets", event_ticker=market["event_ticker"])["markets"]
    assert {one["event_ticker"] for one in siblings} == {market["event_ticker"]}
    other = next(one for one in walk(http, played, "/events", "events") if one["event_ticker"] != event["event_ticker"])
    assert get(http, played, "/markets", tickers=first, event_ticker=other["event_ticker"])["markets"] == []
    of_series = walk(http, played, "/markets", "markets", series_ticker=event["series_ticker"])
    assert first in {one["ticker"] for one in of_series}
    fresh = walk(http, played, "/markets", "markets", min_created_ts=START_MS // 1000, status="open")
    assert fresh
    assert all(one["created_time"] >= "2026-11-18" for one in fresh)
    for query in (
        {"min_created_ts": 1, "max_close_ts": 2},
        {"min_created_ts": 1, "status": "settled"},
        {"min_close_ts": 1, "status": "open"},
        {"min_updated_ts": 1, "status": "open"},
        {"min_updated_ts": 1, "tickers": first},
        {"min_updated_ts": 1, "event_ticker": event["event_ticker"]},
        {"min_updated_ts": 1, "mve_filter": "only"},
    ):
        assert refusal(http, played, "/markets", **query)[0] == 400


def test_a_new_market_is_unknown_to_rest_for_a_moment(sandbox, http):
    play(sandbox, 14 * SECOND)
    known = len(sandbox.exchange.markets)
    while len(sandbox.exchange.markets) == known:
        play(sandbox, 100)
    ticker = list(sandbox.exchange.markets)[known]

    assert refusal(http, sandbox, f"/markets/{ticker}")[0] == 404
    assert not get(http, sandbox, "/markets", tickers=ticker)["markets"]
    play(sandbox, 2 * SECOND)
    assert get(http, sandbox, f"/markets/{ticker}")["market"]["status"] == "initialized"


def test_a_market_carries_neither_series_nor_category_and_its_asks_are_one_minus_the_other_bid(played, http):
    for market in walk(http, played, "/markets", "markets", status="open", limit=1000):
        assert not {"category", "series_ticker"} & market.keys()
        for ask, bid in (("yes_ask_dollars", "no_bid_dollars"), ("no_ask_dollars", "yes_bid_dollars")):
            assert round(float(market[ask]) + float(market[bid]), 6) == 1
        assert len(market["yes_bid_dollars"].partition(".")[2]) in (4, 6)


def test_prices_of_every_order_are_on_the_markets_grid(played, http):
    structures = set()
    for market in played.exchange.markets.values():
        if market.status != "active" or market.extra.get("is_provisional"):
            continue
        changed = len(market.grid.bands) == 1 and market.grid.structure == "deci_cent"
        structures.add(market.grid.structure)
        for side in ("BUY", "SELL"):
            for price in market.book.side(side)[0]:
                assert changed or market.grid.on_grid(side, price) == price
    assert len(structures) >= 3


# --- Events and series ---


def test_events_are_found_by_the_states_of_their_markets_and_nest_them_when_asked(played, http):
    for event in walk(http, played, "/events", "events", status="open", with_nested_markets="true"):
        assert any(market["status"] == "active" for market in event["markets"])
    ticker = get(http, played, "/events", limit=1)["events"][0]["event_ticker"]
    beside = get(http, played, f"/events/{ticker}")
    inside = get(http, played, f"/events/{ticker}", with_nested_markets="true")
    assert beside["markets"] == inside["event"].pop("markets")
    assert beside["event"] == inside["event"]
    assert refusal(http, played, "/events", status="paused")[0] == 400
    assert get(http, played, f"/events/{ticker}/metadata")["image_url"].startswith("/")


def test_all_series_come_at_once(played, http):
    series = get(http, played, "/series", include_volume="true")
    assert set(series) == {"series"}
    assert {one["ticker"] for one in series["series"]} == set(played.exchange.series)
    sports = get(http, played, "/series", category="Sports", tags="Basketball")["series"]
    assert {(one["category"], *one["tags"]) for one in sports} == {("Sports", "Basketball")}
    assert get(http, played, f"/series/{sports[0]['ticker']}")["series"] == sports[0]
    tags = get(http, played, "/search/tags_by_categories")["tags_by_categories"]
    assert tags["Elections"] is None
    assert "BTC" in tags["Crypto"]


# --- Books ---


def test_a_book_has_bids_of_both_sides_worst_first_and_depth_keeps_the_best(played, http):
    ticker = open_tickers(http, played, 1)[0]
    whole = get(http, played, f"/markets/{ticker}/orderbook")["orderbook_fp"]
    best = get(http, played, f"/markets/{ticker}/orderbook", depth=2)["orderbook_fp"]

    for side in ("yes_dollars", "no_dollars"):
        prices = [float(price) for price, _ in whole[side]]
        assert prices == sorted(prices)
        assert best[side] == whole[side][-2:]
    assert float(whole["yes_dollars"][-1][0]) + float(whole["no_dollars"][-1][0]) < 1
    assert refusal(http, played, f"/markets/{ticker}/orderbook", depth=101)[0] == 400


def test_books_of_a_list_with_commas_are_one_empty_book(played, http):
    first, second = open_tickers(http, played, 2)

    repeated = get(http, played, "/markets/orderbooks", tickers=[first, second])["orderbooks"]
    with_commas = get(http, played, "/markets/orderbooks", tickers=f"{first},{second}")["orderbooks"]

    assert [one["ticker"] for one in repeated] == [first, second]
    assert all(one["orderbook_fp"]["yes_dollars"] for one in repeated)
    assert with_commas == [{"ticker": f"{first},{second}", "orderbook_fp": {"yes_dollars": [], "no_dollars": []}}]
    assert refusal(http, played, "/markets/orderbooks", tickers=["A"] * 101)[0] == 400


def test_books_are_up_to_15_seconds_old(sandbox, http):
    play(sandbox, SECOND)
    ticker = open_tickers(http, sandbox, 1)[0]
    url = f"{sandbox.rest_url}/markets/{ticker}/orderbook"

    first = http.get(url)
    market = sandbox.exchange.markets[ticker]
    sandbox.call(lambda: sandbox.exchange.cancel_orders(market))
    play(sandbox, 13 * SECOND)
    second = http.get(url)
    play(sandbox, 3 * SECOND)
    third = http.get(url)

    assert first.headers["cache-control"] == "public, max-age=15"
    assert second.json() == first.json()
    assert third.json() != first.json()


# --- Trades and candles ---


def test_trades_come_newest_first_and_those_before_the_cutoff_are_historical(played, http):
    cutoff = get(http, played, "/historical/cutoff")
    live = walk(http, played, "/markets/trades", "trades", limit=1000)
    old = walk(http, played, "/historical/trades", "trades", limit=1000)

    assert cutoff["market_settled_ts"] == cutoff["trades_created_ts"] == "2026-08-20T00:00:00Z"
    for trades in (live, old):
        times = [ms(one["created_time"]) for one in trades]
        assert times == sorted(times, reverse=True)
    assert old[0]["created_time"] < cutoff["trades_created_ts"] <= live[-1]["created_time"]
    assert not {one["trade_id"] for one in live} & {one["trade_id"] for one in old}
    blocks = walk(http, played, "/markets/trades", "trades", limit=1000, is_block_trade="true")
    assert blocks == [one for one in live if one["is_block_trade"]]
    some = get(http, played, "/markets/trades", min_ts=START_MS // 1000, max_ts=START_MS // 1000 + 10)["trades"]
    assert some
    assert all("2026-11-18" in one["created_time"] for one in some)


def test_markets_settled_before_the_cutoff_are_historical_and_their_events_stay(played, http):
    old = walk(http, played, "/historical/markets", "markets")

    assert len(old) > 20
    assert all(one["settlement_ts"] < "2026-08-20" for one in old)
    ticker, event = old[0]["ticker"], old[0]["event_ticker"]
    assert refusal(http, played, f"/markets/{ticker}")[0] == 404
    assert get(http, played, f"/historical/markets/{ticker}")["market"] == old[0]
    assert get(http, played, f"/events/{event}")["markets"] == []
    live = open_tickers(http, played, 1)[0]
    assert refusal(http, played, f"/historical/markets/{live}")[0] == 404
    assert refusal(http, played, "/historical/markets", tickers="A", event_ticker="B")[0] == 400
    asked = {"start_ts": 0, "end_ts": START_MS // 1000, "period_interval": 1440}
    candles = get(http, played, f"/historical/markets/{ticker}/candlesticks", **asked)["candlesticks"]
    assert {"open", "high", "low", "close"} <= candles[0]["price"].keys()
    assert isinstance(candles[0]["volume"], str)
    assert (candles[0]["yes_bid"]["close"], candles[0]["yes_ask"]["close"]) == ("0.0000", "1.0000"), "no orders"
    assert get(http, played, "/markets/candlesticks", market_tickers=ticker, **asked)["markets"] == []
    series = played.exchange.events[event].series.ticker
    assert get(http, played, f"/series/{series}/events/{event}/candlesticks", **asked)["market_candlesticks"] == []


def test_candles_are_made_of_the_trades(played, http):
    ticker = max(played.exchange.markets.values(), key=lambda one: one.volume if one.status == "active" else 0).ticker
    market = get(http, played, f"/markets/{ticker}")["market"]
    series = get(http, played, f"/events/{market['event_ticker']}")["event"]["series_ticker"]
    asked = {"start_ts": START_MS // 1000 - DAY, "end_ts": START_MS // 1000 + DAY, "period_interval": 1}
    candles = get(http, played, f"/series/{series}/markets/{ticker}/candlesticks", **asked)
    trades = walk(http, played, "/markets/trades", "trades", ticker=ticker, limit=1000)

    assert candles["ticker"] == ticker
    ends = [one["end_period_ts"] for one in candles["candlesticks"]]
    assert all(end % 60 == 0 for end in ends)
    assert ends == sorted(set(ends))
    assert ends[-1] <= played.exchange.now_ms / 1000, "only closed periods"
    for candle in candles["candlesticks"]:
        prints = [
            one
            for one in reversed(trades)
            if 0 <= candle["end_period_ts"] * 1000 - ms(one["created_time"]) - 1 < MINUTE
        ]
        assert round(sum(float(one["count_fp"]) for one in prints), 2) == float(candle["volume_fp"])
        if prints:
            prices = [one["yes_price_dollars"] for one in prints]
            assert candle["price"]["open_dollars"] == prices[0]
            assert candle["price"]["close_dollars"] == prices[-1]
            assert candle["price"]["high_dollars"] == max(prices)
            assert candle["price"]["low_dollars"] == min(prices)
    many = get(http, played, "/markets/candlesticks", market_tickers=f"{ticker},none", **asked)["markets"]
    assert many == [{"market_ticker": ticker, "candlesticks": candles["candlesticks"]}]
    later = {**asked, "start_ts": ends[-1], "include_latest_before_start": "true"}
    some = get(http, played, f"/series/{series}/markets/{ticker}/candlesticks", **later)["candlesticks"]
    assert [one["end_period_ts"] for one in some] == ends[-2:]


def ms(time_text):
    return round(datetime.fromisoformat(time_text).timestamp() * 1000)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"start_ts": 0, "end_ts": 1, "period_interval": 5},
        {"start_ts": 2, "end_ts": 1, "period_interval": 1},
        {"start_ts": "x", "end_ts": 1, "period_interval": 1},
    ],
)
def test_candles_of_no_period_are_refused(played, http, query):
    assert refusal(http, played, "/markets/candlesticks", market_tickers="A", **query)[0] == 400
    ticker = open_tickers(http, played, 1)[0]
    series = played.exchange.markets[ticker].event.series.ticker
    assert refusal(http, played, f"/series/{series}/markets/{ticker}/candlesticks", **query)[0] == 400


# --- The exchange ---


def test_the_schedule_pauses_on_thursdays(played, http):
    (hours,) = get(http, played, "/exchange/schedule")["schedule"]["standard_hours"]
    assert [session["close_time"] for session in hours["thursday"]] == ["03:00", "24:00"]
    assert [session["open_time"] for session in hours["thursday"]] == ["00:00", "05:00"]
