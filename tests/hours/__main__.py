"""python -m tests.hours [--at NAME] [--load RUNS [--busy N]] [PATHS…]: tests under shifted clocks, or under load.

Each pass is a separate pytest run, interrupted after MAX_PASS_S. A preloaded library (clock.c) shifts the clock of the
tests and of the servers and the database that they start; `test_clock.py` fails if one of them is not shifted.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.hours.late import LATE_S, OFFSET_S
from tests.hours.moments import moments

ROOT = Path(__file__).parents[2]
MAX_PASS_S = 1800
LATE = "today 12:00, late"  # forty minutes after they were collected: what they know of the clock by then is old
LATENESS_S = 2400
MAX_ENDING_S = 120  # for its failures so far
PASSED = re.compile(r"\bPASSED\b|^tests/.* $")  # or begun
# Tests that wait for other processes are late on a busy machine.
UNDER_LOAD = (
    "tests/orchestration/ingest",
    "tests/orchestration/feeds",
    "tests/orchestration/settlement",
    "tests/orchestration/webhooks",
    "tests/orchestration/test_stream.py",
    "tests/api/stream",
)


class Pass(NamedTuple):
    name: str
    seconds: float
    well: bool
    said: str


def main() -> int:
    """Run the requested passes, print each result, and fail if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.hours", description=__doc__.partition("\n")[0])
    names = [*moments(_today()), LATE]
    parser.add_argument("--at", action="append", choices=names, metavar="MOMENT", help=f"one of: {', '.join(names)}")
    parser.add_argument("--load", type=int, metavar="RUNS", help="instead: so many runs beside a busy processor")
    busy = "busy loops beside those runs; 0 where other work is their load"
    parser.add_argument("--busy", type=int, default=4, metavar="N", help=busy)
    parser.add_argument("--workers", default="2", help="of pytest-xdist")
    parser.add_argument("paths", nargs="*", help="tests, instead of the usual ones")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what it has started, as an interrupt does
    passes = under_load(given) if given.load else at_hours(given)
    print(
        "\n"
        + "\n".join(
            f"{'ok    ' if each.well else 'FAILED'} {each.name:<18} {each.seconds:6.0f} s  {each.said}"
            for each in passes
        )
    )
    return 0 if passes and all(each.well for each in passes) else 1


def at_hours(given: argparse.Namespace) -> list[Pass]:
    """Run the tests that read the clock at each moment, and once long after they were collected."""
    clocks = {name: {OFFSET_S: _offset(at)} for name, at in moments(_today()).items()}
    clocks[LATE] = {**clocks[LATE.removesuffix(", late")], LATE_S: str(LATENESS_S)}
    arguments = ["-n", given.workers, "--dist", "loadfile", "-m", "clock and not soak", *(given.paths or ["tests"])]
    with tempfile.TemporaryDirectory(prefix="presage-clock-") as folder:
        Path(folder).chmod(0o755)  # as root the database runs as another user, who must read it too
        library = compiled(Path(folder))
        return [
            _run(name, arguments, {"LD_PRELOAD": str(library), **clock})
            for name, clock in clocks.items()
            if name in (given.at or [name])
        ]


def compiled(folder: Path) -> Path:
    """Compile the library that moves the clock."""
    library, source = folder / "clock.so", Path(__file__).with_name("clock.c")
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source], check=True)
    library.chmod(0o755)
    return library


def under_load(given: argparse.Namespace) -> list[Pass]:
    """Run the tests that depend on timing repeatedly, beside busy processes."""
    with ExitStack() as stack:
        for _ in range(given.busy):
            loop = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(loop.kill)
        arguments = ["-n", given.workers, "--dist", "loadfile", "-m", "not soak", *(given.paths or UNDER_LOAD)]
        return [_run(f"run {n} of {given.load}", arguments, {}) for n in range(1, given.load + 1)]


def _run(name: str, arguments: list[str], clock: dict[str, str]) -> Pass:
    """Run one pass and print failures as they happen, and their texts at its end."""
    print(f"--- {name}", flush=True)
    began, last = time.monotonic(), "nothing was said"
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **clock}, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        # Interrupted, pytest prints the failures so far.
        timers = [
            threading.Timer(MAX_PASS_S, os.kill, (process.pid, signal.SIGINT)),
            threading.Timer(MAX_PASS_S + MAX_ENDING_S, os.killpg, (process.pid, signal.SIGKILL)),
        ]
        for timer in timers:
            timer.start()
        assert process.stdout is not None
        try:
            for line in filter(str.strip, process.stdout):
                last = line.strip("= \n")
                if not PASSED.search(line):
                    print(line, end="", flush=True)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            for timer in timers:
                timer.cancel()
    seconds = time.monotonic() - began
    interrupted = process.returncode == pytest.ExitCode.INTERRUPTED or process.returncode < 0
    ended = f"interrupted after {seconds:.0f} s: {last}"
    return Pass(name, seconds, process.returncode == 0, ended if interrupted else last)


def _offset(at: dt.datetime) -> str:
    return str(round(at.timestamp() - time.time()))


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


if __name__ == "__main__":
    sys.exit(main())
