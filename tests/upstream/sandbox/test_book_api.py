"""The sandbox's order book API."""

import base64
import gzip
import json

import pytest

from tests.upstream.sandbox.conftest import token_ids, walk


@pytest.fixture(scope="module")
def real_book(recorded) -> dict:
    with gzip.open(recorded / "clob/books_fed-decision-in-june-825.json.gz") as file:
        return json.load(file)[0]


def test_a_book_has_the_fields_types_and_order_of_a_recorded_one(sandbox, http, real_book):
    token = token_ids(walk(http, sandbox)[12])[0]

    book = http.get(f"{sandbox.clob_url}/book", params={"token_id": token}).json()

    assert {name: type(value) for name, value in book.items()} == {
        name: type(value) for name, value in real_book.items()
    }
    bids, asks = ([float(level["price"]) for level in book[side]] for side in ("bids", "asks"))
    assert bids == sorted(bids)
    assert asks == sorted(asks, reverse=True)
    assert bids[-1] < asks[-1]
    assert all(isinstance(level["size"], str) for level in book["bids"] + book["asks"])
    assert len(book["hash"]) == 40
    assert len(book["timestamp"]) == 13


def test_two_outcomes_are_mirror_images(sandbox, http):
    first, second = token_ids(walk(http, sandbox)[20])

    books = {
        book["asset_id"]: book
        for book in http.post(f"{sandbox.clob_url}/books", json=[{"token_id": first}, {"token_id": second}]).json()
    }

    bids = [(1_000_000 - round(float(level["price"]) * 1e6), level["size"]) for level in books[first]["bids"]]
    asks = [(round(float(level["price"]) * 1e6), level["size"]) for level in books[second]["asks"]]
    assert bids == asks
    assert books[first]["hash"] != books[second]["hash"]


def test_prices_agree_with_the_book(still, sandbox, http):
    token = token_ids(walk(http, sandbox)[15])[1]
    ask = {"token_id": token}

    book = http.get(f"{sandbox.clob_url}/book", params=ask).json()
    bid = http.get(f"{sandbox.clob_url}/price", params={**ask, "side": "BUY"}).json()["price"]
    offer = http.get(f"{sandbox.clob_url}/price", params={**ask, "side": "SELL"}).json()["price"]
    middle = http.get(f"{sandbox.clob_url}/midpoint", params=ask).json()["mid"]
    both = http.post(f"{sandbox.clob_url}/prices", json=[{**ask, "side": "BUY"}, {**ask, "side": "SELL"}]).json()

    assert (bid, offer) == (book["bids"][-1]["price"], book["asks"][-1]["price"])
    assert float(middle) == pytest.approx((float(bid) + float(offer)) / 2, abs=1e-6)
    assert both == {token: {"BUY": bid, "SELL": offer}}


@pytest.mark.parametrize(
    ("path", "query", "status", "error"),
    [
        ("book", {"token_id": "123"}, 404, "No orderbook exists for the requested token id"),
        ("book", {"token_id": "abc"}, 400, "Invalid token id"),
        ("book", {}, 400, "Invalid token id"),
        ("price", {"token_id": "TOKEN", "side": "HOLD"}, 400, "Invalid side"),
        ("markets/0xabc", {}, 404, "market not found"),
    ],
)
def test_errors_are_in_the_exchanges_words(sandbox, http, path, query, status, error):
    token = token_ids(walk(http, sandbox)[12])[0]

    answer = http.get(
        f"{sandbox.clob_url}/{path}", params={name: value.replace("TOKEN", token) for name, value in query.items()}
    )

    assert (answer.status_code, answer.json()) == (status, {"error": error})


def test_a_batch_that_is_too_big_or_no_batch_is_refused(sandbox, http):
    big = http.post(f"{sandbox.clob_url}/books", json=[{"token_id": "1"}] * 501)
    wrong = http.post(f"{sandbox.clob_url}/books", content=b"{")

    assert (big.status_code, big.json()) == (400, {"error": "Payload exceeds the limit"})
    assert (wrong.status_code, wrong.json()) == (400, {"error": "Invalid payload"})


def test_market_pages_have_the_recorded_shape_and_end_with_the_last_cursor(sandbox, http, recorded):
    with gzip.open(recorded / "clob/sampling_markets_1000.json.gz") as file:
        real = json.load(file)["data"][0]

    page = http.get(f"{sandbox.clob_url}/markets").json()

    assert page["next_cursor"] == "LTE="
    assert page["count"] == len(page["data"]) >= 60
    assert real.keys() - page["data"][0].keys() == {"tags"}
    assert page["data"][0]["tokens"][0].keys() == real["tokens"][0].keys()
    beyond = http.get(f"{sandbox.clob_url}/markets", params={"next_cursor": base64.b64encode(b"1000").decode()}).json()
    assert (beyond["data"], beyond["next_cursor"]) == ([], "LTE=")


def test_small_questions_have_small_answers(sandbox, http):
    ask = {"token_id": token_ids(walk(http, sandbox)[12])[0]}

    assert http.get(f"{sandbox.clob_url}/ok").json() == "OK"
    assert abs(http.get(f"{sandbox.clob_url}/time").json() - sandbox.exchange.now_ms / 1000) < 60
    assert http.get(f"{sandbox.clob_url}/tick-size", params=ask).json()["minimum_tick_size"] in (0.01, 0.001)
    assert http.get(f"{sandbox.clob_url}/neg-risk", params=ask).json()["neg_risk"] in (True, False)
    history = http.get(
        f"{sandbox.clob_url}/prices-history", params={"market": ask["token_id"], "interval": "1d"}
    ).json()
    assert [point.keys() for point in history["history"]] == [{"t", "p"}] * len(history["history"])
    assert history["history"]
