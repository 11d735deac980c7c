"""The UDF data feed behaves as TradingView's client expects."""

from __future__ import annotations

import datetime as dt

import pytest

from orchestration.candles import activity, aggregates
from tests.factories import go_live, insert

NOON = dt.datetime(2026, 5, 4, 12, tzinfo=dt.UTC)


def at(**after):
    return int((NOON + dt.timedelta(**after)).timestamp())


@pytest.fixture
def rain(add_market, add_trades):
    """Trades in two minutes, an hour later, and two days later."""
    market = add_market("rain", tick_size=1000, created_at=NOON)
    after = [(0, "0.5"), (20, "0.6"), (65, "0.4"), (3700, "0.7"), (172_800, "0.3")]
    add_trades(
        market, [{"ts": NOON + dt.timedelta(seconds=seconds), "price": price, "size": 10} for seconds, price in after]
    )
    return market


def test_it_says_what_it_can_do(client):
    config = client.ask("/v1/udf/config").json

    assert config["supports_search"] != config["supports_group_request"]  # else the client throws
    assert {"1S", "1", "5", "60", "1D"} <= set(config["supported_resolutions"])
    assert all(config[f"supports_{what}"] for what in ("time", "marks", "timescale_marks"))


def test_the_key_may_stand_in_the_address(client):
    answer = client.simulate_get("/v1/udf/config", params={"api_key": client.key})
    assert answer.status_code == 200
    assert answer.headers["X-Request-Cost"] == "1"

    for params in ({}, {"api_key": "wrong"}):
        refused = client.simulate_get("/v1/udf/config", params=params)
        assert (refused.status_code, refused.json["code"]) == (401, "invalid_api_key")
    elsewhere = client.simulate_get("/v1/markets", params={"api_key": client.key})
    assert elsewhere.status_code == 401


def test_the_time_is_a_number_as_text(client):
    answer = client.ask("/v1/udf/time")

    assert answer.headers["Content-Type"].startswith("text/plain")
    assert abs(int(answer.text) - dt.datetime.now(dt.UTC).timestamp()) < 60


@pytest.mark.parametrize(
    ("symbol", "ticker", "outcome"),
    [
        ("rain", "rain", "Yes"),
        ("RAIN", "rain", "Yes"),
        ("Polymarket:rain", "rain", "Yes"),
        ("rain.0", "rain", "Yes"),
        ("rain.1", "rain.1", "No"),
    ],
)
def test_a_symbol_is_described(client, rain, symbol, ticker, outcome):
    described = client.ask("/v1/udf/symbols", symbol=symbol, currencyCode="USD").json

    assert (described["name"], described["ticker"]) == (ticker, ticker)
    assert described["description"] == f"Rain? {outcome}"
    assert (described["minmov"], described["pricescale"]) == (1, 1000)
    assert described["has_intraday"] is described["has_seconds"] is described["has_daily"] is True
    assert "s" not in described


@pytest.mark.parametrize("symbol", ["snow", "rain.2", "rain.", "x" * 250, "."])
def test_an_unknown_symbol_is_an_error_of_the_protocol(client, rain, symbol):
    assert client.ask("/v1/udf/symbols", symbol=symbol).json == {"s": "error", "errmsg": "unknown_symbol"}
    history = client.ask("/v1/udf/history", symbol=symbol, resolution="1", to=at())
    assert history.json == {"s": "error", "errmsg": "unknown_symbol"}
    assert client.ask("/v1/udf/timescale_marks", symbol=symbol, to=at()).json == []


def test_symbols_are_found_by_words_in_upper_case(client, conn, rain, add_market, add_trades):
    add_market("snow")
    add_trades(add_market("busy"), [{}])
    activity.bring_up_to_date(conn, dt.datetime.now(dt.UTC))

    (found,) = client.ask("/v1/udf/search", query="RAI", type="", exchange="", limit=30).json
    assert (found["symbol"], found["full_name"], found["type"]) == ("rain", "Polymarket:rain", "prediction")
    assert [each["symbol"] for each in client.ask("/v1/udf/search", query="").json] == ["busy"]


@pytest.mark.parametrize(
    ("resolution", "times", "closes"),
    [
        ("1S", [0, 20, 65, 3700, 172_800], [0.5, 0.6, 0.4, 0.7, 0.3]),
        ("1", [0, 60, 3660, 172_800], [0.6, 0.4, 0.7, 0.3]),
        ("5", [0, 3600, 172_800], [0.4, 0.7, 0.3]),
        ("60", [0, 3600, 172_800], [0.4, 0.7, 0.3]),
        ("240", [0, 172_800], [0.7, 0.3]),
        ("1D", [-43_200, 129_600], [0.7, 0.3]),
        ("D", [-43_200, 129_600], [0.7, 0.3]),
    ],
)
def test_bars_are_of_every_resolution_by_their_beginnings(client, rain, resolution, times, closes):
    asked = {"symbol": "rain", "resolution": resolution, "from": at(days=-2), "to": at(days=9)}

    bars = client.ask("/v1/udf/history", **asked).json

    assert bars["s"] == "ok"
    assert bars["t"] == [at(seconds=seconds) for seconds in times]
    assert bars["c"] == closes
    assert len(bars["o"]) == len(bars["h"]) == len(bars["l"]) == len(bars["v"]) == len(times)


def test_bars_are_from_a_moment_up_to_another(client, rain):
    bars = client.ask(
        "/v1/udf/history", symbol="rain", resolution="1", **{"from": at(seconds=1), "to": at(hours=2)}
    ).json

    assert bars["t"] == [at(minutes=1), at(minutes=61)]


def test_bars_counted_back_are_so_many_before_a_moment(client, rain):
    asked = {"symbol": "rain", "from": at(), "to": at(hours=1, minutes=2)}

    assert client.ask("/v1/udf/history", resolution="60", countback=1, **asked).json["t"] == [at(hours=1)]
    assert client.ask("/v1/udf/history", resolution="1", countback=2, **asked).json["t"] == [
        at(minutes=1),
        at(minutes=61),
    ]
    assert len(client.ask("/v1/udf/history", resolution="1", countback=300, **asked).json["t"]) == 3


@pytest.mark.parametrize(
    ("resolution", "last"), [("1S", 3700), ("1", 3660), ("5", 3600), ("60", 3600), ("1D", -43_200)]
)
def test_without_bars_it_says_when_the_last_one_was(client, rain, resolution, last):
    later = {"from": at(days=1), "to": at(days=1, minutes=30)}

    assert client.ask("/v1/udf/history", symbol="rain", resolution=resolution, **later).json == {
        "s": "no_data",
        "nextTime": at(seconds=last),
    }
    earlier = {"from": at(days=-2), "to": at(days=-1)}
    assert client.ask("/v1/udf/history", symbol="rain", resolution=resolution, **earlier).json == {"s": "no_data"}


@pytest.mark.parametrize(
    "asked",
    [
        {"resolution": "2", "to": 1},
        {"resolution": "1"},
        {"resolution": "1", "to": 1, "countback": 0},
        {"resolution": "1", "to": 1, "colour": "red"},
    ],
)
def test_what_is_not_of_the_protocol_is_refused(client, rain, asked):
    assert client.ask("/v1/udf/history", symbol="rain", **asked).status_code == 400


def test_quotes_are_told_of_several_symbols_in_order(client, conn, add_market, add_trades):
    market = add_market("rain")
    add_trades(market, [{"price": "0.5"}, {"price": "0.6"}])
    aggregates.compute_stats(conn, dt.datetime.now(dt.UTC))
    price = {"bid": 540_000, "ask": 560_000, "last": 550_000}
    go_live(conn, market, **price)

    quotes = client.ask("/v1/udf/quotes", symbols="snow,rain,rain.1").json

    assert quotes["s"] == "ok"
    unknown, rain, other = quotes["d"]
    assert unknown == {"s": "error", "n": "snow", "v": {}}
    assert (rain["s"], rain["n"]) == ("ok", "rain")
    shown = {name: rain["v"][name] for name in ("lp", "ch", "chp", "bid", "ask", "spread", "open_price", "high_price")}
    assert shown == {
        "lp": 0.55,
        "ch": 0.05,
        "chp": 10,
        "bid": 0.54,
        "ask": 0.56,
        "spread": 0.02,
        "open_price": 0.5,
        "high_price": 0.6,
    }
    assert "lp" not in other["v"]
    assert client.ask("/v1/udf/quotes", symbols=",".join(f"s{n}" for n in range(51))).status_code == 400


def test_large_trades_and_changes_of_state_are_marked(client, conn, rain, add_trades):
    add_trades(rain, [{"ts": NOON + dt.timedelta(hours=5), "price": "0.5", "size": 30_000, "side": -1}])
    change = {"market_key": rain["market_key"], "from_status": "ACTIVE", "to_status": "CLOSED", "cause": "test"}
    insert(conn, "market_status_changes", {**change, "ts": NOON + dt.timedelta(hours=9)})

    marks = client.ask("/v1/udf/marks", symbol="rain", resolution="1D", **{"from": at(), "to": at(days=1)}).json

    assert marks["time"] == [at(hours=5), at(hours=9)]
    assert marks["text"] == ["Sold for 15000 USD", "The market is CLOSED"]
    assert {len(column) for column in marks.values()} == {2}


def test_no_has_the_quotes_and_marks_that_follow_from_yes_where_only_yes_is_traded(
    client, conn, add_market, add_trades
):
    market = add_market("fed", exchange="kalshi", market_id="KXFED-27APR-T4.25")
    now = dt.datetime.now(dt.UTC)
    bought = {"ts": now - dt.timedelta(hours=1), "price": "0.5", "size": 30_000}
    add_trades(market, [bought, {"ts": now, "price": "0.6"}, {"ts": now, "price": "0.4"}])
    aggregates.compute_stats(conn, now)

    insert(conn, "live_prices", {"market_key": market["market_key"], "outcome": 0, "last": 700_000, "ts": now})
    (no,) = client.ask("/v1/udf/quotes", symbols="fed.1").json["d"]
    since = {"from": int(now.timestamp()) - 7_200, "to": int(now.timestamp()) + 60}
    marks = client.ask("/v1/udf/marks", symbol="fed.1", resolution="1D", **since).json

    shown = {name: no["v"][name] for name in ("open_price", "high_price", "low_price", "lp", "ch", "volume")}
    assert shown == {
        "open_price": 0.5,
        "high_price": 0.6,
        "low_price": 0.4,
        "lp": 0.3,
        "ch": -0.2,
        "volume": 30_020,
    }
    assert marks["text"] == ["Sold for 15000 USD"]


def test_the_life_of_a_market_is_marked_on_the_time_scale(client, add_market):
    add_market(
        "rain",
        created_at=NOON,
        end_time=NOON + dt.timedelta(days=1),
        resolved_at=NOON + dt.timedelta(days=2),
        winning_outcome=1,
        status="RESOLVED",
    )

    marks = client.ask("/v1/udf/timescale_marks", symbol="rain", **{"from": at(), "to": at(days=2)}).json

    assert [mark["time"] for mark in marks] == [at(), at(days=1), at(days=2)]
    assert [mark["tooltip"] for mark in marks] == [["Listed"], ["Planned end"], ["Resolved: No"]]
