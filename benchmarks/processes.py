"""CPU time and memory of processes and all their descendants, from /proc."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024
PARENT, TIMES = 1, slice(11, 15)  # fields of /proc/PID/stat after the name; times: own, and of children that ended
GONE = (FileNotFoundError, ProcessLookupError)


def parent(pid: int) -> int:
    """Return the parent of a process."""
    return int(_stat(pid)[PARENT])


def tree(pid: int) -> Iterator[int]:
    """Yield a process and all its descendants."""
    yield pid
    with contextlib.suppress(*GONE):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(*GONE):
                for child in (task / "children").read_text().split():
                    yield from tree(int(child))


def cpu_s(pid: int, *, without: Collection[int] = ()) -> float:
    """Return the CPU time of a process and its descendants, also of those that have ended."""
    total = 0
    for each in tree(pid):
        if each not in without:
            with contextlib.suppress(*GONE):
                total += sum(map(int, _stat(each)[TIMES]))
    return total * TICK_S


def memory_mb(pid: int) -> float:
    """Return the memory of a process and its descendants; pages shared with others count in part."""
    total = 0
    for each in tree(pid):
        with contextlib.suppress(*GONE):
            lines = Path(f"/proc/{each}/smaps_rollup").read_text().splitlines()
            total += next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process alone."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KB / 1024


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
