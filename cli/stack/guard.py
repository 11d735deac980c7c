"""Ends what a killed supervisor leaves behind. Runs by itself (`python -I guard.py INSTANCE`), on the standard library.

It reads its standard input, whose other end the supervisor holds: when the supervisor goes, however that happens, the
pipe ends, and every process that carries the instance's mark in its environment is ended. A line on the pipe names
the process to end last and gently: the database, which the others are using and whose files should be left tidy.
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
    """Every process there is."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Give the fields of /proc/PID/stat from the third on: state, parent, …; none when the process is gone."""
    try:
        return (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def birth(pid: int) -> str:
    """When the process started, in the kernel's ticks; pids come round again, a pid with its birth does not."""
    fields = _stat(pid)
    return fields[19] if len(fields) > 19 else ""


def marked(instance: str) -> set[int]:
    """Every live process of this instance, this one excepted."""
    mark = f"{MARK}={instance}".encode()
    found = set()
    for pid in pids():
        with contextlib.suppress(OSError):
            if mark in (PROC / str(pid) / "environ").read_bytes().split(b"\0") and alive(pid):
                found.add(pid)
    return found - {os.getpid()}


def descendants(*roots: int) -> set[int]:
    """Every process below these, whatever its environment says; zombies too."""
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
    """Children that ended and were not collected."""
    found = set()
    for child in pids():
        fields = _stat(child)
        if fields and fields[0] == "Z" and int(fields[1]) == pid:
            found.add(child)
    return found


def send(number: signal.Signals, those: Collection[int]) -> None:
    """Send a signal to each that is still there."""
    for pid in those:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def gone(remaining: Callable[[], Collection[int]], within_s: float) -> bool:
    """Wait until none remains."""
    until = time.monotonic() + within_s
    while remaining():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def sweep(remaining: Callable[[], Collection[int]], grace_s: float = 2.0) -> bool:
    """End all that `remaining` finds, asked first and killed after the grace; say whether none is left."""
    send(signal.SIGTERM, remaining())
    if gone(remaining, grace_s):
        return True
    for _ in range(20):  # what dies may just have started another
        send(signal.SIGKILL, remaining())
        if gone(remaining, 0.5):
            return True
    return False


def main() -> int:
    """Wait for the supervisor's end, then clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    instance = sys.argv[1]
    last: tuple[int, str] | None = None
    for line in sys.stdin:
        last = (int(line), birth(int(line)))

    def database() -> set[int]:
        if last is None or not alive(last[0]) or birth(last[0]) != last[1]:
            return set()
        return {last[0], *descendants(last[0])}

    clean = sweep(lambda: marked(instance) - database())
    if last and database():
        send(signal.SIGINT, [last[0]])  # PostgreSQL's fast shutdown
        if not gone(database, 10):
            send(signal.SIGKILL, database())
            clean = gone(database, 5) and clean
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
