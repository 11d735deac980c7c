"""Markets of a second exchange: served when they are asked for, and no more."""

from __future__ import annotations

import datetime as dt

import pytest

from orchestration.candles import activity, aggregates
from tests.factories import add_trades, insert

NOW = dt.datetime.now(dt.UTC)
TICKER = "KXRAIN-26NOV-T0.5"
pytestmark = pytest.mark.usefixtures("present")


@pytest.fixture
def both(conn, add_market):
    """A market of each exchange, alike in everything that lists go by."""
    now = dt.datetime.now(dt.UTC)
    alike = {
        "question": "Will it rain?",
        "category": "weather",
        "tags": ["rain"],
        "created_at": now - dt.timedelta(hours=1),
        "end_time": now + dt.timedelta(minutes=30),
    }
    main = add_market("rain", series="daily-rain", **alike)
    tokens = [f"{TICKER}:yes", f"{TICKER}:no"]
    other = add_market(
        TICKER.lower(), market_id=TICKER, gamma_id=None, exchange="kalshi", series="KXRAIN", token_ids=tokens, **alike
    )
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
    activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))
    return main, other


def found(answer):
    assert answer.status_code == 200, answer.text
    rows = answer.json if isinstance(answer.json, list) else answer.json["data"]
    return [row["market_id"] for row in rows]


LISTS = {
    "/v1/markets": {},
    "/v1/markets/search": {"q": "rain"},
    "/v1/markets/new": {},
    "/v1/markets/resolving": {},
    "/v1/categories/weather/markets": {},
}


@pytest.mark.parametrize("path", ["/v1/markets/top", "/v1/markets/trending", "/v1/markets/breaking"])
def test_a_ranking_has_one_exchanges_markets(client, conn, both, path):
    now = dt.datetime.now(dt.UTC)
    figures = {f"{what}_{period}": 9_000_000 for what in ("value", "trades") for period in ("1h", "24h", "7d")}
    for market, exchange in zip(both, ("polymarket", "kalshi"), strict=True):
        row = {"market_key": market["market_key"], "exchange": exchange, "computed_at": now, **figures}
        insert(conn, "market_activity", row | {"spike_ratio": 2.0, "price_move": 1000})

    assert found(client.ask(path)) == [both[0]["market_id"]]
    assert found(client.ask(path, exchange="kalshi")) == [TICKER]


def test_totals_are_one_exchanges(client, conn, both, add_trades):
    add_trades(both[0], [{}] * 3)
    add_trades(both[1], [{}] * 2)
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
    ours, theirs = (client.ask("/v1/stats", **of).json for of in ({}, {"exchange": "kalshi"}))

    assert (ours["total_markets"], ours["trades_24h"]) == (1, 3)
    assert (theirs["total_markets"], theirs["trades_24h"]) == (1, 2)
    assert theirs["onchain_trades_total"] is None


def test_recent_activity_knows_its_exchange(conn, both, add_trades):
    for market in both:
        add_trades(market, [{}] * 3)
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
    activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))

    known = dict(conn.execute("select market_key, exchange from market_activity").fetchall())
    assert known == {both[0]["market_key"]: "polymarket", both[1]["market_key"]: "kalshi"}


@pytest.mark.parametrize("path", LISTS)
def test_a_list_has_one_exchanges_markets(client, both, path):
    main, _ = both

    assert found(client.ask(path, **LISTS[path])) == [main["market_id"]]
    assert found(client.ask(path, **LISTS[path], exchange="polymarket")) == [main["market_id"]]
    assert found(client.ask(path, **LISTS[path], exchange="kalshi")) == [TICKER]


@pytest.mark.parametrize("filters", [{}, {"asset": "rain"}, {"asset": "ra"}])
def test_timeframes_have_one_exchanges_markets(client, both, filters):
    def markets(**given):
        timeframes = client.ask("/v1/markets/by-timeframe", **filters, **given).json["timeframes"]
        return [(market["market_id"], each["count"]) for each in timeframes for market in each["markets"]]

    main, _ = both

    assert markets() == [(main["market_id"], 1)]
    assert markets(exchange="kalshi") == [(TICKER, 1)]


@pytest.mark.parametrize("name", ["categories", "tags", "series"])
def test_names_are_counted_by_exchange(client, both, name):
    main = client.ask(f"/v1/{name}").json
    other = client.ask(f"/v1/{name}", exchange="kalshi").json

    assert [each["market_count"] for each in (*main, *other)] == [1, 1]
    if name == "series":
        assert (main[0]["series"], other[0]["series"]) == ("daily-rain", "KXRAIN")


def test_its_market_is_found_by_ticker_and_by_slug(client, both):
    for name in (TICKER, TICKER.lower()):
        market = client.ask(f"/v1/markets/{name}").json

        assert (market["market_id"], market["exchange"]) == (TICKER, "kalshi")
        assert market["token_ids"] == [f"{TICKER}:yes", f"{TICKER}:no"]


def test_an_unknown_exchange_is_refused_with_those_that_there_are(client, both):
    answer = client.ask("/v1/markets", exchange="manifold")

    assert answer.status_code == 400
    assert answer.json["errors"][0]["name"] == "exchange"
    assert "kalshi" in answer.json["errors"][0]["allowed"]


def test_the_exchange_itself_is_asked_for_its_own_markets_alone(client, both):
    answer = client.ask("/v1/markets", exchange="kalshi", source="polymarket")

    assert answer.status_code == 400
    assert answer.json["errors"][0]["name"] == "exchange"


def test_coverage_is_off_where_nothing_of_it_is_recorded(client, conn, both):
    recorded = {"ts": NOW - dt.timedelta(days=1), "feed": "polymarket", "run_id": "r"}
    insert(conn, "feed_stats", {**recorded, "messages": 1, "rows": 1, "lag_counts": []})
    conn.execute("update stage_clocks set last_data_at = now(), beat_at = now() where stage = 'ingestion'")
    insert(
        conn,
        "coverage_gaps",
        {"kind": "books", "cause": "test", "from_ts": NOW - dt.timedelta(minutes=9), "to_ts": NOW},
    )
    conn.execute(
        "insert into coverage_days (day, kind, listed, held, added, unlisted, unknown, agrees)"
        " values (%s, 'trades', 0, 0, 0, 0, 0, true)",
        [NOW.date()],
    )

    main = client.ask("/v1/markets/rain/coverage").json
    other = client.ask(f"/v1/markets/{TICKER}/coverage").json

    assert {kind["status"] for kind in other["kinds"]} == {"off"}
    assert all((kind["spans"], kind["from_ts"]) == ([], None) for kind in other["kinds"])
    assert (other["days"], other["data"]) == ([], [])
    assert main["data"]
    assert main["days"]


RECORDED = ["orderbook", "price", "price-history", "trades", "stats", "sentiment", "summary", "health", "signals"]


@pytest.mark.parametrize("path", RECORDED)
def test_what_was_never_recorded_is_said(client, both, path):
    answer = client.ask(f"/v1/markets/{TICKER}/{path}")

    assert answer.status_code == 404
    assert answer.json["detail"] == "Prices, order books and trades of Kalshi are not recorded"


def test_once_it_is_recorded_a_market_without_trades_has_none(client, conn, both):
    insert(conn, "settings", {"name": "recorded_since_kalshi", "value": str(int(NOW.timestamp() * 1000))})

    assert client.ask(f"/v1/markets/{TICKER}/trades").json == []
    assert client.ask(f"/v1/markets/{TICKER}/stats").json["trades"] == 0


def test_lists_of_trades_and_signals_are_of_one_exchange(client, conn, both):
    assert client.ask("/v1/trades/recent", exchange="kalshi", limit=7).json == [], "nothing was recorded"
    began = NOW - dt.timedelta(hours=1)
    insert(conn, "settings", {"name": "recorded_since_kalshi", "value": str(int(began.timestamp() * 1000))})
    keys = {name: key for key, name in conn.execute("select market_key, exchange from markets")}
    for name, price in (("polymarket", "0.4"), ("kalshi", "0.7")):
        add_trades(conn, {"market_key": keys[name]}, [{"price": price}])
        measures = {"value": 2.0, "threshold": 1.0, "score": 2.0, "window_s": 60, "detail": "{}", "outcome": 0}
        given = {"market_key": keys[name], "ts": NOW, "type": "momentum", "signal_id": keys[name], **measures}
        insert(conn, "signals", given)

    for given, price, market_id in (({}, 0.4, both[0]["market_id"]), ({"exchange": "kalshi"}, 0.7, TICKER)):
        (trade,) = client.ask("/v1/trades/recent", **given).json
        (signal,) = client.ask("/v1/signals/top", **given).json["data"]
        assert (trade["price"], trade["market_id"], signal["market_id"]) == (price, market_id, market_id)


def test_recent_trades_of_an_exchange_that_is_not_recorded_any_more_are_looked_for_where_they_are(client, conn, both):
    began, ended = NOW - dt.timedelta(days=41), NOW - dt.timedelta(days=40)
    insert(conn, "settings", {"name": "recorded_since_kalshi", "value": str(int(began.timestamp() * 1000))})
    conn.execute("update stage_clocks set last_data_at = %s where stage = 'ingestion_kalshi'", [ended])
    keys = {name: key for key, name in conn.execute("select market_key, exchange from markets")}
    add_trades(conn, {"market_key": keys["kalshi"]}, [{"ts": ended, "price": "0.7"}, {"ts": NOW, "price": "0.8"}])
    add_trades(conn, {"market_key": keys["polymarket"]}, [{"ts": NOW, "price": "0.4"}])

    (trade,) = client.ask("/v1/trades/recent", exchange="kalshi").json

    assert trade["price"] == 0.7, "the later one is beyond its last data"

    # Turned on, its data ends where its slowest shard does.
    conn.execute("update stage_clocks set detail = '{}' where stage = 'ingestion_kalshi'")
    trades = client.ask("/v1/trades/recent", exchange="kalshi", limit=9).json  # which is not in the cache
    assert [trade["price"] for trade in trades] == [0.8, 0.7]


def test_coverage_is_of_one_exchange_and_its_pages_go_on(client, conn, both):
    for name, count in (("polymarket", 1), ("kalshi", 3)):
        for nth in range(count):
            span = {"from_ts": NOW - dt.timedelta(minutes=9 + nth), "to_ts": NOW}
            insert(conn, "coverage_gaps", {"kind": "books", "cause": name, "exchange": name, **span})
        conn.execute(
            "insert into coverage_days (day, kind, listed, held, added, unlisted, unknown, agrees)"
            " values (%s, own('trades', %s), %s, 0, 0, 0, 0, false)",
            [NOW.date(), name, count],
        )

    main = client.ask("/v1/coverage").json
    first = client.ask("/v1/coverage", exchange="kalshi", limit=2).json
    rest = client.ask("/v1/coverage", exchange="kalshi", limit=2, cursor=first["next_cursor"]).json

    assert [each["cause"] for each in main["data"]] == ["polymarket"]
    assert [each["cause"] for each in (*first["data"], *rest["data"])] == ["kalshi"] * 3
    assert [[day["listed"] for day in each["days"]] for each in (main, first)] == [[1], [3]]
    of_market = client.ask(f"/v1/markets/{TICKER}/coverage").json
    assert [(day["kind"], day["agrees"]) for day in (*first["days"], *of_market["days"])] == [
        ("trades", False),
        ("trades", True),
    ]
    assert {kind["kind"]: kind["status"] for kind in first["kinds"]}["settlements"] == "off"
    other = client.ask("/v1/coverage", limit=2, cursor=first["next_cursor"])
    assert (other.status_code, other.json["code"]) == (400, "invalid_cursor")


@pytest.mark.parametrize(("path", "given"), [("positions", {}), ("trades", {"source": "data-api"})])
def test_who_trades_is_asked_only_of_an_exchange_that_says_it(client, both, path, given):
    answer = client.ask(f"/v1/markets/{TICKER}/{path}", **given)

    assert answer.status_code == 404
    assert answer.json["detail"] == "Kalshi does not say who holds or trades its markets"


def test_a_volume_of_nothing_is_zero_where_trades_are_recorded_and_null_elsewhere(client, conn, both):
    def volumes():
        return [client.ask(f"/v1/markets/{name}").json["volume_24h_usd"] for name in ("rain", TICKER)]

    assert volumes() == [0, None]
    conn.execute("update stage_clocks set detail = '{}' where stage = 'ingestion_kalshi'")
    assert volumes() == [0, 0]


def test_totals_are_of_polymarket_unless_another_is_asked_for(client, both):
    assert client.ask("/v1/stats").json["total_markets"] == 1


@pytest.mark.parametrize("name", [TICKER.lower(), TICKER, f"Kalshi:{TICKER}"])
def test_a_charts_symbol_names_its_exchange_and_is_not_taken_for_an_outcomes(client, both, add_market, name):
    add_market("kxrain-26nov-t0", market_id="KXRAIN-26NOV-T0", gamma_id=None, exchange="kalshi")

    main, other = (client.ask("/v1/udf/symbols", symbol=each).json for each in ("rain", name))

    assert (main["exchange"], other["exchange"]) == ("Polymarket", "Kalshi")
    assert other["ticker"] == TICKER.lower()


def test_no_of_an_exchange_that_lists_yes_alone_has_the_complements_candles(client, conn, both):
    insert(conn, "settings", {"name": "recorded_since_kalshi", "value": str(int(NOW.timestamp() * 1000))})
    at = (NOW - dt.timedelta(minutes=10)).replace(second=10, microsecond=0)
    prices = ("0.3", "0.45", "0.2")
    trades = [{"ts": at + dt.timedelta(milliseconds=n), "price": price} for n, price in enumerate(prices)]
    add_trades(conn, both[1], trades)

    for resolution, fill in (("1s", "none"), ("1m", "none"), ("1m", "previous")):
        given = {"resolution": resolution, "fill": fill, "from": (at - dt.timedelta(minutes=1)).isoformat()}
        yes, no = (
            next(
                each
                for each in client.ask(f"/v1/markets/{TICKER}/price-history", outcome=of, **given).json
                if each["trades"]
            )
            for of in (0, 1)
        )
        assert [yes[each] for each in ("open", "high", "low", "close")] == [0.3, 0.45, 0.2, 0.2]
        assert [no[each] for each in ("open", "high", "low", "close")] == [0.7, 0.8, 0.55, 0.8]
        assert (no["volume"], no["trades"]) == (yes["volume"], 3) == (30, 3)
        assert (yes["volume_usd"], no["volume_usd"]) == (9.5, 20.5)

    span = {"from": int(at.timestamp()) - 60, "to": int(at.timestamp()) + 60, "resolution": "1"}
    bars = client.ask(f"/v1/markets/{TICKER}/candles", outcome=1, **span).json
    chart = client.ask("/v1/udf/history", symbol=f"{TICKER.lower()}.1", **span).json
    for found in (bars, chart):
        assert [found[each] for each in "ohlcv"] == [[0.7], [0.8], [0.55], [0.8], [30]]


def test_symbols_are_found_by_exchange(client, both):
    def found(**given):
        return [symbol["full_name"] for symbol in client.ask("/v1/udf/search", query="rain", **given).json]

    assert found() == found(exchange="Polymarket") == ["Polymarket:rain"]
    assert found(exchange="Kalshi") == [f"Kalshi:{TICKER.lower()}"]
    assert [each["value"] for each in client.ask("/v1/udf/config").json["exchanges"]] == ["polymarket", "kalshi"]
