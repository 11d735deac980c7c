"""Ends the processes that a killed supervisor leaves behind. Runs alone (`python -I guard.py INSTANCE`), stdlib only.

It reads its standard input, a pipe held open by the supervisor: when the supervisor exits for any reason, the pipe
closes, and every process with the instance's mark in its environment is ended. A line on the pipe is the pid of the
process to end last and gracefully: the database, which the others use and whose files should be left consistent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

MARK = "PRESAGE_INSTANCE"
PROC = Path("/proc")


def pids() -> list[int]:
    """Return the pids of all processes."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third on: state, parent, …; empty if the process is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def start_time(pid: int) -> str:
    """Return the process's start time in kernel ticks; pids are reused, a pid with its start time is not."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def marked(instance: str) -> set[int]:
    """Return the live processes of this instance, except this one."""
    mark = f"{MARK}={instance}".encode()
    found = set()
    for pid in pids():
        with contextlib.suppress(OSError):
            if mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0") and alive(pid):
                found.add(pid)
    return found - {os.getpid()}


def descendants(*roots: int) -> set[int]:
    """Return all descendants of these processes, whatever their environment, including zombies."""
    children: dict[int, list[int]] = {}
    for pid in pids():
        fields = _stat(pid)
        if fields:
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    unseen = list(roots)
    while unseen:
        below = children.get(unseen.pop(), [])
        unseen.extend(pid for pid in below if pid not in found)
        found.update(below)
    return found


def zombies_of(pid: int) -> set[int]:
    """Return a process's children that ended and were not reaped."""
    found = set()
    for child in pids():
        fields = _stat(child)
        if fields and fields[0] == "Z" and int(fields[1]) == pid:
            found.add(child)
    return found


def send(number: signal.Signals, those: Collection[int]) -> None:
    """Send a signal to each process that still exists."""
    for pid in those:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def wait_until_gone(remaining: Callable[[], Collection[int]], within_s: float) -> bool:
    """Wait until no process remains; return False on timeout."""
    until = time.monotonic() + within_s
    while remaining():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def sweep(remaining: Callable[[], Collection[int]], grace_s: float = 2.0) -> bool:
    """Terminate all processes of `remaining`, kill them after the grace period; return whether none is left."""
    send(signal.SIGTERM, remaining())
    if wait_until_gone(remaining, grace_s):
        return True
    for _ in range(20):  # a dying process may just have started another
        send(signal.SIGKILL, remaining())
        if wait_until_gone(remaining, 0.5):
            return True
    return False


def main() -> int:
    """Wait for the supervisor to exit, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    instance = sys.argv[1]
    last: tuple[int, str] | None = None
    for line in sys.stdin:
        last = (int(line), start_time(int(line)))

    def database() -> set[int]:
        if last is None or not alive(last[0]) or start_time(last[0]) != last[1]:
            return set()
        return {last[0], *descendants(last[0])}

    clean = sweep(lambda: marked(instance) - database())
    if last and database():
        send(signal.SIGINT, [last[0]])  # PostgreSQL's fast shutdown
        if not wait_until_gone(database, 10):
            send(signal.SIGKILL, database())
            clean = wait_until_gone(database, 5) and clean
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
