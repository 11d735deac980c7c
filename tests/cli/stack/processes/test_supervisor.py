"""The supervisor leaves no processes behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cli.stack.processes import guard
from cli.stack.processes.program import Program
from cli.stack.processes.supervisor import Supervisor
from tests.patience import PATIENCE_S, until

ROOT = Path(__file__).parents[4]


class Supervised:
    """`supervised.py` as a process, and its output."""

    def __init__(self, directory: Path, shape: str) -> None:
        self.directory = directory
        self.output = (directory / "output").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("supervised.py")), str(directory), shape],
            stdout=self.output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            start_new_session=True,
        )

    def said(self) -> str:
        return (self.directory / "output").read_text()

    def wait_for(self, words: str) -> str:
        end = time.monotonic() + PATIENCE_S
        while words not in self.said():
            assert time.monotonic() < end, self.said()
            assert self.process.poll() is None or words in self.said(), self.said()
            time.sleep(0.02)
        return self.said()

    @property
    def instance(self) -> str:
        return self.wait_for("instance").split("instance ")[1].split()[0]

    def pid_of(self, name: str) -> int:
        until((self.directory / "pids").exists)
        pids = dict(pair.split("=") for pair in (self.directory / "pids").read_text().split())
        return int(pids[name])

    def left(self) -> set[int]:
        return guard.marked(self.instance)


@pytest.fixture
def supervised(tmp_path):
    made: list[Supervised] = []

    def start(shape: str = "steady") -> Supervised:
        made.append(Supervised(tmp_path, shape))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.wait()
        each.output.close()
        guard.sweep(each.left)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_every_descendant_even_those_that_ignore_it(supervised, number):
    run = supervised()
    run.wait_for("up")
    assert len(run.left()) == 5  # two programs, and three below them, of which two in sessions of their own

    run.process.send_signal(number)

    assert run.process.wait(PATIENCE_S) == 0
    assert "ended by" in run.said()
    assert run.left() == set()


def test_a_second_signal_does_not_cut_the_cleaning_short(supervised):
    run = supervised()
    run.wait_for("up")

    run.process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    run.process.send_signal(signal.SIGINT)

    assert run.process.wait(PATIENCE_S) == 0
    assert run.left() == set()


def test_a_killed_supervisor_leaves_nothing_either(supervised):
    run = supervised()
    run.wait_for("up")

    run.process.kill()
    run.process.wait()

    assert guard.wait_until_gone(run.left, within_s=PATIENCE_S), run.left()


def test_a_program_that_dies_while_starting_ends_all_and_shows_its_last_words(supervised):
    run = supervised("failing")

    assert run.process.wait(PATIENCE_S) == 1
    assert "failing ended while starting; its log ends:\nno such table: weather" in run.said()
    assert run.left() == set()


def test_a_program_that_dies_while_starting_is_started_again_as_often_as_it_may_be(supervised):
    run = supervised("patient")
    run.wait_for("up")

    assert run.said().count("twice died while starting; its log ends:\nno primary") == 2
    assert "twice ready after" in run.said()
    assert guard.alive(run.pid_of("twice"))


def test_a_program_that_keeps_dying_while_starting_ends_all(supervised):
    run = supervised("patient-failing")

    assert run.process.wait(PATIENCE_S) == 1
    assert run.said().count("failing died while starting; its log ends:") == 2
    assert run.said().count("failing ended while starting; its log ends:") == 1
    assert run.left() == set()


def test_a_program_that_does_not_get_ready_ends_all(supervised):
    run = supervised("slow")

    assert run.process.wait(PATIENCE_S) == 1
    assert "slow not ready after 0 s" in run.said()
    assert run.left() == set()


def test_a_program_that_dies_later_is_started_again(supervised):
    run = supervised()
    run.wait_for("up")
    before = run.pid_of("plain")

    os.kill(before, signal.SIGKILL)

    run.wait_for("plain is up again")
    until(lambda: run.pid_of("plain") != before)
    assert guard.alive(run.pid_of("plain"))


def test_what_a_killed_program_leaves_behind_lives_on_until_the_end(supervised):
    run = supervised()
    run.wait_for("up")
    stubborn = run.pid_of("stubborn")
    below = guard.descendants(stubborn)
    assert below

    os.kill(stubborn, signal.SIGKILL)
    run.wait_for("stubborn is up again")

    assert all(guard.alive(pid) for pid in below)  # a live run outlasts the code server that started it
    run.process.terminate()
    assert run.process.wait(PATIENCE_S) == 0
    assert run.left() == set()


def test_the_guard_ends_the_database_last_and_gently(tmp_path):
    instance = f"guarded-{os.getpid()}"
    story = tmp_path / "story"
    code = (
        "import signal, sys, time\n"
        "def end(number, frame):\n"
        "    open(sys.argv[1], 'a').write(f'{sys.argv[2]} {signal.Signals(number).name}\\n')\n"
        "    raise SystemExit\n"
        "signal.signal(signal.SIGINT, end)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )

    def start(name: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(story), name],
            env={**os.environ, guard.MARK: instance},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    with start("database") as database, start("api") as api:
        watching = [sys.executable, "-I", guard.__file__, instance]
        watched = subprocess.run(watching, input=f"{database.pid}\n", text=True, timeout=PATIENCE_S, check=False)
        api.wait(PATIENCE_S)
        database.wait(PATIENCE_S)

    assert watched.returncode == 0
    assert story.read_text() == "api SIGTERM\ndatabase SIGINT\n"


def test_what_is_not_needed_any_more_ends_by_itself_or_when_it_is_asked_and_does_not_start_again(tmp_path):
    said: list[str] = []
    (done := tmp_path / "done").mkdir()
    codes = {
        "asked": "import time; time.sleep(300)",
        "by-itself": f"import pathlib, time\nwhile pathlib.Path({str(done)!r}).exists(): time.sleep(0.02)",
        "stubborn": "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)",
        "stays": "import time; time.sleep(300)",
    }

    def left() -> list[str]:
        supervisor.watch()
        return list(supervisor.watched)

    with Supervisor(said.append) as supervisor:
        for name, code in codes.items():
            supervisor.start(Program(name, [sys.executable, "-c", code], tmp_path / f"{name}.log", grace_s=1.0))
        until(lambda: left() and {entry.state for entry in supervisor.watched.values()} == {"up"})
        supervisor.release("by-itself", terminate=False)
        assert left() == list(codes)
        done.rmdir()
        for _ in range(2):  # it may be told again and again
            supervisor.release("asked", terminate=True)
            supervisor.release("stubborn", terminate=True)
        until(lambda: left() == ["stays"])

    assert sorted(line for line in said if "not needed" in line) == [
        f"{name} has ended: it was not needed here any more" for name in ("asked", "by-itself", "stubborn")
    ]
    assert not [line for line in said if "died" in line]
