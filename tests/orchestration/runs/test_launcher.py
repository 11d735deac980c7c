"""The launcher: who executes a run, and when a host counts as lost."""

from __future__ import annotations

from dagster._core.launcher import DefaultRunLauncher, WorkerStatus

from orchestration.feeds.keeping import WINDOW_TAG
from orchestration.runs import hosts, launcher
from orchestration.runs.hosts import HOST_TAG, SESSION_TAG, Absence, session_of
from tests.orchestration.runs import jobs


def test_the_code_server_executes_feeds_and_where_there_are_no_hosts_all_runs(host, instance, made, monkeypatch):
    asked = []
    monkeypatch.setattr(DefaultRunLauncher, "launch_run", lambda _, context: asked.append(context.dagster_run.run_id))
    monkeypatch.setattr(DefaultRunLauncher, "terminate", lambda _, run_id: asked.append(run_id) or True)
    feed, run = made(jobs.writing, **{WINDOW_TAG: "720"}), made(jobs.writing)
    feed.launch()
    monkeypatch.setattr(launcher, "sessions", lambda *_: set())
    run.launch()
    for each in (feed, run):
        assert each.cancel() is True
        assert each.launcher.check_run_worker_health(each.run).status is WorkerStatus.RUNNING
        assert each.launcher.get_run_worker_debug_info(each.run) is None
        instance.report_run_canceled(each.run)

    assert asked == [feed.run_id, run.run_id] * 2


def test_a_run_that_is_executed_again_has_nothing_to_do_with_the_host_of_the_first(instance, made, monkeypatch):
    monkeypatch.setattr(DefaultRunLauncher, "terminate", lambda *_: "asked")
    first = made(jobs.writing)
    lost = {HOST_TAG: "lost", SESSION_TAG: f"7 {first.run_id}", hosts.QUEUED_TAG: first.run_id}
    instance.add_run_tags(first.run_id, lost)
    again = made(jobs.writing, **lost)

    assert (session_of(first.run), session_of(again.run)) == (7, None)
    assert (launcher.is_queued(first.run), launcher.is_queued(again.run)) == (True, False)
    assert again.launcher.get_run_worker_debug_info(again.run) is None
    assert again.cancel() is True
    for each in (first, again):
        instance.report_run_canceled(each.run)


def test_absence_counts_only_time_in_which_somebody_looked():
    now, found = [0.0], []
    absence = Absence(lambda: now[0])
    for at, there in ((0, set()), (15, set()), (30, {7}), (45, set()), (90, set()), (1000, set()), (1045, set())):
        now[0] = float(at)
        found.append(absence.seconds(7, there))
    absence.seconds(8, {7, 8})

    assert found == [0, 15, 0, 0, 45, 0, 45]
    assert absence._seen == {}
