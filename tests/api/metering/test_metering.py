"""Credits: exact per second and per month, over all workers."""

from __future__ import annotations

import datetime as dt
import time

import psycopg
import pytest
from falcon import testing

from api.metering import keys
from api.metering.meter import Month
from tests.api.conftest import generous
from tests.api.metering.metered import hosts, known, pays, used


@pytest.fixture
def clock(service):
    """A clock that is advanced manually, in seconds."""
    now = [max(time.time() // 1000 * 1000, Month.of(time.time()).first)]
    service.meter._clock = lambda: now[0]
    return now


@pytest.fixture
def host(conn):
    return hosts(conn)


# --- The second


def test_the_credits_of_a_second_are_exact(client, conn, clock):
    key = generous(conn, "bursty@example.com", credits_burst=5)

    answers = [client.ask("/v1/markets", key=key) for _ in range(8)]

    assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
    assert [answer.headers["RateLimit"] for answer in answers[:5]] == [
        f'"burst";r={left};t=1' for left in (4, 3, 2, 1, 0)
    ]
    refused = answers[-1]
    assert (refused.json["code"], refused.headers["Retry-After"]) == ("burst_exceeded", "1")
    assert refused.headers["RateLimit-Policy"] == '"burst";q=5;w=1'
    assert (refused.headers["X-Credits-Used"], refused.headers["X-Request-Cost"]) == ("5", "0")
    clock[0] += 1
    assert client.ask("/v1/markets", key=key).status_code == 200


def test_a_request_takes_what_it_costs_and_one_at_least(client, conn, clock, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=5)
    add_market("rain")

    assert client.ask("/v1/markets/rain/trades", key=key, limit=4000).headers["RateLimit"] == '"burst";r=1;t=1'
    assert client.ask("/v1/markets/rain/trades", key=key, limit=4000).status_code == 429
    assert client.ask("/v1/time", key=key).headers["RateLimit"] == '"burst";r=0;t=1'
    assert client.ask("/v1/time", key=key).status_code == 429


def test_what_costs_more_than_a_second_gives_takes_the_following_seconds_as_well(client, conn, clock, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=5)
    add_market("rain")
    dear = ("/v1/markets/rain/price-history", {"limit": 17_001})

    assert client.ask(dear[0], key=key, **dear[1]).headers["X-Request-Cost"] == "18"
    assert client.ask("/v1/time", key=key).headers["Retry-After"] == "3"
    clock[0] += 2
    assert client.ask("/v1/time", key=key).status_code == 429
    clock[0] += 1
    assert client.ask("/v1/time", key=key).headers["RateLimit"] == '"burst";r=1;t=1'
    assert client.ask(dear[0], key=key, **dear[1]).status_code == 429
    clock[0] += 1
    assert client.ask(dear[0], key=key, **dear[1]).status_code == 200


def test_mistakes_are_free_but_not_without_end(client, conn, clock):
    key = generous(conn, "bursty@example.com", credits_burst=3)

    answers = [client.ask("/v1/markets", key=key, limit=-1) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [400] * 3 + [429] * 2
    assert {answer.headers["X-Credits-Used"] for answer in answers} == {"0"}
    assert {answer.headers["X-Credits-Limit"] for answer in answers} == {"100000"}


def test_a_clock_that_is_set_back_grants_no_second_twice(conn, host):
    now = [1_800_000_000]
    meter = host(clock=lambda: now[0])
    key = known(conn, meter, generous(conn, "bursty@example.com", credits_burst=2))
    assert [pays(meter, key) for _ in range(3)] == [True, True, False]

    now[0] -= 100

    assert not pays(meter, key)
    now[0] += 1
    assert pays(meter, key)


# --- The month


def test_the_credits_of_a_month_are_exact(client, conn, add_market):
    key = generous(conn, "frugal@example.com", credits_month=7)
    add_market("rain")

    answers = [client.ask("/v1/markets", key=key) for _ in range(5)]
    dear = client.ask("/v1/markets/rain/trades", key=key, limit=3000)
    answers += [client.ask("/v1/markets", key=key) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200] * 7 + [402] * 2
    assert [answer.headers["X-Credits-Remaining"] for answer in answers] == [*"6543210", "0", "0"]
    assert dear.status_code == 402
    refused = answers[-1]
    assert refused.json["code"] == "quota_exhausted"
    assert (refused.headers["X-Credits-Limit"], refused.headers["X-Credits-Used"]) == ("7", "7")
    reset = int(refused.headers["X-Credits-Reset"])
    assert abs(int(refused.headers["Retry-After"]) - (reset - time.time())) < 60
    assert client.ask("/v1/time", key=key).status_code == 200
    assert used(conn, key) == 7


@pytest.mark.parametrize("path", ["/v1/markets/nothing", "/v1/markets/rain/price", "/v1/prices"])
def test_a_request_that_finds_nothing_is_paid_back(client, path, add_market):
    add_market("rain")
    before = client.ask("/v1/markets").headers["X-Credits-Used"]

    answer = client.ask(path)

    assert answer.status_code in {400, 404}
    assert (answer.headers["X-Credits-Used"], answer.headers["X-Request-Cost"]) == (before, "0")
    assert client.ask("/v1/time").headers["X-Credits-Used"] == before


@pytest.mark.parametrize(
    ("failure", "status"), [(RuntimeError("a bug"), 500), (psycopg.errors.QueryCanceled("slow"), 503)]
)
def test_our_own_failure_is_paid_back(client, service, monkeypatch, add_market, failure, status):
    add_market("rain")
    before = client.ask("/v1/markets/rain").headers["X-Credits-Used"]

    def fail(_work):
        raise failure

    with monkeypatch.context() as broken:
        broken.setattr(service, "reads", type("Broken", (), {"read": staticmethod(fail)}))
        answer = client.ask("/v1/markets/rain")

    assert (answer.status_code, answer.headers["X-Request-Cost"]) == (status, "0")
    assert answer.headers["X-Credits-Used"] == before
    assert client.ask("/v1/markets/rain").headers["X-Credits-Used"] == str(int(before) + 1)


def test_when_credits_cannot_be_fetched_the_answer_tells_how_the_key_stood(client, conn, service, monkeypatch):
    service.meter.leases.in_background = lambda _: None  # no lease is topped up
    key = generous(conn, "frugal@example.com", credits_month=5000)
    for _ in range(10):
        client.ask("/v1/markets", key=key)

    def fail(_work):
        raise psycopg.OperationalError("away")

    monkeypatch.setattr(service.meter.leases, "_pool", type("Away", (), {"read": staticmethod(fail)}))
    answer = client.ask("/v1/markets", key=key)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert (answer.headers["X-Credits-Used"], answer.headers["X-Credits-Limit"]) == ("10", "5000")


def test_what_is_not_sent_again_is_not_paid_but_counts_in_the_second(client, conn, clock, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=3)
    add_market("rain")
    tag = client.ask("/v1/markets/rain", key=key).headers["ETag"]

    same = client.ask("/v1/markets/rain", key=key, headers={"If-None-Match": tag})

    assert (same.status_code, same.headers["X-Request-Cost"], same.headers["X-Credits-Used"]) == (304, "0", "1")
    assert same.headers["RateLimit"] == '"burst";r=1;t=1'


def test_a_new_month_begins_with_all_credits(client, conn, clock):
    key = generous(conn, "frugal@example.com", credits_month=13)
    old, following = Month.of(clock[0]), Month.of(Month.of(clock[0]).end)
    clock[0] = old.end - 1
    for _ in range(11):
        client.ask("/v1/markets", key=key)
    assert client.ask("/v1/markets", key=key).headers["X-Credits-Reset"] == str(old.end)
    assert used(conn, key, old) == 13  # leased, one of them not spent

    clock[0] = old.end
    answer = client.ask("/v1/markets", key=key)

    assert (answer.status_code, answer.headers["X-Credits-Used"]) == (200, "1")
    assert answer.headers["X-Credits-Reset"] == str(following.end)
    assert (used(conn, key, old), used(conn, key, following)) == (12, 10)
    assert [client.ask("/v1/markets", key=key).status_code for _ in range(13)] == [200] * 12 + [402]


@pytest.mark.parametrize(
    ("moment", "begin", "end"),
    [
        ("2026-11-21T12:00:00", "2026-11-01T00:00:00", "2026-12-01T00:00:00"),
        ("2026-12-31T23:59:59.999999", "2026-12-01T00:00:00", "2027-01-01T00:00:00"),
        ("2027-01-01T00:00:00", "2027-01-01T00:00:00", "2027-02-01T00:00:00"),
        ("2028-02-29T00:00:00", "2028-02-01T00:00:00", "2028-03-01T00:00:00"),
    ],
)
def test_months_are_those_of_the_calendar_in_utc(moment, begin, end):
    instants = [dt.datetime.fromisoformat(f"{text}+00:00") for text in (moment, begin, end)]

    month = Month.of(instants[0].timestamp())

    assert (month.first, month.end) == (instants[1].timestamp(), instants[2].timestamp())
    assert month.number == instants[1].year * 12 + instants[1].month - 1


def test_a_key_without_limits_is_counted_all_the_same(client, conn):
    key = keys.create(conn, "big@example.com", "tests", "enterprise")

    answer = client.ask("/v1/markets", key=key)

    assert (answer.headers["X-Credits-Limit"], answer.headers["X-Credits-Used"]) == ("unlimited", "1")
    assert "RateLimit" not in answer.headers


def test_an_enterprise_key_has_the_limits_set_for_it(client, conn, clock):
    key = keys.create(conn, "big@example.com", "tests", "enterprise")
    conn.execute("update api_keys set credits_month = 3, credits_burst = 2 where key_hash = %s", [keys.digest(key)])

    assert [client.ask("/v1/markets", key=key).status_code for _ in range(3)] == [200, 200, 429]
    clock[0] += 1
    assert [client.ask("/v1/markets", key=key).status_code for _ in range(2)] == [200, 402]


def test_a_request_without_a_key_is_told_of_no_credits(client):
    answer = testing.TestClient(client.app).simulate_get("/v1/time")

    shown = {name: answer.headers[f"X-Credits-{name}"] for name in ("Limit", "Remaining", "Used")}
    assert (answer.status_code, shown) == (401, {"Limit": "0", "Remaining": "0", "Used": "0"})
    assert int(answer.headers["X-Credits-Reset"]) == Month.of(time.time()).end
