"""Passes of tests: what is printed of one that does not end in time."""

from __future__ import annotations

import threading

from tests.hours import __main__ as hours
from tests.patience import until

SUITE = """
import pathlib, time

def test_fails():
    assert 6 * 7 == 41

def test_hangs():
    pathlib.Path({begun!r}).touch()
    time.sleep(600)
"""


def test_a_pass_that_does_not_end_says_what_had_failed(tmp_path, monkeypatch, capsys):
    begun, suite = tmp_path / "begun", tmp_path / "test_suite.py"
    suite.write_text(SUITE.format(begun=str(begun)))

    class Timer(threading.Thread):
        def __init__(self, seconds, act, arguments):
            super().__init__(daemon=True)
            self.is_first, self.act, self.arguments = seconds == hours.MAX_PASS_S, act, arguments

        def run(self):
            if self.is_first:
                until(begun.exists)
                self.act(*self.arguments)

        def cancel(self):
            pass

    monkeypatch.setattr(hours.threading, "Timer", Timer)

    ended = hours._run("pass", [str(suite)], {})

    assert not ended.well
    assert ended.said.startswith("interrupted after ")
    assert "assert (6 * 7) == 41" in capsys.readouterr().out
