"""The benchmark of hosts: what it asks and counts, over a real replica."""

from __future__ import annotations

import pytest

from benchmarks.api.data import Size
from benchmarks.harness import Options
from benchmarks.hosts import hosts
from benchmarks.hosts.hosts import API, PRIMARY, REPLICA, Turn

CPU_S = {API: 0.3, PRIMARY: 0.1, REPLICA: 0.2}


def test_the_cost_of_a_request_is_compared_with_one_host_in_the_same_turn():
    done = {
        1: [Turn(15.0, [1.0] * 1000, CPU_S, {PRIMARY: 1, REPLICA: 9})] * 2,
        2: [Turn(15.0, [1.0, 3.0] * 1000, {name: 2.4 * each for name, each in CPU_S.items()}, {PRIMARY: 1, REPLICA: 9})]
        * 2,
    }

    alone, two, *_ = hosts.costs(done)

    assert (alone.value, alone.ratio, alone.met) == (600, None, None)
    assert (two.value, two.ratio, two.spread, two.met) == (720, 1.2, (1.2, 1.2), False)
    assert two.detail == {
        "API_us": 360,
        "primary_us": 120,
        "replica_us": 240,
        "requests": 4000,
        "p50_ms": 3,
        "p99_ms": 3,
    }


def test_what_is_used_when_nothing_is_asked_does_not_count():
    idle = Turn(30.0, [], {API: 0.06, PRIMARY: 0.02, REPLICA: 0.0}, {PRIMARY: 0, REPLICA: 0})

    assert Turn(15.0, [1.0], CPU_S, {}).without(idle).cpu_s == pytest.approx({API: 0.27, PRIMARY: 0.09, REPLICA: 0.2})


@pytest.mark.parametrize(("of_primary", "met"), [(20, True), (21, False)])
def test_the_replicas_share_is_that_of_all_transactions(of_primary, met):
    share = hosts.share_of_replica({1: [Turn(15.0, [1.0], CPU_S, {PRIMARY: of_primary, REPLICA: 80})]})

    assert share.met is met


def test_hosts_are_measured_over_a_database_and_its_replica(monkeypatch):
    monkeypatch.setattr(hosts, "SIZE", Size(markets=200, trades=2_000))
    monkeypatch.setattr(hosts, "HOSTS", (1, 2))
    monkeypatch.setattr(hosts, "TURN_S", 0.5)
    monkeypatch.setattr(hosts, "REPORTED_S", 0.1)

    figures = {each.figure: each for each in hosts.run(Options(repetitions=1), lambda _: None)}

    assert len(figures) == 6
    assert figures["CPU of a request, API alone, hosts: 2"].detail["requests"] == 2 * hosts.RATE * hosts.TURN_S
    assert figures["CPU of a request, API and databases, hosts: 2"].detail["replica_us"] > 0
    assert 0 <= figures["share of the transactions on the replica"].value <= 1, (
        "few are reported within so short a time"
    )
