"""Events, categories, tags and series."""

from __future__ import annotations

import datetime as dt

import pytest

from orchestration.candles import activity
from tests.factories import insert

NOW = dt.datetime.now(dt.UTC)


def slugs(answer):
    assert answer.status_code == 200, answer.text
    return [market["slug"] for market in answer.json["data"]]


def test_names_are_counted_with_those_that_have_most_first(client, conn, add_market):
    add_market(category="sports", tags=["ball", "live"], series="cup")
    add_market(category="sports", tags=["ball"])
    add_market(category="politics", tags=[])
    counted = activity.bring_up_to_date(conn, NOW)

    assert counted.names == 5
    assert client.ask("/v1/categories").json == [
        {"category": "sports", "market_count": 2},
        {"category": "politics", "market_count": 1},
    ]
    assert client.ask("/v1/tags").json == [{"tag": "ball", "market_count": 2}, {"tag": "live", "market_count": 1}]
    assert client.ask("/v1/series").json == [{"series": "cup", "market_count": 1}]


def test_names_are_counted_every_few_minutes_and_forgotten_when_nothing_bears_them(conn, add_market):
    add_market(category="sports")
    activity.bring_up_to_date(conn, NOW)
    conn.execute("update markets set category = 'politics'")

    assert activity.bring_up_to_date(conn, NOW + dt.timedelta(minutes=4)).names is None
    assert activity.bring_up_to_date(conn, NOW + dt.timedelta(minutes=6)).names == 1

    assert conn.execute("select name from name_counts").fetchall() == [("politics",)]


@pytest.fixture
def several(add_market):
    """Markets of one event and category, named after what they are."""
    shared = {"event_id": "7", "category": "sports"}
    add_market("first-old", end_time=NOW + dt.timedelta(days=1), created_at=NOW - dt.timedelta(days=9), **shared)
    add_market("last-new", end_time=NOW + dt.timedelta(days=3), created_at=NOW - dt.timedelta(days=1), **shared)
    add_market(
        "ended",
        end_time=NOW + dt.timedelta(days=2),
        created_at=NOW - dt.timedelta(days=5),
        status="RESOLVED",
        **shared,
    )
    add_market("endless", created_at=NOW - dt.timedelta(days=7), **shared)
    add_market("other", event_id="8", category="politics")


BY_END = ["first-old", "ended", "last-new", "endless"]
BY_AGE = ["last-new", "ended", "endless", "first-old"]


@pytest.mark.parametrize(
    ("path", "usual"), [("/v1/events/7/markets", BY_END), ("/v1/categories/sports/markets", BY_AGE)]
)
def test_markets_of_an_event_or_category_come_in_either_order(client, several, path, usual):
    assert slugs(client.ask(path)) == usual
    assert slugs(client.ask(path, sort="resolution")) == BY_END
    assert slugs(client.ask(path, sort="created")) == BY_AGE
    assert slugs(client.ask(path, sort="created", limit=2, offset=1)) == BY_AGE[1:3]
    assert slugs(client.ask(path, sort="resolution", limit=2, offset=2)) == BY_END[2:]
    assert slugs(client.ask(path, status="RESOLVED")) == ["ended"]
    assert slugs(client.ask(path, status="CLOSED")) == []


def test_the_answer_says_what_it_is_about(client, several):
    assert client.ask("/v1/events/7/markets", limit=1).json["event_id"] == "7"
    answer = client.ask("/v1/categories/politics/markets").json
    assert (answer["category"], answer["count"]) == ("politics", 1)


@pytest.mark.parametrize("path", ["/v1/events/9/markets", "/v1/categories/art/markets", "/v1/events/%00/markets"])
def test_what_nobody_has_heard_of_is_not_found(client, several, path):
    answer = client.ask(path)

    assert (answer.status_code, answer.json["code"]) == (404, "not_found")


def test_an_event_without_markets_has_none(client, conn):
    insert(conn, "events", {"event_id": "9"})

    assert client.ask("/v1/events/9/markets").json == {"event_id": "9", "data": [], "count": 0}


@pytest.mark.parametrize(("path", "most"), [("/v1/events/7/markets", 200), ("/v1/categories/sports/markets", 100)])
def test_an_answer_holds_no_more_than_it_may(client, several, path, most):
    assert client.ask(path, limit=most).status_code == 200
    assert client.ask(path, limit=most + 1).status_code == 400
    assert client.ask(path, sort="volume").status_code == 400
