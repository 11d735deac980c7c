"""Programs that give way do so beside those of other sessions as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.stack.processes import priority
from cli.stack.processes.program import Program
from tests.patience import until

LINUX_GROUPS = Path("/proc/self/autogroup")
SLEEP = [sys.executable, "-c", "import os, time; print(os.nice(0), flush=True); time.sleep(300)"]


def started(directory: Path, niceness: int) -> Program:
    program = Program("sleeper", SLEEP, directory / "log", niceness=niceness)
    program.start()
    until(lambda: program.log.read_text().strip())
    return program


@pytest.mark.parametrize("niceness", [0, 3])
def test_a_program_has_its_niceness_and_so_has_its_session(tmp_path, niceness):
    program = started(tmp_path, niceness)
    try:
        expected = min(os.nice(0) + niceness, 19)
        assert os.getpriority(os.PRIO_PROCESS, program.pid) == expected
        if LINUX_GROUPS.exists():  # where the kernel shares time among sessions
            group = Path(f"/proc/{program.pid}/autogroup").read_text()
            assert group.split()[1:] == ["nice", str(expected if niceness else 0)]
    finally:
        program.kill()


def test_a_kernel_that_takes_no_change_yet_is_asked_again(tmp_path, monkeypatch):
    answers = [BlockingIOError, BlockingIOError, None]
    asked = []

    def write(path: Path, text: str) -> None:
        asked.append((str(path), text))
        if (error := answers.pop(0)) is not None:
            raise error

    slept = []
    monkeypatch.setattr(Path, "write_text", write)
    monkeypatch.setattr(priority.time, "sleep", slept.append)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    try:
        priority.lower(process.pid, 2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()

    assert asked == [(f"/proc/{process.pid}/autogroup", str(min(os.nice(0) + 2, 19)))] * 3
    assert slept == [priority.PAUSE_S] * 2


def test_a_process_that_has_ended_is_not_waited_for(monkeypatch):
    slept = []
    monkeypatch.setattr(priority.time, "sleep", slept.append)
    process = subprocess.Popen([sys.executable, "-c", ""], start_new_session=True)
    process.wait()
    with pytest.raises(ProcessLookupError):
        os.getpriority(os.PRIO_PROCESS, process.pid)

    priority.lower(process.pid, 5)

    assert slept == []
