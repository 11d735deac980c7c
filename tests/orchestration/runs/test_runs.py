"""Runs that hosts with the role `runs` execute: how they begin and end, and what becomes of a lost host's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from dagster import DagsterInstance, DagsterRunStatus, reconstructable
from dagster._core.launcher import DefaultRunLauncher, WorkerStatus

from orchestration.feeds.keeping import WINDOW_TAG
from orchestration.runs import host as host_module
from orchestration.runs import hosts, launcher
from orchestration.runs.host import CLEANING_S, ENDING_S, LOOK_S, Host, Running
from orchestration.runs.hosts import EXECUTES, HOST_TAG, SESSION_TAG, TAKES, Absence, session_of, sessions
from sql.database import sqlalchemy_url
from tests import replicas
from tests.databases import new_database
from tests.orchestration.runs import jobs
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[3]
MAX_RUNS = 2
QUEUED = "select count(*) from presage_runs_queue"
OF_HOST = "select pid from pg_stat_activity where application_name = 'presage runs' and datname = current_database()"
SUCCESS, FAILURE, CANCELED = DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED
STARTED, STARTING = DagsterRunStatus.STARTED, DagsterRunStatus.STARTING


class Process:
    """A host in a process of its own."""

    def __init__(self, name, folder):
        self.log, self.beat = folder / f"{name}.log", folder / f"{name}.beat"
        with self.log.open("a") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "orchestration.runs", "--beat", self.beat],
                cwd=ROOT,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PRESAGE_HOST_NAME": name, "PRESAGE_MAX_RUNS": str(MAX_RUNS)},
            )

    def work(self):
        """Wait until it has done all that it does, once from the beginning to the end."""
        for _ in range(2):
            written = self.beat.stat().st_mtime_ns
            until(lambda written=written: self.beat.stat().st_mtime_ns > written)

    def takes_runs(self):
        assert self.process.poll() is None, self.log.read_text()
        return self.beat.exists() and self.beat.read_text() == f"{self.process.pid} ready\n"

    def end(self, number):
        self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()


@pytest.fixture(scope="module")
def home(cluster, tmp_path_factory):
    """Dagster's own storage in a database, and its configuration."""
    folder = tmp_path_factory.mktemp("home")
    shutil.copy(ROOT / "dagster.yaml", folder)
    with new_database(cluster) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DAGSTER_HOME", str(folder))
        patch.setenv("DAGSTER_PG_URL", sqlalchemy_url(url, driver="psycopg2"))
        yield url


@pytest.fixture(scope="module")
def instance(home):
    with DagsterInstance.get() as opened:
        yield opened


@pytest.fixture(scope="module")
def start(instance, tmp_path_factory):
    """Start hosts, and end those that still run."""
    folder = tmp_path_factory.mktemp("hosts")
    with ExitStack() as stack:

        def started(name):
            made = Process(name, folder)
            stack.callback(lambda: made.process.poll() is None and made.end(signal.SIGTERM))
            until(made.takes_runs)
            return made

        yield started


@pytest.fixture(scope="module")
def host(start):
    return start("a")


class Made:
    """A run, and the file that its job writes."""

    def __init__(self, instance, job, file, tags):
        (name,) = [node.name for node in job.nodes]
        run = instance.create_run_for_job(
            job,
            job_code_origin=reconstructable(job).get_python_origin(),
            run_config={"ops": {name: {"config": {"file": str(file)}}}},
            tags={**job.tags, **tags},
        )
        self.instance, self.file, self.run_id = instance, file, run.run_id

    def launch(self):
        self.instance.launch_run(self.run_id, workspace=None)

    @property
    def run(self):
        return self.instance.get_run_by_id(self.run_id)

    @property
    def launcher(self):
        return self.instance.run_launcher

    def until(self, *statuses):
        return until(lambda: run.status if (run := self.run).status in statuses else None)

    def until_written(self):
        return until(lambda: self.file.exists() and self.file.read_text())

    def cancel(self):
        return self.launcher.terminate(self.run_id)

    def end_clean_up(self):
        self.file.with_suffix(".end").touch()

    def messages(self):
        return [record.message for record in self.instance.all_logs(self.run_id)]


@pytest.fixture
def made(instance, tmp_path):
    """Make runs, and end those that still are under way."""
    known = []

    def make(job, **tags):
        known.append(Made(instance, job, tmp_path / f"{len(known)}.txt", tags))
        return known[-1]

    yield make
    for each in known:
        if not each.run.is_finished:
            each.cancel()
    for each in known:
        until(lambda each=each: each.run.is_finished)


@pytest.fixture
def waiting(made):
    """Return a run that a host executes, and that waits."""

    def wait(job=jobs.waiting):
        run = made(job)
        run.launch()
        run.until_written()
        return run

    return wait


@pytest.fixture
def waiting_on(waiting):
    """Return a run that waits on one of two hosts; each takes some."""

    def wait(name, job=jobs.waiting):
        while True:
            run = waiting(job)
            if run.run.tags[HOST_TAG] == name:
                return run

    return wait


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


def test_a_replica_is_no_place_for_a_host():
    with replicas.standby() as url:
        until(lambda: replicas.connected(url)).close()
        with pytest.raises(psycopg.Error, match="read-only"):
            hosts.connect(sqlalchemy_url(url, driver="psycopg2"), 1, EXECUTES)


def test_hosts_that_start_together_have_one_queue_and_each_message_is_taken_once(cluster):
    with new_database(cluster) as url:
        taken, faults = [[] for _ in range(4)], []
        gate = threading.Barrier(len(taken) + 1)

        def take(number, mine):
            try:
                with hosts.connect(sqlalchemy_url(url, driver="psycopg2"), number, TAKES) as conn:
                    gate.wait(PATIENCE_S)
                    gate.wait(PATIENCE_S)
                    while row := conn.execute(hosts.TAKE).fetchone():
                        mine.append(int(row[0]))
            except Exception as fault:  # noqa: BLE001
                faults.append(fault)
                gate.abort()

        threads = [threading.Thread(target=take, args=each) for each in enumerate(taken)]
        for thread in threads:
            thread.start()
        with psycopg.connect(url, autocommit=True) as conn:
            gate.wait(PATIENCE_S)
            conn.cursor().executemany(hosts.PUT, [{"run_id": str(number)} for number in range(200)])
            gate.wait(PATIENCE_S)
        for thread in threads:
            thread.join()

    assert faults == []
    assert sorted(number for mine in taken for number in mine) == list(range(200))
    assert all(mine == sorted(mine) for mine in taken)
