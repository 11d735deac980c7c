from __future__ import annotations

import datetime as dt
import random
from collections import defaultdict

import pytest

STEPS = {"1s": 1, "1m": 60, "5m": 300, "1h": 3600}
START = (dt.datetime.now(dt.UTC) - dt.timedelta(hours=5)).replace(minute=0, second=0, microsecond=0)


@pytest.fixture
def market(add_market):
    return add_market("rain")


@pytest.fixture
def trades(market, add_trades):
    """Three hours of trades, several of them in one instant."""
    chance = random.Random(7)
    moments = sorted(START + dt.timedelta(seconds=chance.randrange(3 * 3600)) for _ in range(150))
    return add_trades(
        market,
        [
            {"ts": moment, "price": f"0.{chance.randrange(10, 90)}", "size": chance.randrange(1, 50)}
            for moment in moments
        ],
    )


def expected(trades, step):
    """Candles by plain counting."""
    buckets = defaultdict(list)
    for trade in sorted(trades, key=lambda trade: trade["seq"]):
        buckets[int(trade["ts"].timestamp()) // step * step].append(trade)
    return [
        {
            "ts": bucket * 1000,
            "open": found[0]["price"] / 1e6,
            "high": max(trade["price"] for trade in found) / 1e6,
            "low": min(trade["price"] for trade in found) / 1e6,
            "close": found[-1]["price"] / 1e6,
            "volume": sum(trade["size"] for trade in found) / 1e6,
            "volume_usd": sum(trade["value_usd"] for trade in found) / 1e6,
            "trades": len(found),
        }
        for bucket, found in sorted(buckets.items())
    ]


def ask(client, **params):
    answer = client.ask("/v1/markets/rain/price-history", **params)
    assert answer.status_code == 200, answer.text
    return answer.json


@pytest.mark.parametrize("resolution", STEPS)
def test_candles_are_what_the_trades_say_oldest_first(client, trades, resolution):
    assert ask(client, resolution=resolution, limit=20_000) == expected(trades, STEPS[resolution])


def test_the_resolution_is_a_minute_and_the_newest_five_hundred_are_given(client, market, add_trades):
    add_trades(market, [{"ts": START - dt.timedelta(minutes=minutes)} for minutes in range(510, 0, -1)])

    candles = ask(client)

    assert len(candles) == 500
    assert candles[-1]["ts"] == (START - dt.timedelta(minutes=1)).timestamp() * 1000


@pytest.mark.parametrize("resolution", STEPS)
def test_a_range_holds_the_candles_that_begin_in_it_each_of_them_whole(client, trades, resolution):
    first, last = START + dt.timedelta(minutes=17, seconds=3), START + dt.timedelta(minutes=131, seconds=7)
    whole = expected(trades, STEPS[resolution])

    found = ask(client, resolution=resolution, from_=first.isoformat(), to=last.isoformat(), limit=20_000)

    assert found == [candle for candle in whole if first.timestamp() <= candle["ts"] / 1000 < last.timestamp()]


@pytest.mark.parametrize("resolution", STEPS)
def test_the_gaps_are_filled_with_the_close_before(client, trades, resolution):
    step = STEPS[resolution]
    first, last = START + dt.timedelta(minutes=60), START + dt.timedelta(minutes=125)
    known = {candle["ts"]: candle for candle in expected(trades, step)}
    close = [candle["close"] for ts, candle in known.items() if ts < first.timestamp() * 1000][-1]

    filled = ask(
        client, resolution=resolution, from_=first.isoformat(), to=last.isoformat(), limit=20_000, fill="previous"
    )

    assert [candle["ts"] // 1000 for candle in filled] == list(
        range(int(first.timestamp()), int(last.timestamp()), step)
    )
    for candle in filled:
        if candle["ts"] not in known:
            assert candle == {
                "ts": candle["ts"], "open": close, "high": close, "low": close, "close": close,
                "volume": 0, "volume_usd": 0, "trades": 0,
            }  # fmt: skip
        else:
            assert candle == known[candle["ts"]]
        close = candle["close"]


def test_nothing_is_made_up_before_the_first_trade_nor_after_now(client, market, add_trades):
    add_trades(market, [{"ts": START}])

    before = dt.datetime.now(dt.UTC)
    filled = ask(client, resolution="1h", limit=24, to="2100-01-01T00:00:00Z", fill="previous")
    after = dt.datetime.now(dt.UTC)

    assert filled[0]["ts"] == START.timestamp() * 1000
    # An hour may end meanwhile.
    assert len(filled) in {(now - START) // dt.timedelta(hours=1) + 1 for now in (before, after)}


def test_a_market_without_trades_has_no_candles(client, market):
    assert ask(client) == []
    assert ask(client, fill="previous") == []
    assert ask(client, from_="1", to="2") == []


def test_bars_come_column_by_column(client, trades):
    hours = expected(trades, 3600)
    asked = {"from_": int(START.timestamp()), "to": int(START.timestamp()) + 7200}

    bars = client.ask("/v1/markets/rain/candles", resolution="60", **asked).json

    assert bars == {
        "s": "ok",
        "t": [hour["ts"] // 1000 for hour in hours[:2]],
        **{letter: [hour[name] for hour in hours[:2]] for letter, name in zip("ohlcv", FIELDS, strict=True)},
    }


FIELDS = ("open", "high", "low", "close", "volume")


def test_bars_are_of_a_minute_unless_asked_otherwise(client, trades):
    minutes = expected(trades, 60)

    bars = client.ask("/v1/markets/rain/candles", from_=int(START.timestamp())).json

    assert bars["t"] == [minute["ts"] // 1000 for minute in minutes]


def test_a_range_without_bars_says_when_the_last_one_before_was(client, trades):
    last = expected(trades, 60)[-1]["ts"] // 1000

    after = client.ask("/v1/markets/rain/candles", from_=last + 60, to=last + 600).json
    before = client.ask("/v1/markets/rain/candles", from_=0, to=1000).json

    assert after == {"s": "no_data", "nextTime": last}
    assert before == {"s": "no_data"}


@pytest.mark.parametrize(
    ("path", "asked", "status", "code"),
    [
        ("/v1/markets/nothing/candles", {}, 404, "not_found"),
        ("/v1/markets/rain/candles", {"resolution": "7"}, 400, "invalid_parameter"),
        ("/v1/markets/rain/candles", {"outcome": "Perhaps"}, 400, "invalid_parameter"),
        ("/v1/markets/rain/candles", {"key": "psg_nobody"}, 401, "invalid_api_key"),
        ("/v1/udf/history", {"symbol": "rain", "resolution": "7", "to": 1}, 400, "invalid_parameter"),
    ],
)
def test_charting_libraries_are_told_of_a_failure_in_their_own_words_too(client, add_market, path, asked, status, code):
    add_market("rain")

    answer = client.ask(path, **asked)

    assert (answer.status_code, answer.json["code"], answer.json["s"]) == (status, code, "error")
    assert answer.json["errmsg"] == answer.json["detail"]
