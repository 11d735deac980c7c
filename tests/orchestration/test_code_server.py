"""Runs begin in a process that has imported everything."""

import json
import subprocess
import sys


def test_a_run_begins_with_everything_imported():
    command = [sys.executable, "-m", "tests.orchestration.imported"]  # there is one such server a process
    told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)

    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout) == {"imported": [True, True, True], "exit_code": 0}
