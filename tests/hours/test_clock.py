"""All processes of a test have the same clock."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time

import pytest

from tests.hours.__main__ import ROOT, UNDER_LOAD
from tests.hours.moments import moments

CLOSE = dt.timedelta(seconds=30)


def test_the_database_and_other_programs_go_by_the_clock_of_the_tests(conn):
    (said,) = conn.execute("select clock_timestamp()").fetchone()
    other = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time())"], capture_output=True, text=True, check=True, env={}
    )

    assert abs(said - dt.datetime.now(dt.UTC)) < CLOSE
    assert abs(float(other.stdout) - time.time()) < CLOSE.total_seconds()


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
