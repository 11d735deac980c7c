"""Headers and counts of every response."""

from __future__ import annotations

import datetime as dt

import pytest

from api.endpoints.table import ENDPOINTS
from api.metrics.counts import Counter
from api.metrics.slots import CODE_SLOT

CREDITS = ("X-Credits-Limit", "X-Credits-Remaining", "X-Credits-Used", "X-Credits-Reset", "X-Request-Cost")


def credits_of(answer):
    return [answer.headers[name] for name in CREDITS]


def next_month():
    now = dt.datetime.now(dt.UTC)
    year, month = divmod(now.year * 12 + now.month, 12)
    return str(int(dt.datetime(year, month + 1, 1, tzinfo=dt.UTC).timestamp()))


@pytest.mark.parametrize("path", ["/health", "/openapi.json", "/docs", "/metrics", "/nothing", "/v1/time"])
def test_an_answer_without_a_key_shows_no_credits(client, path):
    assert credits_of(client.simulate_get(path)) == ["0", "0", "0", next_month(), "0"]


def test_an_answer_shows_what_it_cost(client):
    assert credits_of(client.ask("/v1/time"))[-1] == "0"
    limit, remaining, used, reset, cost = credits_of(client.ask("/v1/markets"))
    assert (limit, reset, cost) == ("100000", next_month(), "1")
    assert int(remaining) + int(used) == 100_000


@pytest.mark.parametrize("path", ["/v1/markets/nothing", "/v1/markets?limit=0"])
def test_a_failure_costs_nothing(client, path):
    assert client.ask(path).headers["X-Request-Cost"] == "0"


def test_a_request_has_a_name(client):
    first, second = client.ask("/v1/time"), client.ask("/v1/time")

    assert first.headers["X-Request-Id"] != second.headers["X-Request-Id"]
    assert client.ask("/v1/time", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    assert client.ask("/v1/time", headers={"X-Request-Id": "<bad> " * 20}).headers["X-Request-Id"].isalnum()


def test_what_a_client_has_is_not_sent_again_and_costs_nothing(client, add_market):
    add_market("rain")
    first = client.ask("/v1/markets/rain")

    same = client.ask("/v1/markets/rain", headers={"If-None-Match": f'"other", W/{first.headers["ETag"]}'})

    assert same.status_code == 304
    assert same.content == b""
    assert same.headers["ETag"] == first.headers["ETag"]
    assert same.headers["X-Request-Cost"] == "0"
    assert client.ask("/v1/markets/rain", headers={"If-None-Match": '"other"'}).status_code == 200
    assert client.ask("/v1/markets/rain", headers={"If-None-Match": "*"}).status_code == 304


def test_a_changed_answer_has_another_tag(client, conn, add_market):
    add_market("rain")
    before = client.ask("/v1/markets/rain").headers["ETag"]
    conn.execute("update markets set status = 'CLOSED'")

    assert client.ask("/v1/markets/rain").headers["ETag"] != before


def test_any_page_may_read(client):
    answer = client.ask("/v1/time", headers={"Origin": "https://example.com"})

    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    exposed = answer.headers["Access-Control-Expose-Headers"]
    assert all(name in exposed for name in (*CREDITS, "X-Request-Id", "RateLimit", "Retry-After", "ETag"))


def test_a_browser_is_told_beforehand_what_it_may_send(client):
    answer = client.simulate_options(
        "/v1/markets", headers={"Origin": "https://example.com", "Access-Control-Request-Method": "GET"}
    )

    assert answer.status_code == 200
    assert "X-API-Key" in answer.headers["Access-Control-Allow-Headers"]
    assert "GET" in answer.headers["Access-Control-Allow-Methods"]


def test_headers_alone_can_be_asked_for(client, add_market):
    add_market("rain")

    answer = client.simulate_head("/v1/markets/rain", headers={"X-API-Key": client.key})

    assert answer.status_code == 200
    assert answer.content == b""
    assert int(answer.headers["Content-Length"]) > 100


def test_a_slash_at_the_end_makes_no_difference(client):
    assert client.ask("/v1/time/").status_code == 200


def test_what_fails_at_the_very_end_is_counted_as_it_was_answered(client, service, monkeypatch):
    def refund(grant):
        raise OSError("no lock")

    monkeypatch.setattr(service.meter, "refund", refund)

    answer = client.ask("/v1/markets/nothing")

    counts = service.host.counts
    assert (answer.status_code, answer.json["code"]) == (500, "internal")
    assert counts.problems()[CODE_SLOT["internal"]] == 1
    slot = [endpoint.name for endpoint in ENDPOINTS].index("market")
    assert counts.answered(slot).statuses["500"] == 1
    assert counts.of(Counter.IN_FLIGHT) == 0
