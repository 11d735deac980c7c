"""Hosts with the role `runs` in processes of their own, and runs for them to execute."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from dagster import DagsterInstance, reconstructable

from orchestration.runs.hosts import HOST_TAG
from sql.database import sqlalchemy_url
from tests.databases import new_database
from tests.orchestration.runs import jobs
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[3]
MAX_RUNS = 2


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
