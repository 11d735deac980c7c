"""The same question on another exchange, as judged."""

from __future__ import annotations

import pytest

from sql.queries import equivalents as queries
from tests.factories import insert


@pytest.fixture
def judged(conn, add_market):
    """A market with five others of another exchange, one of each verdict but identical's opposite."""
    main = add_market("rain")
    others = {}
    for number, verdict in enumerate(("different", "related", "identical", "unreadable", "subset")):
        other = add_market(f"kx-{number}", market_id=f"KX-{number}", gamma_id=None, exchange="kalshi")
        pair = {"left_key": main["market_key"], "right_key": other["market_key"], "left_text": 1, "right_text": 2}
        within = {"within": "left"} if verdict == "subset" else {}
        clause = None if verdict == "identical" else "window"
        insert(
            conn,
            "equivalents",
            {
                **pair,
                **within,
                "verdict": verdict,
                "clause": clause,
                "detail": "a / b",
                "score": 90.5,
                "rules_version": 1,
            },
        )
        others[verdict] = other
    return main, others


def test_what_says_something_is_listed_closest_first(client, judged):
    _, others = judged

    answer = client.ask("/v1/markets/rain/equivalents").json

    found = [(each["market_id"], each["verdict"], each["within"]) for each in answer["data"]]
    assert found == [
        (others["identical"]["market_id"], "identical", None),
        (others["subset"]["market_id"], "subset", "this"),
        (others["related"]["market_id"], "related", None),
    ]
    assert answer["count"] == 3
    assert {each["exchange"] for each in answer["data"]} == {"kalshi"}
    assert [each["clause"] for each in answer["data"]] == [None, "window", "window"]


def test_the_other_market_says_the_same_from_its_side(client, judged):
    main, others = judged

    [found] = client.ask(f"/v1/markets/{others['subset']['market_id']}/equivalents").json["data"]

    assert (found["market_id"], found["exchange"]) == (main["market_id"], "polymarket")
    assert (found["verdict"], found["within"]) == ("subset", "other")


@pytest.mark.parametrize("verdict", ["different", "unreadable", "identical"])
def test_one_verdict_can_be_asked_for(client, judged, verdict):
    found = client.ask("/v1/markets/rain/equivalents", verdict=verdict).json["data"]

    assert [each["verdict"] for each in found] == [verdict]


def test_an_operators_verdict_stands_in_the_place_of_the_rules_with_its_reason(client, conn, judged):
    main, others = judged
    key = others["identical"]["market_key"]
    queries.overrule(
        conn, left_key=main["market_key"], right_key=key, verdict="subset", within="right", why="other void rule"
    )

    found = {each["market_id"]: each for each in client.ask("/v1/markets/rain/equivalents").json["data"]}
    one = found[others["identical"]["market_id"]]

    assert (one["verdict"], one["clause"], one["clause_text"]) == ("subset", None, "other void rule")
    assert one["within"] == "other"
    assert one["overruled"]["verdict"] == "identical"
    assert client.ask("/v1/markets/rain/equivalents", verdict="identical").json["data"] == []


def test_a_market_that_was_never_compared_has_none(client, add_market):
    add_market("snow")

    assert client.ask("/v1/markets/snow/equivalents").json["data"] == []


def test_an_unknown_market_and_verdict_are_refused(client, judged):
    assert client.ask("/v1/markets/no-such/equivalents").status_code == 404
    refused = client.ask("/v1/markets/rain/equivalents", verdict="same")
    assert refused.status_code == 400
    assert "identical" in refused.json["errors"][0]["allowed"]
