"""Third-party clients in environments of their own, and what they print."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENTS = Path(__file__).parent


def python_of(environment):
    """Return the Python of an environment with clients, which is installed first."""
    subprocess.run(["make", "-s", f"{environment}/.installed"], cwd=ROOT, check=True, timeout=300)
    return ROOT / environment / "bin/python"


def results(python, script, *arguments, said="", folder=None):
    """Run a client, in a folder if it wants to be in one, and return what it prints, by name."""
    command = [python, CLIENTS / script, *arguments]
    done = subprocess.run(command, input=said, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["name"]: line["value"] for line in lines}
