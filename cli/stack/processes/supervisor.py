"""Supervision of child processes: start, wait until ready, restart on exit, and stop with all descendants.

Every child has the instance's mark in its environment. While the supervisor lives it is the "subreaper": orphans of
its descendants become its own children. If it is killed, the guard ends all processes with the mark.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from cli.stack.processes import guard
from cli.stack.processes.program import Program, Server, Service, StartError
from cli.stack.processes.signals import signals_ignored

if TYPE_CHECKING:
    from types import TracebackType

PR_SET_CHILD_SUBREAPER = 36
REAP_INTERVAL_S = 1.0
STABLE_AFTER_S = 20.0  # after running this long, a program's failure count is reset
Report = Callable[[str], None]


class ReplaceError(Exception):
    """A process was not replaced; the message says why, and the old one serves on."""


State = Literal["starting", "up", "down", "stopped"]


@dataclass
class SupervisedService:
    """A service and its state in the supervisor."""

    service: Service
    state: State = "starting"
    since: float = field(default_factory=time.monotonic)
    started_at: float = field(default_factory=time.monotonic)
    ready_after_s: float | None = None
    failures: int = 0
    restarts: int = 0
    again_at: float = 0.0
    busy: threading.Thread | None = None
    released: bool = False  # not to be started again
    asked_at: float | None = None  # monotonic, when a released one was asked to end

    def set_state(self, state: State) -> None:
        self.state, self.since = state, time.monotonic()


class Supervisor:
    """Supervises services; as a context manager it stops all of them on any exit."""

    def __init__(self, report: Report, *, restart: bool = True, start_retries: int = 0) -> None:
        self.instance = secrets.token_hex(8)
        self.report = report
        self.restart = restart
        self.start_retries = start_retries  # of a service that ends before all are up
        self.watched: dict[str, SupervisedService] = {}
        self._guard: subprocess.Popen[str] | None = None
        self._before: set[int] = set()
        self._zombies: dict[int, float] = {}
        self._reaped_at = 0.0
        self._checking = threading.Lock()
        self._stopping = threading.Event()

    # --- Context manager ---

    def __enter__(self) -> Self:
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._before = guard.descendants(os.getpid())
        self._guard = subprocess.Popen(
            [sys.executable, "-I", guard.__file__, self.instance],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._before.add(self._guard.pid)
        os.environ[guard.MARK] = self.instance
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with signals_ignored():
            self.stop()
            os.environ.pop(guard.MARK, None)
            if self._guard and self._guard.stdin:
                self._guard.stdin.close()
                self._guard.wait(timeout=30)

    def guard_last(self, pid: int) -> None:
        """Notify the guard of the database's process id."""
        if self._guard and self._guard.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._guard.stdin.write(f"{pid}\n")
                self._guard.stdin.flush()

    # --- Starting ---

    def start(self, *services: Service) -> None:
        """Start services without waiting for them."""
        for service in services:
            self.watched[service.name] = watched = SupervisedService(service)
            service.start()
            watched.started_at = watched.since

    def wait(self, *names: str) -> None:
        """Wait until these are ready; raises StartError if any service keeps dying or one of these takes too long."""
        while True:
            self.check_started()
            waiting = [w for name in names if (w := self.watched[name]).state != "up"]
            if not waiting:
                return
            for watched in waiting:
                if watched.state == "starting" and time.monotonic() - watched.since > watched.service.ready_within_s:
                    raise StartError(
                        self._failure_text(watched, f"not ready after {watched.service.ready_within_s:.0f} s")
                    )
            time.sleep(0.1)

    def check_started(self) -> None:
        """Update readiness; raises StartError if a service died once more than `start_retries`."""
        for watched in list(self.watched.values()):
            service = watched.service
            if (busy := watched.busy) is not None and busy.is_alive():
                continue  # it is being started again or replaced
            is_to_restart = self.restart and watched.failures < self.start_retries
            if (self.restart and watched.state == "down") or (is_to_restart and not service.running()):
                self._watch(watched)
            elif not service.running():
                raise StartError(self._failure_text(watched, "ended while starting"))
            elif watched.state == "starting" and service.ready():
                watched.ready_after_s = time.monotonic() - watched.since
                watched.set_state("up")
                self.report(f"{service.name} ready after {watched.ready_after_s:.1f} s")
        self._reap()

    def _failure_text(self, watched: SupervisedService, what: str) -> str:
        words = watched.service.log_tail()
        return f"{watched.service.name} {what}" + (f"; its log ends:\n{words}" if words else "")

    # --- Supervising ---

    def watch(self) -> None:
        """Check all services once and restart those that died, with increasing delays. Does not block."""
        self._reap()
        for watched in list(self.watched.values()):
            self._watch(watched)

    def _watch(self, watched: SupervisedService) -> None:
        with self._checking:
            if watched.busy is not None and watched.busy.is_alive():
                return
            watched.busy = None
            if watched.released:
                self._check_released(watched)
            else:
                self._check(watched)

    def _check(self, watched: SupervisedService) -> None:
        service, now = watched.service, time.monotonic()
        match watched.state:
            case "up" if not service.running():
                if now - watched.since > STABLE_AFTER_S:
                    watched.failures = 0
                watched.failures += 1
                watched.again_at = now + min(30.0, 0.25 * 4 ** (watched.failures - 1))
                watched.set_state("down")
                ended = isinstance(service, Program) and service.process is not None and not service.process.returncode
                self.report(self._failure_text(watched, "died") if not ended else f"{service.name} has ended")
            case "starting" if not service.running() or now - watched.since > service.ready_within_s:
                what = "died while starting" if not service.running() else "did not get ready"
                service.kill()
                watched.failures += 1
                watched.again_at = now + min(30.0, 0.25 * 4 ** (watched.failures - 1))
                watched.set_state("down")
                self.report(self._failure_text(watched, what))
            case "starting" if service.ready():
                watched.ready_after_s = now - watched.since
                watched.set_state("up")
                again = " again" if watched.restarts else ""
                self.report(f"{service.name} is up{again} after {watched.ready_after_s:.1f} s")
            case "down" if self.restart and now >= watched.again_at:
                watched.restarts += 1
                watched.set_state("starting")
                watched.busy = threading.Thread(target=self._restart, args=(watched,), daemon=True)
                watched.busy.start()

    def release(self, name: str, *, terminate: bool) -> None:
        """Start a service no more once it has ended; with `terminate` ask it to end now. Does not block."""
        watched = self.watched[name]
        watched.released = True
        if terminate and watched.asked_at is None:
            watched.asked_at = time.monotonic()
            watched.service.terminate()

    def _check_released(self, watched: SupervisedService) -> None:
        service = watched.service
        if watched.asked_at is not None and time.monotonic() - watched.asked_at > service.grace_s:
            service.kill()
        if not service.running():
            service.close()
            del self.watched[service.name]
            self.report(f"{service.name} has ended: it was not needed here any more")

    def _restart(self, watched: SupervisedService) -> None:
        try:
            watched.service.start()
        except Exception as error:  # noqa: BLE001 - the next check finds it down and retries
            self.report(f"{watched.service.name} could not be started: {error}")

    # --- Replacing ---

    def replace(self, name: str) -> str:
        """Replace a server's process without refusing a connection; return a summary, or raise ReplaceError.

        The next process serves beside the old one before that is asked to end. Blocks; call it in a thread.
        """
        with self._checking:
            watched = self.watched.get(name)
            if self._stopping.is_set() or watched is None or not isinstance(watched.service, Server):
                raise ReplaceError(f"{name} cannot be replaced while it runs")
            if watched.busy is not None or watched.state != "up":
                raise ReplaceError(f"{name} is {watched.state}; only one that is up can be replaced")
            watched.busy = threading.current_thread()
            old = watched.service
        try:
            began = time.monotonic()
            watched.service = self._succeed(old)
            watched.set_state("up")
            ready_s = time.monotonic() - began
            old.drain()
            until = time.monotonic() + old.drain_s
            while (cut := old.running()) and time.monotonic() < until and not self._stopping.is_set():
                if not watched.service.running():
                    raise ReplaceError(f"the next process of {name} was ready and ended; it is started again")
                time.sleep(0.02)
            old.kill()
        finally:
            watched.busy = None
        how = "was killed, as it had not drained" if cut else "drained"
        ended_s = time.monotonic() - began
        said = f"{name}: the next process was ready after {ready_s:.1f} s; the old one {how} after {ended_s:.1f} s"
        self.report(said)
        return said

    def _succeed(self, old: Server) -> Server:
        """Start the next process of a server, and wait until it is ready."""
        new = old.successor()
        new.start()
        until = time.monotonic() + new.ready_within_s
        while not new.ready():
            ended = not new.running()
            if ended or self._stopping.is_set() or time.monotonic() > until:
                new.kill()
                what = "ended while starting" if ended else "did not get ready"
                said = self._failure_text(SupervisedService(new), what)
                self.report(said)
                raise ReplaceError(f"the next process of {said}\nThe old one serves on.")
            time.sleep(0.1)
        return new

    # --- Stopping ---

    def stop(self) -> None:
        """Stop everything, the highest tier first, including all descendants."""
        self._stopping.set()
        for watched in self.watched.values():
            if (busy := watched.busy) is not None:
                busy.join(timeout=30)
        running = [w for w in reversed(self.watched.values()) if w.state != "stopped"]
        for tier in sorted({w.service.tier for w in running}, reverse=True):
            selected = [w for w in running if w.service.tier == tier]
            if tier == 0:  # the database, whose clients must end first
                self._sweep(sparing=[w.service for w in selected])
            self._end(selected)
        clean = self._sweep()
        self._reap(after_s=0)
        if not clean:
            self.report("some processes did not end: " + ", ".join(str(pid) for pid in sorted(self._remaining())))

    def _end(self, selected: Sequence[SupervisedService]) -> None:
        for watched in selected:
            watched.service.terminate()
        asked = time.monotonic()
        for watched in selected:
            while watched.service.running() and time.monotonic() - asked < watched.service.grace_s:
                time.sleep(0.02)
            watched.service.kill()
            watched.service.close()
            watched.set_state("stopped")

    def _remaining(self) -> set[int]:
        """Return our remaining descendants, including orphans."""
        self._reap()
        below = {pid for pid in guard.descendants(os.getpid()) if guard.alive(pid)}
        return (below | guard.marked(self.instance)) - self._before

    def _sweep(self, sparing: Sequence[Service] = ()) -> bool:
        spared: set[int] = set()
        for service in sparing:
            if service.pid is not None:
                spared |= {service.pid, *guard.descendants(service.pid)}
        return guard.sweep(lambda: self._remaining() - spared, grace_s=1.0)

    def _reap(self, after_s: float = 2.0) -> None:
        """Reap ended orphans; with a delay, because most zombies are about to be reaped by their own Popen."""
        now = time.monotonic()
        if after_s and now - self._reaped_at < REAP_INTERVAL_S:
            return
        self._reaped_at = now
        own = {w.service.pid for w in self.watched.values()} | self._before
        zombies = guard.zombies_of(os.getpid()) - own
        self._zombies = {pid: self._zombies.get(pid, now) for pid in zombies}
        for pid, since in self._zombies.items():
            if now - since >= after_s:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
