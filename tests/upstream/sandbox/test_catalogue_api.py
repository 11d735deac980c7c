"""The sandbox's Gamma API: the recorded formats, and its pages."""

import gzip
import json

import pytest

from tests.upstream.sandbox.conftest import token_ids, walk

REAL = "gamma/markets_600_2026-01.json.gz"


@pytest.fixture(scope="module")
def real(recorded) -> list[dict]:
    with gzip.open(recorded / REAL) as file:
        return json.load(file)


def kind_of(value: object) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def test_fields_have_the_types_of_recorded_ones(sandbox, http, real):
    recorded_types: dict[str, set[str]] = {}
    for market in real:
        for name, value in market.items():
            recorded_types.setdefault(name, set()).add(kind_of(value))
    later = {"version", "positionIds", "feeType", "feeSchedule"}

    markets = walk(http, sandbox)

    for market in markets:
        for name in market.keys() - later:
            assert kind_of(market[name]) in recorded_types[name], name


def test_lists_are_json_in_strings_and_agree_in_length(sandbox, http):
    for market in walk(http, sandbox):
        outcomes, prices = json.loads(market["outcomes"]), json.loads(market["outcomePrices"])

        assert len(outcomes) == len(prices) == len(token_ids(market)) == 2
        assert sum(float(price) for price in prices) == pytest.approx(1)
        assert all(isinstance(price, str) for price in prices)


def test_everything_says_that_it_is_simulated(sandbox, http):
    assert http.get(f"{sandbox.url}/sandbox/status").json()["source"] == "simulated"
    assert all(market["description"].startswith("Simulated market.") for market in walk(http, sandbox))


def test_a_keyset_walk_meets_every_market_once_and_ends_without_a_cursor(sandbox, http):
    pages, cursor = [], {}
    while True:
        page = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"limit": 7, **cursor}).json()
        pages.append(page)
        if "next_cursor" not in page:
            break
        cursor = {"after_cursor": page["next_cursor"]}

    ids = [market["id"] for page in pages for market in page["markets"]]

    assert len(ids) == len(set(ids)) >= 60
    assert all(len(page["markets"]) == 7 for page in pages[:-1])


@pytest.mark.parametrize("order", ["volume24hr", "endDate", "volumeNum", "startDate"])
def test_a_keyset_walk_keeps_the_order_asked_for(sandbox, http, order):
    found = walk(http, sandbox, order="endDate", limit="9", ascending="true", closed="false")

    assert [market["endDate"] for market in found] == sorted(market["endDate"] for market in found)
    assert len({market["id"] for market in found}) == len(found)
    first = http.get(f"{sandbox.gamma_url}/markets", params={"order": order, "limit": 5}).json()
    assert [market[order] for market in first] == sorted((market[order] for market in first), reverse=True)


def test_a_cursor_under_another_name_is_ignored(sandbox, http):
    first = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"limit": 3}).json()

    again = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"limit": 3, "cursor": first["next_cursor"]}).json()

    assert [market["id"] for market in again["markets"]] == [market["id"] for market in first["markets"]]


def test_keyset_refuses_an_offset_and_pages_are_no_longer_than_allowed(sandbox, http):
    refused = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"offset": 10})
    long = http.get(f"{sandbox.gamma_url}/markets/keyset", params={"limit": 5000}).json()

    assert refused.status_code == 422
    assert refused.json()["type"] == "validation error"
    assert len(long["markets"]) <= 100


def test_filters_choose(sandbox, http):
    markets = walk(http, sandbox)
    chosen = markets[3:6]

    by_condition = walk(http, sandbox, condition_ids=",".join(market["conditionId"] for market in chosen))
    by_slug = walk(http, sandbox, slug=chosen[0]["slug"])
    by_token = walk(http, sandbox, clob_token_ids=json.loads(chosen[1]["clobTokenIds"])[1])
    crypto = walk(http, sandbox, tag_id="21", include_tag="true")

    assert {market["id"] for market in by_condition} == {market["id"] for market in chosen}
    assert [market["id"] for market in by_slug] == [chosen[0]["id"]]
    assert [market["id"] for market in by_token] == [chosen[1]["id"]]
    assert crypto
    assert all("crypto" in {tag["slug"] for tag in market["tags"]} for market in crypto)
    assert all("tags" not in market for market in markets)
    assert walk(http, sandbox, volume_num_min="1e30") == []


def test_one_market_is_found_by_id_and_by_slug_and_others_are_not(sandbox, http):
    market = walk(http, sandbox)[0]

    assert http.get(f"{sandbox.gamma_url}/markets/{market['id']}").json()["slug"] == market["slug"]
    assert http.get(f"{sandbox.gamma_url}/markets/slug/{market['slug']}").json()["id"] == market["id"]
    missing = http.get(f"{sandbox.gamma_url}/markets/1")
    assert (missing.status_code, missing.json()) == (404, {"type": "not found error", "error": "id not found"})
    wrong = http.get(f"{sandbox.gamma_url}/markets/{market['conditionId']}")
    assert (wrong.status_code, wrong.json()) == (422, {"type": "validation error", "error": "id is invalid"})


def test_events_hold_their_markets_and_markets_name_their_event(sandbox, http):
    page = http.get(f"{sandbox.gamma_url}/events/keyset", params={"limit": 500}).json()

    assert "next_cursor" not in page
    for event in page["events"]:
        assert isinstance(event["volume"], float)
        assert event["tags"]
        for market in event["markets"]:
            assert "events" not in market
            whole = http.get(f"{sandbox.gamma_url}/markets/{market['id']}").json()
            assert whole["events"][0]["id"] == event["id"]
            assert "markets" not in whole["events"][0]


def test_prices_of_a_neg_risk_event_sum_to_about_one(sandbox, http):
    events = http.get(f"{sandbox.gamma_url}/events", params={"limit": 500}).json()
    groups = [event for event in events if event["negRisk"] and len(event["markets"]) > 3]

    sums = [sum(float(json.loads(market["outcomePrices"])[0]) for market in event["markets"]) for event in groups]

    assert groups
    assert all(0.8 < total < 1.2 for total in sums), sums
    assert all(market["negRiskMarketID"] == event["negRiskMarketID"] for event in groups for market in event["markets"])


def test_tags_series_and_search_answer(sandbox, http):
    tags = http.get(f"{sandbox.gamma_url}/tags").json()
    series = http.get(f"{sandbox.gamma_url}/series").json()
    found = http.get(f"{sandbox.gamma_url}/public-search", params={"q": "bitcoin up"}).json()
    none = http.get(f"{sandbox.gamma_url}/public-search", params={"q": "nothing of the kind"}).json()

    assert {"id", "label", "slug"} <= tags[0].keys()
    assert any(one["recurrence"] == "5m" for one in series)
    assert all("Bitcoin" in event["title"] for event in found["events"])
    assert none == {"pagination": {"hasMore": False, "totalResults": 0}}
