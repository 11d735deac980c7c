"""`python -m tests.fuzzing`: search for inputs that break a parser, led by coverage (atheris, on libFuzzer)."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.fuzzing.targets import TARGETS

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "../shared/recorded"
MAX_INPUT = 65_536  # bytes
MAX_INPUT_S = 10  # of one input: more is a failure, too
MAX_MEMORY_MB = 2_048
STARTING_S = 300.0
EXECUTED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
COVERED = re.compile(r"cov: (\d+)")


class Search(NamedTuple):
    """What one target's search has come to."""

    target: str
    executions: int
    coverage: int
    output: str
    failed: bool


def search(target: str, seconds: int, folder: Path) -> Search:
    """Search in a process of its own; an input that fails is kept in the folder."""
    command = [
        *(sys.executable, "-m", "tests.fuzzing.search", target, str(RECORDED)),
        *(f"-max_total_time={seconds}", f"-max_len={MAX_INPUT}", f"-timeout={MAX_INPUT_S}"),
        *(f"-rss_limit_mb={MAX_MEMORY_MB}", "-print_final_stats=1", f"-artifact_prefix={folder}/{target}-"),
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as running:
        try:
            output, _ = running.communicate(timeout=seconds + STARTING_S)
        except subprocess.TimeoutExpired:
            running.kill()
            output, _ = running.communicate()
            output += f"\nended from outside after {seconds + STARTING_S:.0f} s\n"
    executed, covered = EXECUTED.findall(output), COVERED.findall(output)
    counts = int(executed[-1]) if executed else 0, int(covered[-1]) if covered else 0
    failed = running.returncode != 0 or not executed  # without inputs, it has not searched
    return Search(target, *counts, output, failed)


def main() -> int:
    """Search every target, and print a line for each; return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=600, metavar="S", help="for each target (default: 600)")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="targets at a time (default: 2)")
    given = parser.parse_args()
    if unknown := set(given.targets) - TARGETS.keys():
        parser.error(f"no such target: {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    folder = Path(tempfile.mkdtemp(prefix="presage-fuzzing-"))
    failed = False
    with ThreadPoolExecutor(given.workers) as threads:
        for found in threads.map(lambda name: search(name, given.seconds, folder), given.targets or TARGETS):
            said = "FAILED" if found.failed else "no failure"
            print(f"{found.target:18} {found.executions:>10,} inputs  {found.coverage:>6} edges  {said}", flush=True)
            if found.failed:
                failed = True
                print(found.output[-4000:])
    if failed:
        print(f"the inputs that failed are in {folder}")
        return 1
    folder.rmdir()
    return 0


if __name__ == "__main__":
    sys.exit(main())
