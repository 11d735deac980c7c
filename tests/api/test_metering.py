"""Credits: exact in the second and in the month, whoever counts."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections import Counter

import pytest

from api import keys, metering
from api.metering import CannotPay, Meter
from api.pool import Pool
from api.slots import Slots
from tests.api.conftest import generous, serving

MONTH = "date_trunc('month', now(), 'UTC')"


def used(conn, key):
    row = conn.execute(
        f"select used from credit_usage join api_keys using (key_id) where key_hash = %s and month = {MONTH}",
        [keys.digest(key)],
    ).fetchone()
    return row[0] if row else 0


@pytest.fixture
def steady(monkeypatch):
    """A clock of seconds that moves when told."""
    now = [time.time() // 1000 * 1000]
    monkeypatch.setattr(metering.time, "time", lambda: now[0])
    return now


def test_the_credits_of_a_second_are_exact(client, conn, steady):
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
    steady[0] += 1
    assert client.ask("/v1/markets", key=key).status_code == 200


def test_a_dear_request_takes_as_many_and_a_free_one_counts_as_one(client, conn, steady, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=5)
    add_market("rain")

    assert client.ask("/v1/markets/rain/trades", key=key, limit=4000).headers["RateLimit"] == '"burst";r=1;t=1'
    assert client.ask("/v1/time", key=key).headers["RateLimit"] == '"burst";r=0;t=1'
    assert client.ask("/v1/time", key=key).status_code == 429
    steady[0] += 1
    assert client.ask("/v1/markets/rain/price-history", key=key, limit=20_000).status_code == 200


def test_the_credits_of_a_month_are_exact(client, conn, add_market):
    key = generous(conn, "frugal@example.com", credits_month=7)
    add_market("rain")

    answers = [client.ask("/v1/markets", key=key) for _ in range(5)]
    dear = client.ask("/v1/markets/rain/trades", key=key, limit=3000)
    answers += [client.ask("/v1/markets", key=key) for _ in range(4)]

    assert [answer.status_code for answer in answers] == [200] * 7 + [402] * 2
    assert [answer.headers["X-Credits-Remaining"] for answer in answers] == list("65432") + list("10") + ["0", "0"]
    assert dear.status_code == 402
    refused = answers[-1]
    assert refused.json["code"] == "quota_exhausted"
    assert (refused.headers["X-Credits-Limit"], refused.headers["X-Credits-Used"]) == ("7", "7")
    assert int(refused.headers["Retry-After"]) > 0
    assert client.ask("/v1/time", key=key).status_code == 200
    assert used(conn, key) == 7


@pytest.mark.parametrize("path", ["/v1/markets/nothing", "/v1/markets/rain/price", "/v1/prices"])
def test_a_failure_is_paid_back(client, path, add_market):
    add_market("rain")
    before = client.ask("/v1/time").headers["X-Credits-Used"]

    assert client.ask(path).headers["X-Credits-Used"] == before
    assert client.ask("/v1/time").headers["X-Credits-Used"] == before


def test_what_is_not_sent_again_is_not_paid_but_counts_in_the_second(client, conn, steady, add_market):
    key = generous(conn, "bursty@example.com", credits_burst=3)
    add_market("rain")
    tag = client.ask("/v1/markets/rain", key=key).headers["ETag"]

    same = client.ask("/v1/markets/rain", key=key, headers={"If-None-Match": tag})

    assert (same.status_code, same.headers["X-Request-Cost"], same.headers["X-Credits-Used"]) == (304, "0", "1")
    assert same.headers["RateLimit"] == '"burst";r=1;t=1'


def test_a_new_month_begins_with_all_credits(client, conn, monkeypatch):
    key = generous(conn, "frugal@example.com", credits_month=3)
    for _ in range(3):
        client.ask("/v1/markets", key=key)
    assert client.ask("/v1/markets", key=key).status_code == 402
    end = metering.month_end()

    monkeypatch.setattr(metering.time, "time", lambda: end + 1.0)

    answer = client.ask("/v1/markets", key=key)
    assert (answer.status_code, answer.headers["X-Credits-Used"]) == (200, "1")
    assert int(answer.headers["X-Credits-Reset"]) > end
    monkeypatch.undo()
    assert client.ask("/v1/markets", key=key).status_code == 402


def test_a_key_without_limits_is_counted_all_the_same(client, conn):
    key = keys.create(conn, "big@example.com", "tests", "enterprise")

    answer = client.ask("/v1/markets", key=key)

    assert (answer.headers["X-Credits-Limit"], answer.headers["X-Credits-Used"]) == ("unlimited", "1")
    assert "RateLimit" not in answer.headers


def test_what_is_leased_and_not_spent_is_returned(client, service, conn):
    for _ in range(3):
        client.ask("/v1/markets")
    assert used(conn, client.key) == 100

    service.meter.give_back()

    assert used(conn, client.key) == 3
    assert client.ask("/v1/markets").headers["X-Credits-Used"] == "4"


def test_a_replaced_key_passes_on_what_was_spent_and_no_more(client, conn):
    for _ in range(3):
        client.ask("/v1/markets")

    new = client.simulate_post("/v1/keys/rotate", headers={"X-API-Key": client.key}).json["key"]

    assert client.ask("/v1/markets", key=new).headers["X-Credits-Used"] == "4"


class DyingPool(Pool):
    """Loses its connection once, after the database has done what it was asked."""

    dying = True

    def connection(self):
        return Dying(super().connection(), self)


class Dying:
    def __init__(self, real, pool):
        self.real, self.pool = real, pool

    def __enter__(self):
        return self.real.__enter__()

    def __exit__(self, *why):
        self.real.__exit__(*why)
        if self.pool.dying:
            self.pool.dying = False
            raise ConnectionError("the answer was lost")


def test_a_lease_whose_answer_was_lost_is_not_taken_twice(database_url, conn):
    pool = DyingPool(database_url, 2)
    meter, key = Meter(pool, Slots(16)), keys.Keys
    text = generous(conn, "someone@example.com")
    found = keys.Key(*conn.execute("select key_id, tier, 100000, null, null from api_keys").fetchone())

    with pytest.raises(ConnectionError):
        meter.admit(found, 1)
    grant = meter.admit(found, 1)

    assert grant.used == 1
    assert used(conn, text) == 100
    assert key
    pool.close()


def test_many_who_share_a_key_get_exactly_its_credits(database_url, conn):
    pool = Pool(database_url, 8)
    meter = Meter(pool, Slots(16))
    generous(conn, "someone@example.com")
    key = keys.Key(*conn.execute("select key_id, tier, 333, null, null from api_keys").fetchone())
    served = Counter()

    def spend():
        for _ in range(50):
            try:
                meter.admit(key, 1)
                served["paid"] += 1
            except CannotPay:
                served["refused"] += 1

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert served == {"paid": 333, "refused": 67}
    pool.close()


def ask_often(server, key, times, path="/v1/markets"):
    """Ask over one connection; the statuses, None where it broke."""
    statuses = []
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for _ in range(times):
        try:
            connection.request("GET", path, headers={"X-API-Key": key})
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        except (OSError, http.client.HTTPException):
            connection.close()
            statuses.append(None)
    connection.close()
    return statuses


def together(clients, work):
    results = []
    threads = [threading.Thread(target=lambda: results.extend(work())) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return Counter(results)


def test_two_workers_serve_exactly_the_quota_and_lose_only_what_was_under_way_when_killed(database_url, conn):
    key = generous(conn, "someone@example.com", credits_month=1500)
    other = generous(conn, "other@example.com", credits_month=1500)
    with serving(database_url, workers=2) as server:
        assert together(16, lambda: ask_often(server, key, 110)) == {200: 1500, 402: 260}
        assert used(conn, key) == 1500

        victim = server.workers()[0]
        threading.Timer(0.3, os.kill, (victim, signal.SIGKILL)).start()
        counted = together(16, lambda: ask_often(server, other, 120))
        assert 1500 - 16 <= counted[200] <= 1500
        assert counted[None] >= 1


def test_two_workers_serve_exactly_the_burst(database_url, conn):
    key = generous(conn, "someone@example.com", credits_burst=20)
    with serving(database_url, workers=2) as server:
        time.sleep(1 - time.time() % 1)
        begun = int(time.time())
        counted = together(8, lambda: ask_often(server, key, 40))
        seconds = int(time.time()) - begun + 1

    assert counted[200] <= 20 * seconds
    assert counted[200] >= 20
    assert counted[200] + counted[429] == 320


def test_a_worker_that_stops_returns_what_it_did_not_spend(database_url, conn):
    key = generous(conn, "someone@example.com")
    with serving(database_url, workers=2) as server:
        assert ask_often(server, key, 5) == [200] * 5
        assert used(conn, key) == 100
        server.stop()

    assert used(conn, key) == 5
