"""Prometheus metrics of a server: correct over all its workers, also after one was killed."""

from __future__ import annotations

import os
import signal
import time
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families
from websockets.sync.client import connect

from api.metrics.counts import BOUNDS, Counter, SharedCounters
from api.server.address import Networks
from tests.api.conftest import generous, serving
from tests.api.metering.test_metering_servers import ask
from tests.patience import PATIENCE_S, until


class Read:
    """Samples of an exposition, found by name and labels."""

    def __init__(self, text):
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def __call__(self, name, **labels):
        values = [
            sample.value for sample in self.samples if sample.name == name and labels.items() <= sample.labels.items()
        ]
        assert values, (name, labels)
        return sum(values)


@pytest.fixture
def read(client):
    return lambda: Read(client.simulate_get("/metrics").text)


def test_requests_are_counted_by_endpoint_and_status_with_how_long_they_took(client, read, add_market):
    add_market("rain")
    for path in ("/v1/markets/rain", "/v1/markets/rain", "/v1/markets/nothing", "/v1/markets?limit=0", "/nowhere"):
        client.ask(path)

    told = read()

    assert told("presage_http_requests_total", endpoint="market", status="200") == 2
    assert told("presage_http_requests_total", endpoint="market", status="404") == 1
    assert told("presage_http_requests_total", endpoint="markets", status="400") == 1
    assert told("presage_http_requests_total", endpoint="none", status="404") == 1
    assert told("presage_http_request_duration_seconds_count", endpoint="market") == 3
    assert 0 < told("presage_http_request_duration_seconds_sum", endpoint="market") < 60
    assert told("presage_http_request_duration_seconds_bucket", endpoint="market", le="+Inf") == 3
    assert told("presage_http_problems_total", code="not_found") == 2
    assert told("presage_http_problems_total", code="invalid_parameter") == 1
    assert told("presage_http_requests_in_flight") == 1  # this one


def test_credits_are_counted_as_they_are_paid_in_the_end(client, conn, read, add_market):
    add_market("rain")
    short = generous(conn, "short@example.com", credits_month=1)
    limited = generous(conn, "limited@example.com", credits_burst=0)
    for path in ("/v1/markets/rain", "/v1/markets/top", "/v1/markets/nothing", "/v1/time"):
        client.ask(path)
    assert [client.ask("/v1/markets", key=short).status_code for _ in range(2)] == [200, 402]
    assert client.ask("/v1/markets", key=limited).status_code == 429

    told = read()

    assert told("presage_credits_spent_total") == 4
    assert told("presage_credits_refused_total", window="month") == 1
    assert told("presage_credits_refused_total", window="second") == 1
    assert told("presage_credit_lease_requests_total") >= 2
    assert told("presage_credit_leases") == 3
    assert told("presage_credits_leased") == 200 - 3


def test_stages_are_told_with_their_lateness(conn, read):
    conn.execute("update stage_clocks set last_data_at = now() - interval '90 s' where stage = 'ingestion'")
    conn.execute("update stage_clocks set last_data_at = null, beat_at = null where stage = 'discovery'")

    told = read()

    assert 90 <= told("presage_stage_lag_seconds", stage="ingestion") < 200
    assert told("presage_stage_fresh", stage="ingestion") == 0
    assert told("presage_stage_fresh", stage="discovery") == 0
    assert "discovery" not in {
        sample.labels.get("stage") for sample in told.families["presage_stage_lag_seconds"].samples
    }
    assert told("presage_database_up") == 1


def test_the_clocks_of_the_feeds_hosts_are_told(conn, read):
    for run_id, ahead_ms in (("a", 12), ("b", -5_000)):
        conn.execute(
            "insert into feed_leases (run_id, feed, role, window_ends_at, detail)"
            " values (%s, 'polymarket', 'standby', now(), jsonb_build_object('clock_ahead_ms', %s::int))",
            [run_id, ahead_ms],
        )

    assert read()("presage_feed_clock_ahead_seconds", feed="polymarket") == -5.0


def test_metrics_are_told_while_the_database_is_away(client, service, read, monkeypatch):
    def away(_work):
        raise psycopg_error

    import psycopg

    psycopg_error = psycopg.OperationalError("unreachable")
    monkeypatch.setattr(service.reads, "read", away)

    told = read()

    assert told("presage_database_up") == 0
    assert "presage_stage_lag_seconds" not in told.families
    assert told("presage_workers") == 1


def test_names_and_units_are_as_prometheus_wants_them(client, read):
    client.ask("/v1/markets")

    for name, family in read().families.items():
        assert name.startswith("presage_")
        assert family.documentation
        if family.type == "counter":
            assert all(sample.name.endswith(("_total", "_created")) for sample in family.samples)
        if family.type == "histogram":
            assert name.endswith("_seconds")
    answer = client.simulate_get("/metrics")
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_whoever_runs_the_service_may_limit_who_reads_them(client, service):
    assert client.simulate_get("/metrics", remote_addr="203.0.113.9").status_code == 200

    service.metrics_readers = Networks("10.0.0.0/8, ::1, 2001:db8::/32")

    for address, status in {"203.0.113.9": 403, "10.1.2.3": 200, "2001:db8::7": 200, "2001:db9::7": 403}.items():
        assert client.simulate_get("/metrics", remote_addr=address).status_code == status
    refused = client.simulate_get("/metrics", remote_addr="203.0.113.9", headers={"X-Forwarded-For": "10.1.2.3"})
    assert refused.json["code"] == "forbidden"


def scraped(server):
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=PATIENCE_S) as answer:
        return Read(answer.read().decode())


def test_every_worker_tells_of_all_and_a_killed_ones_counts_remain(database_url, conn, tmp_path):
    key = generous(conn, "someone@example.com")
    with serving(database_url, workers=2, PRESAGE_METERING_DIR=str(tmp_path)) as server:
        until(lambda: answers(server))  # the second begins a moment after the first
        for _ in range(40):
            assert ask(server, key, "/v1/time")[0].status == 200
        before = scraped(server)
        assert before("presage_workers") == 2
        assert before("presage_http_requests_total", endpoint="time", status="200") == 40
        with connect(server.stream(key)) as stream:
            stream.recv()
            open_now = scraped(server)
            assert open_now("presage_stream_subscribers") == 1
            assert open_now("presage_http_requests_in_flight") == 2

            first, second = server.workers()
            os.kill(first, signal.SIGKILL)
            os.kill(second, signal.SIGKILL)
        until(lambda: len(set(server.workers()) - {first, second}) == 2 and answers(server))
        for _ in range(20):
            assert ask(server, key, "/v1/time")[0].status == 200

        after = scraped(server)
        assert after("presage_workers") == 2
        assert after("presage_http_requests_total", endpoint="time", status="200") == 60
        assert after("presage_http_requests_in_flight") == 1
        assert after("presage_stream_subscribers") == 0


def answers(server):
    try:
        return scraped(server)("presage_workers") == 2
    except OSError:
        return False


def test_a_duration_falls_into_the_bucket_that_bounds_it():
    counts = SharedCounters()
    for seconds in (0.0, 0.001, 0.0011, 5.0, 60.0):
        counts.answer(3, 200, seconds, 0)

    told = counts.answered(3)

    assert [count for bound, count in told.buckets] == [2, *[3] * (len(BOUNDS) - 2), 4, 5]
    assert told.seconds == pytest.approx(65.0021)
    assert counts.answered(4) is None


def test_more_workers_than_there_is_room_for_count_for_themselves(monkeypatch):
    from api.metrics import counts as module

    counts = SharedCounters()
    monkeypatch.setattr(module, "is_alive", lambda _: True)
    pids = iter(range(1, 1000))
    for _ in range(module.ROWS + 3):
        pid = next(pids)
        monkeypatch.setattr(module, "_pid", pid)
        counts.add(Counter.CREDITS_SPENT)

    assert counts.of(Counter.CREDITS_SPENT) == module.ROWS
    assert counts.workers() == module.ROWS


def test_counting_a_request_costs_less_than_twenty_microseconds():
    counts, times = SharedCounters(), 5000
    best = 1.0
    for _ in range(5):
        began = time.process_time()
        for _ in range(times):
            counts.add(Counter.IN_FLIGHT)
            counts.add(Counter.READS_BUSY)
            counts.add(Counter.READS_BUSY, -1)
            counts.add(Counter.IN_FLIGHT, -1)
            counts.answer(7, 200, 0.003, 1)
            counts.add(Counter.CREDITS_SPENT)
        best = min(best, (time.process_time() - began) / times)

    assert best < 20e-6
