"""Hosts in processes of their own: how runs begin and end, and what becomes of a lost host's."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest
from dagster import DagsterRunStatus
from dagster._core.launcher import WorkerStatus

from orchestration.runs import launcher
from orchestration.runs.hosts import EXECUTES, HOST_TAG, TAKES, Absence, session_of, sessions
from tests.orchestration.runs import jobs
from tests.orchestration.runs.conftest import MAX_RUNS
from tests.patience import PATIENCE_S, until

QUEUED = "select count(*) from presage_runs_queue"
OF_HOST = "select pid from pg_stat_activity where application_name = 'presage runs' and datname = current_database()"
SUCCESS, FAILURE, CANCELED = DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED
STARTED = DagsterRunStatus.STARTED


def is_alive(pid):
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
    return "State:\tZ" not in status


def test_a_host_takes_a_run_and_executes_it(host, made, home):
    run = made(jobs.writing)
    run.launch()

    assert run.until(SUCCESS, FAILURE) is SUCCESS
    assert run.file.read_text() == "done"
    assert run.run.tags[HOST_TAG] == "a"
    assert session_of(run.run) in sessions(run.instance, EXECUTES)
    assert run.launcher.get_run_worker_debug_info(run.run) == "Its host is a."
    with psycopg.connect(home) as conn:
        assert conn.execute(QUEUED).fetchone() == (0,)


def test_a_cancelled_run_is_interrupted_once_and_cleans_up(host, waiting):
    run = waiting(jobs.cleaning)

    assert run.cancel() is True
    until(lambda: run.file.read_text() == "cleans up")
    host.work()
    run.end_clean_up()
    assert run.until(CANCELED, FAILURE) is CANCELED
    assert run.file.read_text() == "cleaned up"
    assert run.cancel() is False


def test_a_run_whose_process_dies_has_failed_and_the_reason_is_said(host, made):
    run = made(jobs.dying)
    run.launch()

    run.until(FAILURE)
    assert "Its process on a has ended before the run did: signal SIGKILL" in run.messages()


def test_a_host_takes_no_more_runs_than_it_may(host, made, waiting, home):
    runs = [waiting() for _ in range(MAX_RUNS)]
    late = made(jobs.writing)
    late.launch()
    host.work()
    with psycopg.connect(home) as conn:
        assert conn.execute(QUEUED).fetchone() == (1,)
    assert "has taken it" in late.launcher.get_run_worker_debug_info(late.run)

    runs[0].cancel()
    assert late.until(SUCCESS, FAILURE) is SUCCESS


@pytest.mark.parametrize("status", [CANCELED, FAILURE])
def test_a_run_that_has_ended_before_it_was_taken_is_not_executed(host, made, waiting, home, status):
    runs = [waiting() for _ in range(MAX_RUNS)]
    late = made(jobs.writing)
    late.launch()
    if status is CANCELED:
        late.cancel()
    else:
        late.instance.report_run_failed(late.run, "too late")
    runs[0].cancel()

    assert late.until(CANCELED, FAILURE, SUCCESS) is status
    later = made(jobs.writing)  # which is taken after it
    later.launch()
    assert later.until(SUCCESS, FAILURE) is SUCCESS
    assert late.run.status is status
    assert not late.file.exists()


def test_a_run_is_not_ended_by_the_loss_of_its_hosts_session(host, made, waiting, home, instance):
    run = waiting()
    pid = int(run.file.read_text())
    with psycopg.connect(home, autocommit=True) as conn:
        for _ in range(3):
            (session,) = until(lambda: conn.execute(OF_HOST).fetchone())
            conn.execute("select pg_terminate_backend(%s, 10000)", [session])
            until(lambda session=session: conn.execute(OF_HOST).fetchone() not in {None, (session,)})
    until(lambda: session_of(run.run) in sessions(instance, TAKES))
    later = made(jobs.writing)
    later.launch()

    assert later.until(SUCCESS, FAILURE) is SUCCESS
    assert is_alive(pid)
    assert run.run.status is STARTED


def test_runs_of_a_killed_host_end_with_it_and_fail_once_it_was_gone_for_a_minute(start, waiting_on, instance):
    other = start("killed")
    run = waiting_on("killed")
    pid, number = run.file.read_text(), session_of(run.run)
    now = [0.0]
    asked = launcher.RunLauncher()
    asked.register_instance(instance)
    asked._absence = Absence(lambda: now[0])
    assert asked.check_run_worker_health(run.run).status is WorkerStatus.RUNNING

    other.end(signal.SIGKILL)
    until(lambda: not is_alive(pid))
    until(lambda: number not in sessions(instance, EXECUTES))
    found = []
    for at in (0.0, 30.0, launcher.LOST_S, launcher.LOST_S + 1):
        now[0], asked._looked_at = at, -launcher.KEPT_S
        found.append(asked.check_run_worker_health(run.run))

    assert [each.status for each in found] == [WorkerStatus.RUNNING] * 3 + [WorkerStatus.FAILED]
    assert found[-1].msg == "host killed has given no sign of life for 61 s"
    instance.report_run_failed(run.run, "as Dagster's monitoring does")


def test_a_host_that_is_stopped_takes_no_more_and_its_runs_end_with_a_clean_up(start, waiting_on, instance):
    other = start("stopped")
    run = waiting_on("stopped", jobs.cleaning)
    number = session_of(run.run)

    other.process.send_signal(signal.SIGTERM)
    until(lambda: number not in sessions(instance, TAKES))
    assert number in sessions(instance, EXECUTES), "its run is not lost"
    run.end_clean_up()
    assert other.process.wait(PATIENCE_S) == 0, other.log.read_text()
    assert run.run.is_finished
    assert run.file.read_text() == "cleaned up"
