"""The debug endpoints need the token, and are disabled without one."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from config.settings import Settings
from tests.api.endpoints.test_shapes import book
from tests.factories import insert

TOKEN = "0123456789abcdef" * 2
PATHS = [
    "/debug/markets",
    "/debug/markets/rain",
    "/debug/trades",
    "/debug/orderbook/rain",
    "/debug/signals",
    "/debug/signals/rain",
]


@pytest.fixture
def ask(client, service):
    service.debug_token = TOKEN

    def ask(path, token=TOKEN):
        return client.simulate_get(path, headers={"X-Debug-Token": token} if token is not None else {})

    return ask


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "0", "é" * 32])
def test_without_the_token_they_are_closed(ask, add_market, path, token):
    add_market("rain")

    answer = ask(path, token)

    assert (answer.status_code, answer.json["code"]) == (403, "forbidden")
    assert answer.json["detail"] == "debug endpoints disabled"


@pytest.mark.parametrize("path", PATHS)
def test_when_none_is_set_they_are_closed_to_all(client, add_market, path):
    add_market("rain")

    for headers in ({}, {"X-Debug-Token": ""}, {"X-Debug-Token": "None"}, {"X-API-Key": client.key}):
        assert client.simulate_get(path, headers=headers).status_code == 403


def test_a_token_in_the_address_is_not_looked_up_and_not_repeated(ask, service, monkeypatch):
    monkeypatch.setattr(service.reads, "read", None)

    paths = [f"/debug/orderbook/{TOKEN}", f"/debug/trades?x={TOKEN}", f"/debug/trades?{TOKEN}"]
    answers = [ask(path) for path in paths]

    assert [(answer.status_code, answer.json["code"]) for answer in answers] == [(400, "invalid_parameter")] * 3
    assert [answer.text for answer in answers if TOKEN in answer.text] == []


def test_a_token_has_at_least_32_characters():
    assert Settings(debug_token=TOKEN).debug_token.get_secret_value() == TOKEN
    with pytest.raises(ValidationError):
        Settings(debug_token=TOKEN[:-1])


def test_what_is_held_is_told_raw(ask, conn, add_market, add_trades):
    market = add_market("rain", raw={"as": "sent"})
    key = market["market_key"]
    add_trades(market, [{"price": "0.5"}, {"price": "0.6"}])
    insert(conn, "live_prices", {"market_key": key, "outcome": 0, "mid": 520_000, "ts": market["created_at"]})
    insert(conn, "live_books", book(key, verified=False))
    insert(conn, "market_rankings", {"generation": 1, "rank": 1, "market_key": key})
    event = {"ts": market["created_at"], "market_key": key, "outcome": 0, "event_id": 1, "seq": 1, "side": 1}
    insert(conn, "book_events", {**event, "price": 510_000, "size": 7})

    of_market = ask("/debug/markets/rain").json
    assert of_market["market"]["raw"] == {"as": "sent"}
    assert [token["outcome"] for token in of_market["tokens"]] == [0, 1]
    assert of_market["prices"][0]["mid"] == 520_000
    tracked = ask("/debug/markets").json
    assert [(each["slug"], each["verified"]) for each in tracked["outcomes"]] == [("rain", False)]
    assert {stage["stage"] for stage in tracked["stages"]} >= {"discovery", "ingestion"}
    assert [trade["price"] for trade in ask("/debug/trades").json] == [600_000, 500_000]
    books = ask("/debug/orderbook/rain").json
    assert books["books"][0]["verified"] is False
    assert [(change["price"], change["size"]) for change in books["events"]] == [(510_000, 7)]


def test_a_market_that_is_not_there_is_not_found(ask):
    assert ask("/debug/markets/nothing").status_code == 404
    assert ask("/debug/orderbook/nothing").status_code == 404
    assert ask("/debug/trades?limit=1").json["code"] == "unknown_parameter"
