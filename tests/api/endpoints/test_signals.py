"""Signals, wherever they are shown."""

from __future__ import annotations

import datetime as dt
import itertools

import msgspec
import pytest

from api.endpoints.signals.records import Signal, TopSignals
from tests.api.endpoints.test_debug import TOKEN
from tests.factories import insert

NOW = dt.datetime.now(dt.UTC)
pytestmark = pytest.mark.usefixtures("present")
numbers = itertools.count(1)


@pytest.fixture
def add_signal(conn):
    def add(market, type_="momentum", *, ago=0.0, score=2.0, direction=1, **columns):
        row = {
            "ts": NOW - dt.timedelta(hours=ago),
            "market_key": market["market_key"],
            "outcome": 0,
            "signal_id": next(numbers),
            "type": type_,
            "value": 0.05 * score,
            "threshold": 0.05,
            "score": score,
            "direction": direction,
            "window_s": 3900,
            "detail": {"price_now": 0.6},
            **columns,
        }
        return insert(conn, "signals", row)

    return add


def ids(signals):
    return [int(signal["id"]) for signal in signals]


def test_a_signal_says_what_was_found_and_by_how_much(client, add_market, add_signal):
    market = add_market("rain")
    row = add_signal(market, signal_id=-(2**62), direction=-1)

    (found,) = client.ask("/v1/markets/rain/signals").json

    assert found == {
        "id": str(-(2**62)),
        "type": "momentum",
        "market_id": market["market_id"],
        "outcome": 0,
        "value": 0.1,
        "threshold": 0.05,
        "score": 2,
        "direction": "down",
        "window_s": 3900,
        "detail": {"price_now": 0.6},
        "ts": int(row["ts"].timestamp() * 1000),
    }
    assert msgspec.convert(found, Signal, strict=False).direction == "down"


def test_signals_of_a_market_are_walked_by_the_oldest_instant_shown(client, add_market, add_signal):
    rain = add_market("rain")
    minutes = [NOW.replace(second=0, microsecond=0) - dt.timedelta(minutes=n) for n in range(5)]
    for ts in minutes:
        for type_ in ("momentum", "price_reversal"):
            add_signal(rain, type_, ts=ts)
    add_signal(rain, ago=24 * 40)

    found, asked = [], {}
    while page := client.ask("/v1/markets/rain/signals", limit=3, **asked).json:
        found += page
        asked["to"] = page[-1]["ts"]
    ranged = client.ask("/v1/markets/rain/signals", to=minutes[0].isoformat(), **{"from": minutes[2].isoformat()})

    assert len({row["id"] for row in found}) == len(found) == 10
    assert sorted({row["ts"] for row in ranged.json}) == [int(ts.timestamp() * 1000) for ts in minutes[2:0:-1]]
    assert len(client.ask("/v1/markets/rain/signals", **{"from": 0}).json) == 11
    assert [client.ask("/v1/markets/rain/signals", limit=n).status_code for n in (0, 501)] == [400, 400]


def test_signals_of_a_market_are_its_own_newest_first_and_of_a_type_if_one_is_named(client, add_market, add_signal):
    rain, snow = add_market("rain"), add_market("snow")
    old = add_signal(rain, ago=24 * 29)
    new = add_signal(rain, "volume_spike", ago=1, direction=None)
    add_signal(rain, ago=24 * 31)
    add_signal(snow)

    assert ids(client.ask("/v1/markets/rain/signals").json) == [new["signal_id"], old["signal_id"]]
    assert ids(client.ask("/v1/markets/rain/signals", type="momentum").json) == [old["signal_id"]]
    assert client.ask("/v1/markets/rain/signals", type="volume_spike").json[0]["direction"] is None
    assert client.ask("/v1/markets/rain/signals", type="whale_alert").json == []


def test_a_hundred_signals_of_a_market_are_shown(client, add_market, add_signal):
    market = add_market("rain")
    for minute in range(103):
        add_signal(market, ago=minute / 60)

    assert len(client.ask("/v1/markets/rain/signals").json) == 100


def test_the_top_is_of_24_hours_by_score_and_the_newer_of_two_alike_first(client, add_market, add_signal):
    rain, snow = add_market("rain"), add_market("snow")
    weak = add_signal(rain, score=1.1)
    strong = add_signal(snow, "whale_alert", score=9.0, ago=23.9)
    older, newer = add_signal(rain, score=3.0, ago=2), add_signal(snow, score=3.0, ago=1)
    add_signal(rain, score=99.0, ago=24.1)

    top = client.ask("/v1/signals/top").json

    assert ids(top["data"]) == [each["signal_id"] for each in (strong, newer, older, weak)]
    assert top["count"] == 4
    assert msgspec.convert(top, TopSignals, strict=False).count == 4
    assert ids(client.ask("/v1/signals/top", type="whale_alert").json["data"]) == [strong["signal_id"]]
    assert ids(client.ask("/v1/signals/top", limit=2).json["data"]) == [strong["signal_id"], newer["signal_id"]]


def test_twenty_are_shown_unless_more_are_asked_for(client, add_market, add_signal):
    market = add_market("rain")
    for minute in range(210):
        add_signal(market, ago=minute / 60)

    assert client.ask("/v1/signals/top").json["count"] == 20
    assert client.ask("/v1/signals/top", limit=200).json["count"] == 200
    assert client.ask("/v1/signals/top", limit=201).status_code == 400


@pytest.mark.parametrize("path", ["/v1/markets/rain/signals", "/v1/signals/top"])
def test_an_unknown_type_is_refused_and_the_known_ones_named(client, add_market, path):
    add_market("rain")

    answer = client.ask(path, type="astrology")

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")
    assert "whale_alert" in answer.json["hint"]
    assert client.ask("/v1/markets/nothing/signals").status_code == 404


def test_summary_health_and_sentiment_tell_of_the_last_24_hours(client, add_market, add_signal):
    market, other = add_market("rain"), add_market("snow")
    kept = [add_signal(market, ago=hours)["signal_id"] for hours in range(12)]
    add_signal(market, ago=25)
    add_signal(other)

    assert ids(client.ask("/v1/markets/rain/summary").json["signals"]) == kept[:10]
    assert client.ask("/v1/markets/rain/health").json["signal_count"] == 12
    assert client.ask("/v1/markets/rain/sentiment").json["signals_count"] == 12
    assert client.ask("/v1/markets/snow/sentiment").json["signals_count"] == 1


def test_debug_shows_signals_as_they_are_kept(client, service, add_market, add_signal):
    service.debug_token = TOKEN
    rain, snow = add_market("rain"), add_market("snow")
    first = add_signal(rain, "book_imbalance", ago=400)
    second = add_signal(snow, ago=1)

    def ask(path):
        return client.simulate_get(path, headers={"X-Debug-Token": TOKEN})

    assert [row["signal_id"] for row in ask("/debug/signals").json] == [second["signal_id"], first["signal_id"]]
    assert ask("/debug/signals").json[0]["slug"] == "snow"
    assert ask("/debug/signals/rain").json[0]["direction"] == 1
    assert ask("/debug/signals/rain?type=momentum").json == []
    assert ask("/debug/signals/rain?type=astrology").status_code == 400
    assert ask("/debug/signals/nothing").status_code == 404


def test_debug_shows_the_thousand_newest_signals(client, service, conn, add_market):
    service.debug_token = TOKEN
    conn.execute(
        "insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, window_s)"
        " select now() - n * interval '1 s', %s, 0, n, 'momentum', 0.1, 0.05, 2, 60 from generate_series(1, 1001) as n",
        [add_market("rain")["market_key"]],
    )

    for path in ("/debug/signals", "/debug/signals/rain"):
        rows = client.simulate_get(path, headers={"X-Debug-Token": TOKEN}).json
        assert [row["signal_id"] for row in rows] == list(range(1, 1001))
