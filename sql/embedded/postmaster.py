"""The running server as the operating system sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PID_FILE = "postmaster.pid"


@dataclass(frozen=True)
class Postmaster:
    """A server's own entry in its data folder: still there after a `kill -9`, so not yet a proof of life."""

    pid: int
    port: int | None
    sockets: Path | None
    tcp: bool
    ready: bool


def read_pid_file(data: Path) -> Postmaster | None:
    """Read the contents of `postmaster.pid`."""
    try:
        lines = (data / PID_FILE).read_text().splitlines()
        pid = abs(int(lines[0]))  # negative: a single-user server
    except (OSError, ValueError, IndexError):
        return None
    lines += [""] * (8 - len(lines))
    return Postmaster(
        pid=pid,
        port=int(lines[3]) if lines[3].isdigit() else None,
        sockets=Path(lines[4]) if lines[4] else None,
        tcp=bool(lines[5]),
        ready=lines[7].strip() == "ready",
    )


def running(data: Path) -> Postmaster | None:
    """Find the live server of a data folder: a process ID alone may meanwhile be a zombie's or another program's."""
    found = read_pid_file(data)
    if found is None or not alive(found.pid) or str(data) not in _command(found.pid):
        return None
    return found


def alive(pid: int) -> bool:
    """Return whether a process runs; a zombie, which waits to be reaped, does not."""
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def started_at(pid: int) -> str | None:
    """Return when a process started, in kernel ticks: with its ID this identifies it; None if it does not run."""
    return _stat(pid)[19] if alive(pid) else None


def orphans(name: str) -> list[int]:
    """Return the server processes of a cluster: those that outlive a killed postmaster hold its memory."""
    title = f"postgres: {name}:"  # not always the first word: a loader may stand before it
    return [pid for pid in _pids() if any(word.startswith(title) for word in _command(pid)) and alive(pid)]


def with_argument(folder: str, command: str) -> list[int]:
    """Return the processes whose arguments contain a command, and one that names a path in the folder."""
    found = []
    for pid in _pids():
        words = _command(pid)
        if command in words and any(f"{folder}/" in word for word in words):
            found.append(pid)
    return found


def _pids() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on (the name before it may contain spaces and brackets)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> list[str]:
    """Read the command line, which all may read; the working folder would need rights that containers withhold."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return [""]
