"""Programs as child processes: a command, its log, its socket, and whether it is ready.

Every child runs in its own session, so that Ctrl-C reaches only the supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from cli.stack import readiness
from cli.stack.processes import priority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

LOG_TAIL_LINES = 15


class StartError(Exception):
    """A process died or did not become ready; the message names it and has the end of its log."""


class Service(Protocol):
    """A supervised service: a program of ours, or the database."""

    name: str
    ready_within_s: float
    grace_s: float
    tier: int

    @property
    def pid(self) -> int | None:
        """Return its process id, once started."""

    def start(self) -> None:
        """Start it, without waiting until it is ready."""

    def running(self) -> bool:
        """Return whether its process exists."""

    def ready(self) -> bool:
        """Return whether it responds."""

    def terminate(self) -> None:
        """Request termination."""

    def kill(self) -> None:
        """Kill it."""

    def close(self) -> None:
        """Release what its processes shared, once it has ended."""

    def log_tail(self) -> str:
        """Return the end of its log."""


def tail(log: Path, lines: int = LOG_TAIL_LINES) -> str:
    """Return the last lines of a log in readable format."""
    from config.logging import readable

    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 16384))
        ending = file.read().decode(errors="replace").splitlines()[-lines:]
        return "\n".join(readable(line) for line in ending)
    return ""


@dataclass
class Program:
    """A command to run, with its readiness check."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    is_ready: Callable[[], bool] = lambda: True
    ready_within_s: float = 180.0  # on a machine that is busy with starting all the others
    grace_s: float = 5.0
    tier: int = 2  # services of a higher tier end before those of a lower one
    ends_its_own: bool = False  # it is asked alone to end, and ends its children
    niceness: int = 0  # added to ours: a higher one gets less processor time where that is scarce
    started_at: float = 0.0  # Unix seconds
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it in its own session, its output appended to the log."""
        self._start()

    def _start(self, *options: str, pass_fds: Sequence[int] = ()) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.started_at = time.time()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*self.command, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                cwd=self.directory,
                start_new_session=True,
                pass_fds=pass_fds,
            )
        if self.niceness:
            priority.lower(self.process.pid, self.niceness)

    @property
    def pid(self) -> int | None:
        return self.process.pid if self.process else None

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def ready(self) -> bool:
        return self.running() and self.is_ready()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is not None:  # the group may outlive its leader
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, number)

    def terminate(self) -> None:
        if not self.ends_its_own:
            self._signal(signal.SIGTERM)
        elif self.running() and self.process is not None:
            self.process.terminate()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def close(self) -> None:
        pass

    def log_tail(self) -> str:
        return tail(self.log)


@dataclass(kw_only=True)
class Server(Program):
    """A program that serves HTTP on a socket that outlives its processes.

    The socket is opened here and inherited by each process: connections wait while there is none, and two may serve
    while one replaces the other. Each also listens on a port of its own, where no other can answer the health check.
    """

    address: tuple[str, int]
    fd_option: str  # with {} for the file descriptor
    drain_s: float  # for a replaced process to answer what is under way
    listener: socket.socket | None = None
    own_port: int = 0

    def start(self) -> None:
        if self.listener is None:
            self.listener = bound(*self.address)
        with bound("127.0.0.1", 0) as own:
            self.own_port = own.getsockname()[1]
            fds = [self.listener.fileno(), own.fileno()]
            self._start(*(self.fd_option.format(fd) for fd in fds), pass_fds=fds)

    def ready(self) -> bool:
        return self.running() and readiness.answers(f"http://127.0.0.1:{self.own_port}/health")

    def successor(self) -> Server:
        """Return the same program, to be started beside this one."""
        return replace(self, process=None)

    def drain(self) -> None:
        """Ask its main process to end gracefully, which passes that on to the others."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()

    def close(self) -> None:
        if self.listener is not None:
            self.listener.close()
            self.listener = None


def bound(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; the process that inherits it listens."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise StartError(f"cannot listen on {host}, port {port}: {error.strerror}") from error
    return made
