"""All processes of a test have the same clock."""

from __future__ import annotations

import ctypes
import datetime as dt
import os
import subprocess
import sys
import time

import pytest

from tests.hours.__main__ import ROOT, UNDER_LOAD, compiled
from tests.hours.late import LATE_S, OFFSET_S, jumped
from tests.hours.moments import moments

CLOSE = dt.timedelta(seconds=30)


def test_the_database_and_other_programs_go_by_the_clock_of_the_tests(conn):
    (said,) = conn.execute("select clock_timestamp()").fetchone()
    other = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"], capture_output=True, text=True, check=True, env={}
    )

    assert abs(said - dt.datetime.now(dt.UTC)) < CLOSE
    assert abs(float(other.stdout) - time.time()) < CLOSE.total_seconds()


class Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


@pytest.mark.parametrize(("wait", "operands"), [("pthread_cond_timedwait", 2), ("sem_timedwait", 1)])
def test_a_wait_until_a_time_ends_then(wait, operands):
    """Pauses of native libraries wait for an instant of the wall clock in this way."""
    program = f"""
import ctypes, time
from {__name__} import Timespec
library, buffers = ctypes.CDLL(None), [ctypes.create_string_buffer(64) for _ in range(2)]
library.pthread_mutex_lock(buffers[1])
begun, at = time.monotonic(), time.time() + 0.5
end = Timespec(int(at), int(at % 1 * 1e9))
library.{wait}(*buffers[:{operands}], ctypes.byref(end))
print(time.monotonic() - begun)
"""
    waited = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )

    assert float(waited.stdout) > 0.4


def test_the_tests_run_late_where_they_are_to():
    assert abs(jumped() - int(os.environ.get(LATE_S, "0"))) < CLOSE.total_seconds()


def test_the_clock_jumps_for_a_process_and_for_those_that_it_starts(tmp_path):
    program = """
import subprocess, sys, time
from orchestration.ingest.clock import steady_s
from tests.hours.late import jump
before = time.time()
jump(3600)
other = subprocess.run([sys.executable, "-c", "import time; print(time.time())"], capture_output=True, check=True)
print(*(at - before for at in (time.time(), steady_s(), float(other.stdout))))
"""
    moved = {"LD_PRELOAD": str(compiled(tmp_path)), OFFSET_S: os.environ.get(OFFSET_S, "0")}
    said = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **moved},
    )

    assert [round(float(each) / 60) for each in said.stdout.split()] == [60, 60, 60]


@pytest.mark.parametrize("today", [dt.date(2026, 11, 22), dt.date(2027, 12, 31), dt.date(2028, 2, 29)])
def test_the_moments_are_five_hours_and_the_ends_of_a_february_a_month_and_a_year(today):
    found = moments(today)
    days = [at.date() for at in found.values() if at.date() != today]

    assert len(found) == 8
    assert {(at.hour, at.minute) for at in found.values()} == {(0, 5), (0, 55), (1, 40), (12, 0), (23, 58)}
    assert (2, 28) in {(day.month, day.day) for day in days}
    assert any((day + dt.timedelta(days=1)).day == 1 for day in days)
    assert (12, 31) in {(at.month, at.day) for at in found.values()}
    assert min(at.date() for at in found.values()) >= today


@pytest.mark.parametrize("path", UNDER_LOAD)
def test_what_is_run_under_load_is_there(path):
    assert (ROOT / path).exists()
