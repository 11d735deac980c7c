import time

import pytest

from orchestration.feeds import lease as module
from orchestration.feeds.lease import FeedLease, LeaseRow, another_ready, may_leave, progress, successor


def lease_row(run_id, *, started=0.0, silent=0.5, role="standby", ready=True, **detail):
    return LeaseRow(run_id, role, ready, started, silent, {"ready_for_s": 10.0, **detail})


ME = lease_row("me", role="leader", started=100.0)


@pytest.mark.parametrize(
    "other",
    [
        lease_row("older", started=50.0),
        lease_row("dead", started=200.0, silent=11.0),
        lease_row("gone", started=200.0, role="gone"),
        lease_row("unready", started=200.0, ready=False),
        lease_row("just ready", started=200.0, ready_for_s=2.9),
    ],
)
def test_no_leader_hands_over_to_a_run_that_is(other):
    assert successor([other, ME], "me") is None


def test_a_leader_hands_over_to_a_younger_run_with_every_book_synced():
    assert successor([ME, lease_row("young", started=200.0)], "me").run_id == "young"


def test_the_commit_of_the_last_other_leader_counts_even_if_it_is_dead_or_behind_an_earlier_one():
    early = lease_row("a", led_ms=1, written_ms=50)
    leases = [early, lease_row("b", silent=500.0, led_ms=2, written_ms=9), lease_row("me", led_ms=3, written_ms=99)]

    assert progress(leases, "me") == (2, 9)
    assert progress([*leases, lease_row("c", led_ms=4)], "me") == (2, 9), "it has not committed anything yet"
    assert progress([], "me") == (0, 0)


def test_only_ready_and_alive_runs_are_better_prepared():
    assert another_ready([lease_row("a")], "me")
    assert not another_ready([lease_row("a", ready=False), lease_row("b", silent=60.0), ME], "me")


def test_a_lease_shows_what_its_run_says_of_itself(database_url):
    lease = FeedLease(database_url, "polymarket", "run-1", window_s=60)
    lease.touch("standby", {"written_ms": 0}, ready=False)
    (seen,) = lease.touch("leader", {"written_ms": 7}, ready=True)
    lease.close()

    assert (seen.run_id, seen.role, seen.ready, seen.written_ms) == ("run-1", "leader", True, 7)
    assert seen.alive
    assert seen.silent_s < 5


@pytest.mark.parametrize("ahead_s", [5.0, -5.0])
def test_a_lease_says_how_far_the_hosts_clock_is_from_the_databases(database_url, monkeypatch, ahead_s):
    monkeypatch.setattr(module, "time", lambda: time.time() + ahead_s)
    lease = FeedLease(database_url, "polymarket", "run-1", window_s=60)
    lease.touch("standby", {}, ready=False)
    (seen,) = lease.touch("standby", {}, ready=False)
    lease.close()

    assert abs(seen.detail["clock_ahead_ms"] - ahead_s * 1000) < 1000
    assert abs(lease.database_ms() - time.time() * 1000) < 1000


@pytest.mark.parametrize(
    ("other", "heard_s_ago", "may"),
    [
        (lease_row("younger", started=200.0), 1.0, True),
        (lease_row("younger", started=200.0), 11.0, False),
        (lease_row("younger", started=200.0, silent=11.0), 1.0, False),
        (lease_row("older", started=50.0), 1.0, False),
    ],
)
def test_a_replaced_run_may_leave_only_for_a_younger_one_of_which_it_has_just_heard(other, heard_s_ago, may):
    assert may_leave([ME, other], "me", time.monotonic() - heard_s_ago) is may
