"""Lists of markets, each in its own order."""

from __future__ import annotations

import datetime as dt
import re
from email.utils import parsedate_to_datetime

import pytest

from config import tunables as parameters
from orchestration.candles import activity, aggregates
from tests.factories import go_live, insert

NOW = dt.datetime.now(dt.UTC)
pytestmark = pytest.mark.usefixtures("present")


def ago(**how_long):
    return NOW - dt.timedelta(**how_long)


def ahead(**how_long):
    return NOW + dt.timedelta(**how_long)


def slugs(answer):
    assert answer.status_code == 200, answer.text
    markets = answer.json if isinstance(answer.json, list) else answer.json["data"]
    return [market["slug"] for market in markets]


@pytest.fixture
def compute(conn):
    """What is computed once a minute."""

    def once():
        aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
        return activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))

    return once


@pytest.fixture
def traded(add_market, add_trades):
    """`traded("rain", (minutes ago, size), …)` makes a market with trades at 0.5."""

    def make(slug, *trades, outcome=0, **columns):
        market = add_market(slug, **columns)
        rows = [{"ts": ago(minutes=minutes), "size": size} for minutes, size in sorted(trades, reverse=True)]
        add_trades(market, rows, outcome=outcome)
        return market

    return make


# --- Search


@pytest.mark.parametrize("q", ["Rain", "rAIn in p", "rain-in-paris", "WEATHER OF", "in"])
def test_a_search_finds_part_of_question_slug_or_title_in_any_case(client, add_market, q):
    add_market("rain-in-paris", question="Will it rain in Paris?", event_title="The weather of May")
    add_market("election", question="Who won?", event_title="Votes")

    assert slugs(client.ask("/v1/markets/search", q=q)) == ["rain-in-paris"]


def test_a_search_takes_signs_as_they_are(client, add_market):
    add_market("a", question="Is it 100% sure?")
    add_market("b", question="Is it 100 or sure_enough?")

    assert slugs(client.ask("/v1/markets/search", q="100%")) == ["a"]
    assert slugs(client.ask("/v1/markets/search", q="e_e")) == ["b"]
    assert slugs(client.ask("/v1/markets/search", q="%")) == ["a"]
    assert slugs(client.ask("/v1/markets/search", q="\\")) == []


def test_what_a_search_finds_is_most_traded_first_and_no_more_than_asked_for(client, add_market, traded, compute):
    traded("coin-busy", (10, 50))
    add_market("coin-old")
    add_market("coin-new")
    traded("coin-busiest", (10, 500), status="CLOSED")
    compute()

    assert slugs(client.ask("/v1/markets/search", q="coin")) == ["coin-busiest", "coin-busy", "coin-new", "coin-old"]
    assert slugs(client.ask("/v1/markets/search", q="co")) == ["coin-busiest", "coin-busy", "coin-new", "coin-old"]
    assert slugs(client.ask("/v1/markets/search", q="coin", limit=1)) == ["coin-busiest"]
    assert slugs(client.ask("/v1/markets/search", q="coin", status="ACTIVE")) == ["coin-busy", "coin-new", "coin-old"]


@pytest.mark.parametrize("without", ["nestloop", "hashjoin", "mergejoin"])
def test_the_most_traded_is_found_first_whatever_the_plan(client, add_market, traded, compute, conn, without):
    for number in range(20):
        traded(f"coin-{number:02}", (10, number + 1), **({"status": "CLOSED"} if number % 3 == 1 else {}))
    compute()
    conn.execute(f"set enable_{without} = off")

    for limit in (1, 2, 5):
        found = slugs(client.ask("/v1/markets/search", q="coin", limit=limit))
        assert found == [f"coin-{number:02}" for number in range(19, 19 - limit, -1)]


def test_what_many_titles_contain_is_found_among_the_busiest_and_the_rest(
    client, add_market, traded, compute, monkeypatch
):
    monkeypatch.setattr("api.endpoints.markets.lists.MAX_BUSIEST", 2)
    monkeypatch.setattr("api.endpoints.markets.lists.MAX_NEWEST", 0)
    monkeypatch.setattr("api.endpoints.markets.lists.MAX_TITLED", 3)
    for number in (1, 2, 3):
        traded(f"coin-{number}", (10, number))
    for number in range(5):
        add_market(f"coin-quiet-{number}")
    compute()

    assert slugs(client.ask("/v1/markets/search", q="coin", limit=2)) == ["coin-3", "coin-2"]
    assert slugs(client.ask("/v1/markets/search", q="coin", limit=3))[:2] == ["coin-3", "coin-2"]
    assert len(set(slugs(client.ask("/v1/markets/search", q="coin", limit=4)))) == 3

    monkeypatch.setattr("api.endpoints.markets.lists.MAX_NEWEST", 3)
    newest = ["coin-quiet-4", "coin-quiet-3", "coin-quiet-2"]
    assert slugs(client.ask("/v1/markets/search", q="coin", limit=5)) == ["coin-3", "coin-2", *newest]
    assert slugs(client.ask("/v1/markets/search", q="coin", limit=3, status="RESOLVED")) == []
    assert slugs(client.ask("/v1/markets/search", q="co", limit=4))[2:] == ["coin-quiet-4", "coin-quiet-3"]


# --- Rankings


@pytest.mark.parametrize(
    ("asked", "order"),
    [
        ({}, ["day", "hour", "many"]),
        ({"period": "1h"}, ["hour", "many"]),
        ({"period": "7d"}, ["week", "day", "hour", "many"]),
        ({"by": "trades"}, ["many", "day", "hour"]),
        ({"by": "trades", "period": "1h"}, ["many", "hour"]),
        ({"by": "trades", "period": "7d"}, ["many", "day", "hour", "week"]),
        ({"by": "volume", "limit": 2}, ["day", "hour"]),
    ],
)
def test_top_markets_are_those_with_most_volume_or_trades_of_a_period(client, traded, compute, asked, order):
    traded("week", (3 * 24 * 60, 10_000))
    traded("hour", (5, 500))
    traded("day", (300, 800), (301, 800))
    traded("many", *[(number, 1) for number in range(1, 10)])
    compute()

    found = slugs(client.ask("/v1/markets/top", **asked))

    assert found[: len(order)] == order or set(found) == set(order), found
    assert len(found) == len(order)


def test_a_top_market_shows_what_it_is_ranked_by_over_all_outcomes(client, add_trades, traded, compute):
    market = traded("both", (5, 100))
    add_trades(market, [{"ts": ago(minutes=7), "size": 300, "price": "0.5"}], outcome=1)
    compute()

    (top,) = client.ask("/v1/markets/top", period="1h").json

    assert (top["period_volume_usd"], top["period_trades"]) == (200, 2)


def test_the_volume_of_a_day_is_one_figure_wherever_it_stands(client, conn, add_trades, traded, compute):
    market = traded("both", (5, 100), volume_24h_usd=7_000_000)
    add_trades(market, [{"ts": ago(minutes=7), "size": 300, "price": "0.5"}], outcome=1)
    traded("less", (5, 100), volume_24h_usd=9_000_000)
    go_live(conn, market, mid=500_000)
    compute()
    aggregates.rank(conn, NOW)

    (top, _) = client.ask("/v1/markets/top").json
    listed = client.ask("/v1/markets").json["data"]
    detail = client.ask("/v1/markets/both").json
    records = [top, listed[0], client.ask("/v1/markets/search", q="both").json[0], detail]

    assert [market["slug"] for market in listed] == ["both", "less"]
    assert [record["volume_24h_usd"] for record in records] == [200] * 4
    assert [record["exchange_volume_24h_usd"] for record in records] == [7] * 4
    assert top["period_volume_usd"] == detail["price"]["volume_24h_usd"] == 200
    assert client.ask("/v1/markets/both/price").json["volume_24h_usd"] == 200
    assert detail["stats_24h"]["volume_usd"] == 50


def hourly(hours, size=100, minutes=30, each=10):
    """Some trades of so many USD in all, in each of some hours."""
    return [(60 * hour + minutes + n / 10, size / each * 2) for hour in hours for n in range(each)]


def trending(client):
    return [(row["slug"], row["spike_ratio"]) for row in client.ask("/v1/markets/trending").json["data"]]


def test_trending_markets_are_those_whose_last_hour_stands_out(client, traded, compute):
    traded("steady", *hourly(range(25), size=300))
    traded("spike", *hourly(range(1, 25)), *hourly([0], size=2400))
    traded("ended", *hourly([0], size=1000), status="CLOSED")
    traded("over", *hourly([2], size=1000))
    compute()

    answer = client.ask("/v1/markets/trending").json

    assert [market["slug"] for market in answer["data"]] == ["spike", "steady"]
    spike = answer["data"][0]
    assert spike["vol_1h"] == 2400
    assert spike["vol_24h"] == 4700
    assert spike["spike_ratio"] == pytest.approx(2400 / (4700 / 24), abs=1e-4)
    assert answer["count"] == 2


def test_a_young_market_is_compared_with_the_hours_that_it_has(client, traded, compute):
    """Counted from the start of the first trade's hour on."""
    traded("young", *hourly(range(1, 6)), *hourly([0], size=1000))
    traded("quiet", *hourly([30]), *hourly([0], size=1000))  # traded two days ago: its day is a whole one
    traded("new", *hourly([0, 1], size=5000))
    traded("newest", *hourly([0], size=4000))
    compute()

    first, second, *rest = trending(client)

    assert first == ("quiet", pytest.approx(24, abs=1e-4))
    begun = ago(minutes=60 * 5 + 30.9).replace(minute=0, second=0, microsecond=0)
    computed_at = client.ask("/v1/markets/trending").json["computed_at"]
    hours = (computed_at - begun.timestamp()) / 3600
    assert second == ("young", pytest.approx(1000 / (1500 / hours), abs=1e-3))
    # With nothing to compare with, what is traded most comes first.
    assert rest == [("new", None), ("newest", None)]


def test_a_fresh_database_has_no_ratios_and_ranks_by_volume(client, traded, compute):
    for name, size in (("small", 300), ("large", 3000), ("middle", 1000)):
        traded(name, *hourly([0], size=size))
    compute()

    assert trending(client) == [("large", None), ("middle", None), ("small", None)]


def test_markets_that_hardly_trade_are_not_trending(client, conn, traded, compute):
    traded("thin", *hourly(range(3, 24)), *hourly([0], size=5000, each=9))
    traded("cheap", *hourly(range(3, 24), size=1), *hourly([0], size=249))
    traded("enough", *hourly(range(3, 24)), *hourly([0], size=250))
    compute()
    assert [slug for slug, _ in trending(client)] == ["enough"]

    parameters.set_(conn, "signal_min_trades", "9")
    compute()
    assert [row["slug"] for row in client.ask("/v1/markets/trending", limit=50).json["data"]] == ["thin", "enough"]


def test_of_alike_ratios_the_larger_volume_comes_first(client, traded, compute):
    for name, size in (("small", 300), ("large", 3000)):
        traded(name, *hourly(range(24), size=size))
    compute()

    (first, one), (second, other) = trending(client)

    assert (first, second) == ("large", "small")
    assert one == other


def quoted(conn, market, samples, now):
    key = market["market_key"]
    for minutes, mid in samples:
        insert(conn, "quotes", {"ts": ago(minutes=minutes), "market_key": key, "outcome": 0, "mid": mid})
    insert(conn, "live_prices", {"market_key": key, "outcome": 0, "mid": now, "ts": NOW})


def test_breaking_markets_are_those_whose_price_moved_most_since_the_earliest_sample_of_65_minutes(
    client, conn, add_market, compute
):
    quoted(conn, add_market("up"), [(120, 100_000), (60, 400_000), (5, 450_000)], 500_000)
    quoted(conn, add_market("down"), [(64, 700_000), (30, 300_000)], 300_000)
    quoted(conn, add_market("still"), [(50, 200_000)], 200_000)
    quoted(conn, add_market("ended", status="RESOLVED"), [(50, 200_000)], 900_000)
    compute()

    answer = client.ask("/v1/markets/breaking").json

    shown = [(m["slug"], m["price_baseline"], m["price_now"], m["price_move"]) for m in answer["data"]]
    assert shown == [("down", 0.7, 0.3, -0.4), ("up", 0.4, 0.5, 0.1)]
    assert answer["count"] == 2


def test_where_nothing_was_quoted_the_first_trade_is_the_baseline(client, conn, add_market, add_trades, compute):
    market = add_market("traded")
    add_trades(market, [{"ts": ago(minutes=50), "price": "0.2"}, {"ts": ago(minutes=5), "price": "0.6"}])
    insert(conn, "live_prices", {"market_key": market["market_key"], "outcome": 0, "last": 600_000, "ts": NOW})
    compute()

    (moved,) = client.ask("/v1/markets/breaking").json["data"]

    assert (moved["price_baseline"], moved["price_now"], moved["price_move"]) == (0.2, 0.6, 0.4)


def test_activity_that_stands_is_not_written_again_and_what_is_over_goes(conn, traded, compute):
    market = traded("rain", (30, 10))
    assert compute().written == 1

    assert compute().written == 0

    conn.execute("delete from trades where market_key = %s", [market["market_key"]])
    assert compute().gone == 1


def test_what_is_computed_says_when_that_was_also_where_nothing_changed(client, conn, traded):
    assert client.ask("/v1/markets/trending", limit=1).json == {"computed_at": None, "data": [], "count": 0}
    assert "Last-Modified" not in client.ask("/v1/markets/top", limit=1).headers
    traded("rain", (5, 10), category="weather", tags=["rain"], series="daily")
    counted, computed = ago(minutes=3), ago(minutes=1)
    activity.bring_up_to_date(conn, counted)
    assert activity.bring_up_to_date(conn, computed).written == 0

    for path in ("trending", "breaking", "rain/sentiment"):
        assert client.ask(f"/v1/markets/{path}").json["computed_at"] == int(computed.timestamp())
    for path, at in (("markets/top", computed), ("categories", counted), ("tags", counted), ("series", counted)):
        for tag in ("other", client.ask(f"/v1/{path}").headers["ETag"]):  # new, and as the client has it
            said = client.ask(f"/v1/{path}", headers={"If-None-Match": tag})
            assert parsedate_to_datetime(said.headers["Last-Modified"]) == at.replace(microsecond=0)
            assert said.status_code == (200 if tag == "other" else 304)
            assert re.fullmatch('"[0-9a-f]{32}"', said.headers["ETag"])  # of the body alone: it may outlast a pass


# --- By time


def test_resolving_markets_end_within_a_time_soonest_first(client, add_market):
    add_market("tomorrow", end_time=ahead(hours=23))
    add_market("soon", end_time=ahead(minutes=30))
    add_market("next-week", end_time=ahead(days=6))
    add_market("ended", end_time=ahead(minutes=20), status="CLOSED")
    add_market("overdue", end_time=ago(minutes=1))
    add_market("endless")

    answer = client.ask("/v1/markets/resolving")
    assert slugs(answer) == ["soon", "tomorrow"]
    assert (answer.json["count"], answer.json["within"]) == (2, "24h")
    soon = answer.json["data"][0]
    assert soon["resolves_at"] == int(ahead(minutes=30).timestamp())
    assert 1700 < soon["time_to_resolution"] <= 1800
    assert slugs(client.ask("/v1/markets/resolving", within="1h")) == ["soon"]
    assert slugs(client.ask("/v1/markets/resolving", within="7d")) == ["soon", "tomorrow", "next-week"]
    assert slugs(client.ask("/v1/markets/resolving", within="7d", offset=1, limit=1)) == ["tomorrow"]


def test_new_markets_are_those_listed_lately_newest_first(client, add_market):
    add_market("old", created_at=ago(hours=30))
    add_market("older", created_at=ago(days=8))
    add_market("new", created_at=ago(hours=1))
    add_market("newest", created_at=ago(minutes=1))

    answer = client.ask("/v1/markets/new")
    assert slugs(answer) == ["newest", "new"]
    assert (answer.json["hours"], answer.json["count"]) == (24, 2)
    assert slugs(client.ask("/v1/markets/new", hours=168)) == ["newest", "new", "old"]
    assert slugs(client.ask("/v1/markets/new", hours=168, offset=1, limit=1)) == ["new"]


def test_timeframes_hold_markets_by_the_time_left_to_them(client, add_market):
    ends = {"5m": 4, "15m": 14, "1h": 50, "4h": 200, "1d": 1000, "1w": 5000, "long": 20_000}
    for timeframe, minutes in ends.items():
        add_market(f"m-{timeframe}", end_time=ahead(minutes=minutes))
    add_market("m-later", end_time=ahead(minutes=4.5))
    add_market("over", end_time=ago(minutes=1))

    answer = client.ask("/v1/markets/by-timeframe", limit=1).json

    timeframes = answer["timeframes"]
    assert [found["timeframe"] for found in timeframes] == list(ends)
    assert [[market["slug"] for market in found["markets"]] for found in timeframes] == [[f"m-{name}"] for name in ends]
    assert [found["count"] for found in timeframes] == [2, 1, 1, 1, 1, 1, 1]
    assert 3 < timeframes[0]["markets"][0]["mins_until_close"] <= 4
    assert abs(answer["timestamp"] - NOW.timestamp()) < 60


def test_timeframes_of_an_asset_hold_what_names_it(client, add_market):
    add_market("btc-updown", end_time=ahead(minutes=4))
    add_market("x", question="Is BTC up?", end_time=ahead(minutes=3))
    add_market("eth-updown", end_time=ahead(minutes=4))
    add_market("btc-closed", end_time=ahead(minutes=4), status="CLOSED")

    first, second, *_ = client.ask("/v1/markets/by-timeframe", asset="btc").json["timeframes"]
    assert [market["slug"] for market in first["markets"]] == ["x", "btc-updown"]
    assert (first["count"], second["count"]) == (2, 0)
    closed = client.ask("/v1/markets/by-timeframe", asset="BTC", status="CLOSED", limit=1).json["timeframes"][0]
    assert [market["slug"] for market in closed["markets"]] == ["btc-closed"]


# --- Several, and none


def test_markets_are_compared_in_the_order_asked_for(client, traded, add_market, compute):
    traded("busy", (5, 100))
    add_market("quiet")
    compute()

    answer = client.ask("/v1/markets/compare", ids="quiet,missing,busy,quiet")

    assert slugs(answer) == ["quiet", "busy"]
    assert answer.json["count"] == 2
    assert answer.json["data"][0]["stats_24h"] is None
    assert answer.json["data"][1]["stats_24h"]["volume_usd"] == 50


@pytest.mark.parametrize("ids", [",", ",".join(f"m{number}" for number in range(11))])
def test_one_to_ten_markets_are_compared(client, ids):
    answer = client.ask("/v1/markets/compare", ids=ids)

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("search", {"q": "x", "limit": 101}),
        ("search", {}),
        ("search", {"q": ""}),
        ("top", {"limit": 51}),
        ("top", {"period": "2h"}),
        ("top", {"by": "noise"}),
        ("resolving", {"within": "2h"}),
        ("resolving", {"limit": 101}),
        ("trending", {"limit": 101}),
        ("trending", {"offset": 1}),
        ("breaking", {"limit": 0}),
        ("new", {"hours": 169}),
        ("new", {"limit": 101}),
        ("by-timeframe", {"limit": 101}),
        ("by-timeframe", {"status": "OPEN"}),
        ("compare", {}),
    ],
)
def test_what_is_not_allowed_is_refused(client, path, asked):
    assert client.ask(f"/v1/markets/{path}", **asked).status_code == 400


@pytest.mark.parametrize("path", ["top", "trending", "breaking", "search?q=x", "by-timeframe", "compare?ids=x"])
def test_computed_lists_cost_two_credits(client, path):
    answer = client.simulate_get(f"/v1/markets/{path}", headers={"X-API-Key": client.key})

    assert answer.headers["X-Request-Cost"] == "2"
