"""A host's loop, step by step: what it does about runs that do not begin or end as they should."""

from __future__ import annotations

import os
import signal

import pytest
from dagster import DagsterRunStatus

from orchestration.runs import host as host_module
from orchestration.runs.host import CLEANING_S, ENDING_S, LOOK_S, Host, Running
from orchestration.runs.hosts import SESSION_TAG, session_of
from tests.orchestration.runs import jobs

FAILURE = DagsterRunStatus.FAILURE


class Unstarted:
    """A process that only has a number and a state."""

    def __init__(self, pid):
        self.pid, self.exitcode, self.alive = pid, None, True

    def is_alive(self):
        return self.alive


@pytest.fixture
def alone(instance, monkeypatch):
    """A host without a process of its own, whose clock the test sets; `sent` has the signals that it sends."""
    now, sent = [0.0], []
    monkeypatch.setattr("orchestration.runs.host.os.kill", lambda pid, number: sent.append((now[0], pid, number)))
    made = Host(instance, os.environ["DAGSTER_PG_URL"], name="b", max_runs=1, clock=lambda: now[0])
    made.now, made.sent = now, sent
    yield made
    if made._conn is not None:
        made._conn.close()


def test_a_process_that_outlives_its_run_is_interrupted_and_then_killed(alone, instance, made):
    run = made(jobs.writing)
    alone._running[run.run_id] = Running(Unstarted(7))
    alone.step()
    instance.report_run_failed(run.run, "given up")
    looks = [LOOK_S, LOOK_S + ENDING_S, LOOK_S + ENDING_S + 2, 40, ENDING_S + CLEANING_S, ENDING_S + CLEANING_S + 6]
    for at in looks:
        alone.now[0] = at
        alone.step()

    assert alone.sent == [
        (LOOK_S + ENDING_S + 2, 7, signal.SIGTERM),
        (ENDING_S + CLEANING_S + 6, 7, signal.SIGKILL),
    ]


def test_a_stopped_host_does_not_wait_for_ever(alone, made):
    run = made(jobs.writing)
    alone._running[run.run_id] = Running(process := Unstarted(7))
    alone.stop()
    for at in (0, 30, CLEANING_S, CLEANING_S + 1):
        alone.now[0] = float(at)
        alone.step()
    process.alive, process.exitcode = False, -signal.SIGKILL
    alone.step()

    assert [(pid, number) for _, pid, number in alone.sent] == [(7, signal.SIGTERM), (7, signal.SIGKILL)]
    assert run.run.status is FAILURE
    assert run.messages()[-1].endswith("ended before the run did: signal SIGKILL")


def test_what_cannot_be_done_without_the_database_is_done_later_and_said_once(alone, made, monkeypatch, caplog):
    ending, taken = made(jobs.writing), made(jobs.writing)
    instance = type(alone._instance)
    alone._running[ending.run_id] = Running(process := Unstarted(7))
    alone._taken = [taken.run_id]
    process.alive, process.exitcode = False, 1
    with monkeypatch.context() as away:
        away.setattr(instance, "get_run_by_id", lambda *_: 1 / 0)
        for at in (0, 2, 4):
            alone.now[0] = float(at)
            alone.step()
    assert caplog.text.count("division by zero") == 2
    assert not ending.run.is_finished
    started = []
    monkeypatch.setattr(host_module.CONTEXT, "Process", lambda **given: Started(started, given["args"]))

    alone.step()

    assert ending.run.status is FAILURE
    assert started == [(taken.run_id,)]
    assert session_of(taken.run) == alone.number
    taken.instance.report_run_canceled(taken.run)


def test_a_run_whose_tags_were_written_but_not_acknowledged_is_started(alone, made, monkeypatch):
    run, started = made(jobs.writing), []
    monkeypatch.setattr(host_module.CONTEXT, "Process", lambda **given: Started(started, given["args"]))
    add, instance = type(run.instance).add_run_tags, type(run.instance)
    with monkeypatch.context() as cut:
        cut.setattr(instance, "add_run_tags", lambda *given: (add(*given), 1 / 0))
        alone._taken = [run.run_id]
        alone.step()
    assert session_of(run.run) == alone.number

    alone.step()

    assert started == [(run.run_id,)]
    run.instance.report_run_canceled(run.run)


def test_runs_end_if_the_process_that_they_are_forked_from_does(alone, made):
    runs = [made(jobs.writing), made(jobs.writing)]
    for run, pid in zip(runs, (os.getpid(), 2**22 + 1), strict=True):  # one that is still there, and one that is not
        alone._running[run.run_id] = Running(process := Unstarted(pid))
        process.alive, process.exitcode = False, host_module.LOST
    alone.step()
    alone.now[0] = CLEANING_S + 1
    alone.step()

    assert list(alone._running) == [runs[0].run_id]
    assert [sent[1:] for sent in alone.sent] == [(os.getpid(), signal.SIGTERM), (os.getpid(), signal.SIGKILL)]
    assert runs[1].run.status is FAILURE
    runs[0].instance.report_run_canceled(runs[0].run)


def test_a_full_disk_does_not_end_a_host(alone, made, tmp_path, caplog):
    alone._beat = tmp_path / "no such folder" / "beat"
    run = made(jobs.dying)
    alone._ended[run.run_id] = "signal SIGKILL"
    alone.step()

    assert run.run.status is FAILURE
    assert "others cannot see that this process works" in caplog.text


class Started(Unstarted):
    """A process that notes its start."""

    def __init__(self, started, args):
        super().__init__(8)
        self.start = lambda: started.append(args)


@pytest.mark.parametrize("error", [OSError(12, "no memory"), EOFError("unexpected EOF")])
def test_a_run_whose_process_cannot_be_started_has_failed(alone, made, monkeypatch, error):
    run = made(jobs.writing)
    monkeypatch.setattr(host_module.CONTEXT, "Process", lambda **_: Unstartable(error))
    alone._taken = [run.run_id]
    alone.step()

    assert run.run.status is FAILURE
    assert run.messages()[-1].endswith(f"it could not be started: {error}")


class Unstartable:
    """A process for which there is no memory."""

    def __init__(self, error):
        self.error = error

    def start(self):
        raise self.error


def test_a_run_that_is_handed_out_twice_is_executed_once(alone, made, instance):
    run = made(jobs.writing)
    instance.add_run_tags(run.run_id, {SESSION_TAG: f"7 {run.run_id}"})
    own = made(jobs.writing)
    alone._running[own.run_id] = running = Running(Unstarted(7))
    alone._taken = [run.run_id, "no such run", own.run_id]
    alone.step()

    assert (alone._taken, alone._running) == ([], {own.run_id: running})
    assert session_of(own.run) == alone.number, "a tag that was lost is written again"
    instance.report_run_canceled(own.run)
    assert not run.run.is_finished
    instance.report_run_canceled(run.run)
