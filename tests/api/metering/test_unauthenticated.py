"""Requests without a valid key: a budget per address, and what a flood of them does to customers."""

from __future__ import annotations

import http.client
import json
import os
import secrets
import threading
from contextlib import closing, contextmanager

import pytest

from api.endpoints.table import ENDPOINTS
from api.errors import Problem
from api.metering import keys
from api.metering import unauthenticated as limits
from api.metering.key_filter import KeyFilter
from api.metering.unauthenticated import MINUTE_NS, AddressBudgets, UnauthenticatedRequests
from sql import database
from tests.api.conftest import generous, serving
from tests.patience import PATIENCE_S, until

ATTACKERS, KEYS, REQUESTS = 32, 10, 25
CUSTOMERS = 2  # as many as a worker has connections for them: none waits for another


class Caller:
    """A client at an address of its own; the whole of 127.0.0.0/8 is this machine."""

    def __init__(self, server, address):
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=PATIENCE_S, source_address=(address, 0)
        )

    def ask(self, path="/v1/time", key=None, body=None):
        headers = {} if key is None else {"X-API-Key": key}
        self.connection.request("GET" if body is None else "POST", path, body=body, headers=headers)
        answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def close(self):
        self.connection.close()


def ask(server, address, **what):
    with closing(Caller(server, address)) as caller:
        return caller.ask(**what)


def guess():
    return keys.PREFIX + secrets.token_urlsafe(32)


def registration():
    return json.dumps({"app_name": "bot", "email": f"{secrets.token_hex(8)}@example.com"})


# --- The budget


@pytest.fixture
def now():
    return [5_000_000_000]


@pytest.fixture
def budgets(now):
    return AddressBudgets(clock_ns=lambda: now[0])


def test_an_address_may_use_ten_seconds_at_once_and_then_waits_for_its_share(budgets, now):
    assert [budgets.take("192.0.2.1", 60) for _ in range(10)] == [0.0] * 10

    assert budgets.take("192.0.2.1", 60) == pytest.approx(1.0)
    assert budgets.take("192.0.2.2", 60) == 0.0
    now[0] += MINUTE_NS // 60
    assert budgets.take("192.0.2.1", 60) == 0.0
    assert budgets.take("192.0.2.1", 60) == pytest.approx(1.0)
    now[0] += MINUTE_NS
    assert [budgets.take("192.0.2.1", 60) for _ in range(11)] == [0.0] * 10 + [pytest.approx(1.0)]


def test_any_number_of_addresses_takes_the_same_memory_and_seldom_uses_up_anothers_budget(budgets):
    size = len(budgets._cells)
    for number in range(2000):
        for _ in range(3):
            budgets.take(f"attacker {number}", 12)

    refused = sum(budgets.take(f"other {number}", 12) > 0 for number in range(2000))

    assert refused < 2000 * 0.02  # both cells of one in 270
    assert len(budgets._cells) == size


def test_workers_count_together(budgets):
    pid = os.fork()
    if not pid:
        for _ in range(4):
            budgets.take("192.0.2.1", 60)
        os._exit(0)
    os.waitpid(pid, 0)

    assert [budgets.take("192.0.2.1", 60) for _ in range(7)] == [0.0] * 6 + [pytest.approx(1.0)]


def test_delays_of_refusals_are_bounded_in_number(budgets, monkeypatch):
    monkeypatch.setattr(limits, "MAX_PAUSED", 5)
    paused = []

    def pause(seconds):
        """Be refused again while paused."""
        paused.append(seconds)
        with pytest.raises(Problem):
            limited.admit("192.0.2.1")

    limited = UnauthenticatedRequests(budgets, 1, pause)
    limited.admit("192.0.2.1")
    for _ in range(2):
        with pytest.raises(Problem):
            limited.admit("192.0.2.1")

    assert len(paused) == 10
    assert all(1.0 <= seconds <= 3.0 for seconds in paused)
    assert len(set(paused)) > 1


def test_the_filter_misses_no_key_and_few_others_pass():
    valid, digests = KeyFilter(), [secrets.token_bytes(32) for _ in range(20_000)]
    for digest in digests:
        valid.add(digest)

    assert all(digest in valid for digest in digests)
    assert sum(secrets.token_bytes(32) in valid for _ in range(20_000)) < 20


# --- In the API


@pytest.fixture
def limited(service):
    """The application's service, with a budget of 18 requests a minute, three at once; its clock stands still."""
    service.unauthenticated = UnauthenticatedRequests(AddressBudgets(clock_ns=lambda: MINUTE_NS), 18)
    return service


@pytest.mark.parametrize("key", [None, "wrong", "x" * 5000])
def test_a_refusal_names_the_limit_and_when_to_retry(client, limited, key):
    answers = [client.ask("/v1/time", key=key) for _ in range(5)]

    assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
    last = answers[-1]
    assert (last.status_code, last.json["code"], last.headers["Retry-After"]) == (429, "burst_exceeded", "4")
    assert "18 requests a minute without a valid API key" in last.json["detail"]
    assert client.ask("/v1/time").status_code == 200  # at the same address
    assert client.ask("/v1/time", key=key, headers={"X-Forwarded-For": "198.51.100.7"}).status_code == 429


def test_addresses_of_one_ipv6_network_share_a_budget(client, limited):
    def asked(address):
        return client.simulate_get("/v1/time", remote_addr=address).status_code

    assert [asked(f"2001:db8:1:2::{number}") for number in range(4)] == [401, 401, 401, 429]
    assert asked("2001:db8:1:3::1") == 401


def test_registrations_are_charged_before_they_are_read(client, limited, conn):
    answers = [client.simulate_post("/register", body=b"{").status_code for _ in range(4)]

    assert answers == [400, 400, 400, 429]


def test_an_address_beyond_its_day_is_refused_without_a_query(client, service, monkeypatch):
    service.registrations_a_day = 1
    asked = [client.simulate_post("/register", body=registration()).status_code for _ in range(2)]

    def failing():
        raise AssertionError

    monkeypatch.setattr(service.writes, "connection", failing)
    asked.append(client.simulate_post("/register", body=registration()).status_code)

    assert asked == [201, 429, 429]


def test_every_endpoint_with_a_key_documents_the_refusal():
    from api.openapi.document import document

    paths = document()["paths"]
    for endpoint in ENDPOINTS:
        if endpoint.key in {"header", "either", "query"} or endpoint.name == "register":
            assert "429" in paths[endpoint.path][endpoint.method.lower()]["responses"], endpoint.name


# --- On a server


def test_a_server_refuses_an_address_beyond_its_budget_and_its_customers_not(database_url, conn):
    with serving(database_url, PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE="18") as server:
        cold = [generous(conn, f"{number}@example.com") for number in range(6)]

        answers = [ask(server, "127.0.1.1", key=guess())[0] for _ in range(4)]

        assert answers == [401, 401, 401, 429]
        assert [ask(server, "127.0.1.1", key=key)[0] for key in cold] == [200] * 6
        assert ask(server, "127.0.1.2", key=guess())[0] == 401


def test_a_key_that_was_tried_before_it_was_made_is_valid_at_once_in_every_worker(database_url, conn):
    key = guess()
    owner = generous(conn, "someone@example.com")
    with serving(database_url, workers=2) as server, several(server, 12) as callers:
        assert {caller.ask(key=key)[0] for caller in callers} == {401}

        conn.execute(
            "insert into api_keys (account_id, key_hash, prefix, tier)"
            " select account_id, %s, 'x', 'enterprise' from api_keys where key_hash = %s",
            [keys.digest(key), keys.digest(owner)],
        )

        until(lambda: {caller.ask(key=key)[0] for caller in callers} == {200}, within_s=keys.UNKNOWN_TTL_S / 2)


def test_keys_are_found_also_while_no_changes_are_notified(database_url, conn):
    ended = """
        select count(pg_terminate_backend(pid)) from pg_stat_activity
        where application_name = 'presage api keys' and datname = current_database()
    """
    with serving(database_url) as server:
        until(lambda: conn.execute(ended).fetchone() == (1,))
        key = generous(conn, "someone@example.com")

        assert ask(server, "127.0.1.1", key=key)[0] == 200
        until(lambda: conn.execute(ended).fetchone() == (1,))  # it has connected again


def attack(server, number, stop, seen):
    """Send unknown keys and registrations until told to stop."""
    with closing(Caller(server, f"127.0.2.{number}")) as caller:
        while not stop.is_set():
            seen.add(caller.ask(key=guess())[0])
            seen.add(caller.ask("/register", body=registration())[0])


def serve(server, number, cold, lacking):
    """Ask with each key more often than its lease of ten credits allows."""
    with closing(Caller(server, f"127.0.3.{number}")) as caller:
        for key in cold:
            for _ in range(REQUESTS):
                status, _, body = caller.ask("/v1/stats", key=key)
                if status != 200:
                    lacking.append((status, body))


def test_a_flood_of_unknown_keys_is_not_felt_by_customers_with_cold_keys_and_expired_leases(database_url, conn):
    stop, lacking, seen = threading.Event(), [], set()
    cold = [
        [generous(conn, f"{number}-{each}@example.com", credits_month=10_000) for each in range(KEYS)]
        for number in range(CUSTOMERS)
    ]
    with (
        serving(
            database_url, PRESAGE_UNAUTHENTICATED_REQUESTS_A_MINUTE="1000000", PRESAGE_API_STATEMENT_TIMEOUT_MS="60000"
        ) as server,
        database.connect(database_url) as slow,
    ):
        # Registrations take as long as the database likes: here as long as this transaction.
        slow.execute("lock table registrations in exclusive mode")
        attackers = [threading.Thread(target=attack, args=[server, each, stop, seen]) for each in range(ATTACKERS)]
        served = [threading.Thread(target=serve, args=[server, each, cold[each], lacking]) for each in range(CUSTOMERS)]
        for thread in attackers:
            thread.start()
        until(lambda: waiting_registrations(conn) >= 2)
        for thread in served:
            thread.start()
        for thread in served:
            thread.join()
        stop.set()
        slow.rollback()
        for thread in attackers:
            thread.join()

    assert lacking == []
    assert seen <= {201, 401, 429, 503}


def waiting_registrations(conn):
    (count,) = conn.execute(
        "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like '%registrations%'"
    ).fetchone()
    return count


@contextmanager
def several(server, count):
    callers = [Caller(server, f"127.0.4.{number}") for number in range(count)]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.close()
