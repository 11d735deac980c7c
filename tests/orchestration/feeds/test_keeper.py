import pytest

from orchestration.feeds.keeper import Run, decide
from orchestration.feeds.lease import LeaseRow

NOW = 1_000_000.0


def lease(run_id, age=1.0, role="standby"):
    return LeaseRow(run_id, role, True, 0.0, age, {})


def run(run_id, status="STARTED", age=60.0):
    return Run(run_id, status, NOW - age)


def test_without_runs_two_start_with_windows_that_do_not_end_together():
    decision = decide([], [], NOW)

    assert decision.start == 2
    assert decision.windows == (1.0, 0.5)
    assert decision.reason == "alive 0, coming 0, marked failed 0, started 2"


def test_two_alive_runs_are_enough():
    assert decide([lease("a", role="leader"), lease("b")], [run("a"), run("b")], NOW).start == 0


def test_runs_outside_of_dagster_count_and_are_replaced_by_runs_of_dagster_when_they_are_gone():
    assert decide([lease("cli-a", role="leader"), lease("cli-b")], [], NOW).start == 0
    assert decide([lease("cli-a", role="leader"), lease("cli-b", role="gone")], [], NOW).windows == (1.0,)


def test_a_run_on_its_way_counts():
    for coming in (run("b", "QUEUED", 900), run("b", "STARTING", 5), run("b", "NOT_STARTED", 5), run("b", age=5)):
        decision = decide([lease("a")], [run("a"), coming], NOW)

        assert (decision.start, decision.dead) == (0, ())


def test_a_started_run_whose_lease_went_stale_is_marked_failed_and_replaced():
    decision = decide([lease("a"), lease("b", age=61)], [run("a"), run("b")], NOW)

    assert decision.dead == (("b", "no sign of life for 61 s"),)
    assert decision.windows == (1.0,)


def test_a_started_run_that_is_silent_for_seconds_is_not_replaced():
    decision = decide([lease("a"), lease("b", age=59)], [run("a"), run("b")], NOW)

    assert (decision.start, decision.dead) == (0, ())


@pytest.mark.parametrize(
    ("lives", "led", "patience_s"),
    [
        (True, True, 300),
        (True, False, 60),
        (None, True, 60),
        (None, False, 30),
        (False, True, 10),
        (False, False, 10),
    ],
)
def test_a_silent_run_is_replaced_by_what_is_known_of_its_process_and_of_the_lead(lives, led, patience_s):
    known = {"a": None, "b": lives}
    for age, dead in ((patience_s - 1, ()), (patience_s + 1, ("b",))):
        leases = [lease("a"), lease("b", age=age)]
        decision = decide(leases, [run("a"), run("b")], NOW, lives=lambda held: known[held.run_id], led=led)
        assert tuple(run_id for run_id, _ in decision.dead) == dead


def test_a_started_run_that_never_took_a_lease_is_marked_failed():
    assert decide([lease("a")], [run("a"), run("b", age=121)], NOW).dead == (
        ("b", "started 121 s ago and never took a lease"),
    )


def test_a_launch_that_never_starts_is_marked_failed():
    assert [dead for dead, _ in decide([], [run("b", "STARTING", 121)], NOW).dead] == ["b"]


def test_a_run_that_has_left_is_neither_alive_nor_marked_failed_while_it_ends():
    decision = decide([lease("a", role="gone"), lease("b")], [run("a"), run("b")], NOW)

    assert (decision.start, decision.dead) == (1, ())
    late = decide([lease("a", role="gone", age=31), lease("b")], [run("a"), run("b")], NOW)
    assert [dead for dead, _ in late.dead] == ["a"]


def test_a_run_that_dagster_knows_to_be_over_is_replaced_before_its_lease_is_stale():
    assert decide([lease("a"), lease("b")], [run("b")], NOW).start == 0
    assert decide([lease("a"), lease("b")], [run("b")], NOW, ended={"a"}).start == 1


def test_no_run_is_marked_failed_just_after_the_database_came_up():
    leases = [lease("a", age=40), lease("b", age=40)]

    decision = decide(leases, [run("a"), run("b")], NOW, database_up_s=3)

    assert (decision.start, decision.dead) == (0, ())


def test_a_cancelled_run_that_does_not_end_is_marked_failed_in_the_end():
    assert decide([], [run("a", "CANCELING", 5)], NOW).dead == ()
    assert [dead for dead, _ in decide([], [run("a", "CANCELING", 31)], NOW).dead] == ["a"]
