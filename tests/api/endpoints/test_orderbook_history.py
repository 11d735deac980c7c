"""The endpoints of past order books: what may be asked, what it costs, what comes back."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.factories import insert

START = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
PATH = "/v1/markets/rain/orderbook"


@pytest.fixture
def rain(conn, add_market):
    market = add_market("rain")
    place = {"market_key": market["market_key"], "outcome": 0}
    levels = {"bid_prices": [400_000], "bid_sizes": [3_000_000], "ask_prices": [420_000], "ask_sizes": [1_000_000]}
    insert(conn, "book_events", {**place, "ts": START, "event_id": 1, "seq": 1, **levels})
    for nth, size in enumerate((2_000_000, 0), 1):
        ts = START + dt.timedelta(minutes=nth)
        change = {"side": 1, "price": 410_000, "size": size, "event_id": 1 + nth, "seq": 1 + nth}
        insert(conn, "book_events", {**place, "ts": ts, **change})
        insert(conn, "quotes", {**place, "ts": ts, "bid": 410_000 if size else 400_000, "ask": 420_000})
    return market


def test_the_book_of_a_moment_costs_five_credits(client, rain):
    answer = client.ask(PATH, at="2026-11-20T12:01:30Z")

    assert answer.json == {
        "market_id": rain["market_id"],
        "outcome": 0,
        "token_id": rain["token_ids"][0],
        "bids": [{"price": 0.41, "size": 2.0}, {"price": 0.4, "size": 3.0}],
        "asks": [{"price": 0.42, "size": 1.0}],
        "best_bid": 0.41,
        "best_ask": 0.42,
        "mid": 0.415,
        "spread": 0.01,
        "depth_usd": 2.44,
        "tick_size": None,
        "hash": None,
        "seq": "2",
        "ts": 1795176060000,
        "integrity": {"status": "verified", "anchor_ts": 1795176000000, "changes": 1, "gap": None},
    }
    assert answer.headers["X-Request-Cost"] == "5"


def test_before_the_first_book_there_is_none_and_it_says_from_when_on(client, rain):
    answer = client.ask(PATH, at="1795175999999")

    assert answer.status_code == 404
    assert answer.json["hint"] == "Books of this outcome are stored from 2026-11-20T12:00:00.000000Z on"
    assert client.ask(PATH, at="1795175999999", outcome="No").status_code == 404


def test_the_history_gives_tops_and_figures_at_even_steps(client, rain):
    answer = client.ask(f"{PATH}/history", from_="2026-11-20T11:59:00Z", to="2026-11-20T12:02:00Z", depth=1)

    said = answer.json
    assert (said["market_id"], said["step_s"], said["depth"], said["count"]) == (rain["market_id"], 60, 1, 3)
    assert [point["ts"] for point in said["data"]] == [1795176000000, 1795176060000, 1795176120000]
    assert [point["best_bid"] for point in said["data"]] == [0.4, 0.41, 0.4]
    assert [point["status"] for point in said["data"]] == ["unverified", "verified", "verified"]
    assert said["data"][1]["bids"] == [{"price": 0.41, "size": 2.0}]
    # (0.41 * 1 + 0.42 * 2) / 3, and (2 + 3 - 1) / 6 shares
    assert said["data"][1]["microprice"] == pytest.approx(1.25 / 3)
    assert said["data"][1]["imbalance"] == pytest.approx(4 / 6)
    assert (said["data"][1]["bid_depth_usd"], said["data"][1]["ask_depth_usd"]) == (2.02, 0.42)
    assert answer.headers["X-Request-Cost"] == "5"


def test_without_levels_only_the_figures_come(client, rain):
    said = client.ask(f"{PATH}/history", from_="1795176000000", to="1795176000000", depth=0).json

    assert (said["count"], said["data"][0]["bids"], said["data"][0]["best_bid"]) == (1, [], 0.4)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ({"from_": "2026-11-20T12:00:00Z", "to": "2026-11-20T11:00:00Z"}, "from"),
        ({"from_": "2026-11-19T11:59:59Z", "to": "2026-11-20T12:00:00Z"}, "from"),
        ({"from_": "2026-11-20T11:00:00Z", "to": "2026-11-20T12:00:00Z", "step": 3}, "step"),
        ({"step": 0}, "step"),
        ({"depth": 101}, "depth"),
        ({"to": "noon"}, "to"),
    ],
)
def test_what_cannot_be_asked_is_named(client, rain, asked, name):
    answer = client.ask(f"{PATH}/history", **asked)

    assert (answer.status_code, answer.json["code"]) == (400, "invalid_parameter")
    assert [error["name"] for error in answer.json["errors"]] == [name]
