"""The launcher: who executes a run, and when a host or the code server counts as lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from dagster import DagsterRunStatus, reconstructable
from dagster._core.errors import DagsterUserCodeUnreachableError
from dagster._core.launcher import DefaultRunLauncher, WorkerStatus
from dagster._core.remote_origin import GrpcServerCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._grpc.client import DagsterGrpcClient

from orchestration.definitions import defs
from orchestration.feeds.keeping import WINDOW_TAG
from orchestration.feeds.runs import REPEATED_TAG
from orchestration.runs import hosts, launcher
from orchestration.runs.hosts import HOST_TAG, SESSION_TAG, Absence, session_of
from tests.orchestration.runs import jobs
from tests.patience import PATIENCE_S, until
from tests.ports import free_port

ROOT = Path(__file__).parents[3]


class CodeServer:
    """A code server in a process of its own, with one of the tests' jobs."""

    JOB = jobs.waiting

    def __init__(self, port, log):
        self.port, self.log = port, log
        options = ["-h", "127.0.0.1", "-p", str(self.port), "-m", jobs.__name__, "-a", self.JOB.name]
        with log.open("a") as file:
            command = [sys.executable, "-m", "orchestration.code_server", *options]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT)
        self.client = DagsterGrpcClient(host="127.0.0.1", port=self.port)

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return self.client.ping("") is not None
        except DagsterUserCodeUnreachableError:
            return False

    def start(self, instance, file, **tags):
        """Have it execute a run."""
        location = GrpcServerCodeLocationOrigin(host="127.0.0.1", port=self.port, location_name="tests")
        repository = RemoteRepositoryOrigin(location, f"__repository__{self.JOB.name}")
        run = instance.create_run_for_job(
            self.JOB,
            job_code_origin=reconstructable(self.JOB).get_python_origin(),
            remote_job_origin=RemoteJobOrigin(repository, self.JOB.name),
            run_config={"ops": {"wait": {"config": {"file": str(file)}}}},
            tags=tags,
        )
        DefaultRunLauncher.launch_run_from_grpc_client(instance, run, self.client)
        return run.run_id

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start_server(instance, tmp_path):
    """Start code servers, and kill them in the end."""
    with ExitStack() as stack:

        def started(port):
            made = CodeServer(port, tmp_path / "code_server.log")
            stack.callback(made.kill)
            until(made.answers)
            return made

        yield started


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


def test_a_pass_has_failed_once_no_code_server_has_executed_it_for_a_minute(
    start_server, instance, tmp_path, monkeypatch
):
    now, file = [0.0], tmp_path / "pid"
    server, asked = start_server(free_port()), launcher.RunLauncher()
    asked.register_instance(instance)

    def looks(*at):
        asked._unknown = Absence(lambda: now[0])
        found = []
        for now[0] in at:
            found.append(asked.check_run_worker_health(instance.get_run_by_id(run_id)))
        return [each.status is WorkerStatus.FAILED for each in found], found[-1].msg

    run_id = server.start(instance, file, **{REPEATED_TAG: "yes"})
    pid = int(until(lambda: file.exists() and file.read_text()))
    try:
        monkeypatch.setattr(launcher, "ANSWER_S", PATIENCE_S)
        assert looks(0, 40, 80) == ([False] * 3, None)
        server.process.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(launcher, "ANSWER_S", 1)
        assert looks(0, 40, 80) == ([False] * 3, None), "busy: it may still execute the run"
        monkeypatch.setattr(launcher, "ANSWER_S", PATIENCE_S)
        server.kill()
        gone = [False, False, False, True], "the code server that started it has not executed it for 61 s"
        assert looks(0, 40, 60, 61) == gone
        start_server(server.port)
        assert looks(0, 40, 60, 61) == gone, "another one"
    finally:
        os.kill(pid, signal.SIGKILL)
    assert instance.get_run_by_id(run_id).status is DagsterRunStatus.STARTED  # nobody else would end it
    instance.report_run_failed(instance.get_run_by_id(run_id), "as Dagster's monitoring does")


def test_passes_are_those_that_bear_another_beside_them():
    jobs_of = {job.name for job in defs().get_repository_def().get_all_jobs() if REPEATED_TAG in job.tags}

    assert jobs_of == {"aggregates", "analysis", "quality", "wallets"}


def test_what_is_no_pass_is_not_lost_with_its_code_server(instance, made):
    run = made(jobs.writing, **{GRPC_INFO_TAG: json.dumps({"host": "127.0.0.1", "port": free_port()})})
    run.launcher._unknown = Absence(iter([0.0, 40.0, 80.0]).__next__)

    assert [run.launcher.check_run_worker_health(run.run).status for _ in range(3)] == [WorkerStatus.RUNNING] * 3
    instance.report_run_canceled(run.run)
