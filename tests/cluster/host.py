"""A host of the test bed: programs in a network namespace, which are lost together and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sql.embedded.account import Account
    from tests import namespaces

    Program = tuple[Sequence[str | Path], Mapping[str, str]]


class _Added(NamedTuple):
    command: Sequence[str | Path]
    environment: Mapping[str, str]
    user: Account | None


class Host:
    """Programs, each with a command and an environment, in a network namespace; without one on the machine itself."""

    def __init__(
        self,
        name: str,
        folder: Path,
        environment: Mapping[str, str],
        *,
        address: str,
        network: namespaces.Host | None = None,
    ) -> None:
        self.name, self.folder, self.address, self.network = name, folder / name, address, network
        self.folder.mkdir(mode=0o755)
        self._environment = environment
        self._programs: dict[str, _Added] = {}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def add(self, name: str, program: Program, user: Account | None = None) -> None:
        """Add a program; `start` starts it, as the given user."""
        self._programs[name] = _Added(*program, user)

    def start(self, *names: str) -> None:
        """Start these programs, or all; those that run are left alone."""
        for name in names or self._programs:
            if name not in self._running or self._running[name].poll() is not None:
                self._running[name] = self._start(name, self._programs[name])

    def _start(self, name: str, program: _Added) -> subprocess.Popen[bytes]:
        command: list[str | Path] = ["ip", "netns", "exec", self.network.name] if self.network else []
        if self.network is not None:  # memory that processes of a host share is no other host's, and goes with it
            command += ["sh", "-c", 'mount -t tmpfs -o mode=1777 none /dev/shm && exec "$@"', "sh"]
        command += ["setpriv", "--pdeathsig=KILL"]  # with the test bed, should that be killed
        if program.user is not None and program.user.lent:
            command += [f"--reuid={program.user.uid}", f"--regid={program.user.gid}", "--clear-groups"]
        with self.log(name).open("ab") as log:
            return subprocess.Popen(
                [*command, *program.command],
                env={**self._environment, **program.environment},
                cwd="/" if program.user else Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """Return the file of what a program says."""
        return self.folder / f"{name}.log"

    def ended(self) -> list[str]:
        """Return the programs that have ended by themselves."""
        return [name for name, process in self._running.items() if process.poll() is not None]

    def pids(self) -> list[int]:
        """Return the processes in this host's namespace."""
        if self.network is None:
            return []
        said = subprocess.run(["ip", "netns", "pids", self.network.name], check=True, capture_output=True, text=True)
        return [int(pid) for pid in said.stdout.split()]

    def lose(self) -> None:
        """Kill all of its processes at once, as the loss of its power would."""
        # One that has just been started is not in its namespace yet.
        while pids := {*self.pids(), *(each.pid for each in self._running.values() if each.poll() is None)}:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)
