"""An embedded PostgreSQL 17 with TimescaleDB: addresses, start and stop."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from sql.database import set_password
from sql.embedded import archiving, installation, place, postmaster, preparation
from sql.embedded.account import environment
from sql.embedded.errors import EmbeddedError
from sql.embedded.preparation import ROLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType, TracebackType

    from sql.embedded.installation import Installation
    from sql.embedded.place import ClusterFolder

PORT = 5432  # in the socket's name, if no TCP port was requested
START_S = 600  # after a crash the server first recovers from its log
STOP_S = 60
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
LEAVE = (signal.SIGTERM, signal.SIGHUP)  # these end a Python process at once, unless it handles them

_left_running: set[subprocess.Popen[bytes]] = set()  # a Popen that is collected while its process runs would warn


class Cluster:
    """One embedded server over one data folder; as a context manager it runs for the duration of the block.

    As root the server runs as `postgres`, or `nobody`. If that user cannot enter `data_dir` (below root's home, for
    example), the data is in /var/lib/presage/<digest of the path> instead; see `home`. `settings` override the
    defaults.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        cache_dir: Path | None = None,
        settings: Mapping[str, str] | None = None,
        start_within_s: float = START_S,
    ) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve()
        self.port = port
        self.cache_dir = cache_dir
        self.settings = dict(settings or {})
        self.start_within_s = start_within_s
        self._ours = False
        self._process: subprocess.Popen[bytes] | None = None
        self._restore: list[signal.Signals] = []

    @property
    def home(self) -> Path:
        """The folder of data, logs, password and (mostly) socket."""
        return self._place.home

    @property
    def pid(self) -> int | None:
        """The process ID of the running server."""
        live = self._live()
        return None if live is None else live.pid

    def url(self, database: str = "presage") -> str:
        """Return a libpq URL over the server's socket."""
        live = self._live()
        port = (live and live.port) or self.port or PORT
        folder = (live and live.sockets) or self._place.sockets(port)
        return f"postgresql://{ROLE}@/{quote(database, safe='')}?host={quote(str(folder), safe='')}&port={port}"

    def tcp_url(self, database: str = "presage") -> str:
        """Return a libpq URL over 127.0.0.1, with the password."""
        if self.port is None:
            raise EmbeddedError("this server listens only on its socket", "give it a port")
        secret = quote(preparation.password(self._place), safe="")
        return f"postgresql://{ROLE}:{secret}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def create_database(self, name: str) -> None:
        """Create a database, if it does not exist."""
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as conn:
            if conn.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
                with suppress(psycopg.errors.DuplicateDatabase):  # another process was quicker
                    conn.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))

    def install(self, progress: Callable[[str], None] | None = None) -> Installation:
        """Install the server's programs, if they are not installed."""
        return installation.install(self.cache_dir, progress)

    def start(self, progress: Callable[[str], None] | None = None) -> None:
        """Start the server and return when it answers; one that already runs over this data is used as it is."""
        tell = progress or (lambda _: None)
        preparation.require_time_zones()
        programs = self.install(tell)
        here = self._place
        if here.home != here.wanted:
            tell(f"user {here.user.name} cannot enter {here.wanted}: the data is in {here.home}")
        here.make()
        with here.entered(), installation.locked(here.lock, tell):
            if (live := self._answering()) is not None:
                self._take(live, tell)
                return
            preparation.clear(here, self.port or PORT, tell)
            preparation.initialise(here, programs, tell)
            preparation.configure(here, self.port, self.port or PORT, self.settings)
            try:
                self._launch(programs, tell)
                if self.port is not None:
                    self._set_password()
                self._own()
            except BaseException:
                self._halt("fast", 10)
                raise
        tell(f"the database runs as user {here.user.name}, process {self.pid}")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop the server, whoever started it; do nothing if none runs."""
        with self._place.entered():
            if self._place.lock.exists():
                with installation.locked(self._place.lock, lambda _: None):
                    self._halt(mode, STOP_S)
        self._ours = False

    def leave_running(self) -> None:
        """Make the server outlast the process that started it, until someone calls `stop`."""
        self._ours = False
        self._place.disown()

    def erase(self) -> None:
        """Stop the server and delete its data."""
        self.stop("immediate")
        with self._place.entered():
            if self._place.lock.exists():
                shutil.rmtree(self._place.sockets(self.port or PORT), ignore_errors=True)
                shutil.rmtree(self._place.home)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._restore = [number for number in LEAVE if signal.getsignal(number) is signal.SIG_DFL]
        for number in self._restore:
            signal.signal(number, _leave)
        try:
            self.start()
        except BaseException:
            self._let_signals_be()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._ours:
                self.stop()
        finally:
            self._let_signals_be()

    @cached_property
    def _place(self) -> ClusterFolder:
        return place.find(self.data_dir)

    def _live(self) -> postmaster.Postmaster | None:
        live = postmaster.running(self._place.data)
        if (process := self._process) is not None and process.poll() is not None:  # a killed one is a zombie till then
            _left_running.discard(process)
            if self._process is process:  # another thread may have started the next
                self._process = None
        return live

    def _let_signals_be(self) -> None:
        for number in self._restore:
            signal.signal(number, signal.SIG_DFL)
        self._restore = []

    def _own(self) -> None:
        self._ours = True
        self._place.own()

    def _answering(self) -> postmaster.Postmaster | None:
        """Find the running server, once it answers; wait for one that is shutting down."""
        deadline = time.monotonic() + START_S
        while (live := self._live()) is not None:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError as error:
                if "too many clients" in str(error) or "connection slots" in str(error):  # busy, but well
                    return live
            else:
                return live
            if time.monotonic() > deadline:
                raise EmbeddedError(f"the server over {self.home} (process {live.pid}) does not answer", "stop it")
            time.sleep(0.05)
        if (process := self._process) is not None:  # about to end, no server any more
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=10)
            self._live()
        return None

    def _take(self, live: postmaster.Postmaster, tell: Callable[[str], None]) -> None:
        if self.port is not None and not (live.tcp and live.port == self.port):
            raise EmbeddedError(
                f"a server already runs over {self.home} (process {live.pid}), and not on port {self.port}",
                "stop that one first, or ask for no port",
            )
        if self._place.owned():
            tell(f"using the database that already runs (process {live.pid})")
        else:
            tell(f"taking over the database that an earlier run left (process {live.pid})")
            self._own()

    def _launch(self, programs: Installation, tell: Callable[[str], None]) -> None:
        tell("starting the database")
        here = self._place
        with (here.logs / "start.log").open("wb") as log:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - a program of ours
                    [programs.program("postgres"), "-D", here.data],
                    cwd=here.data,
                    env=environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C reaches us, and we stop it in order
                    umask=0o077,
                    **here.user.identity(),
                )
            except (OSError, subprocess.SubprocessError) as error:
                raise preparation.not_run(here, programs, error) from error
        process = self._process
        _left_running.add(process)
        began = reported = time.monotonic()
        while True:
            live = postmaster.read_pid_file(here.data)
            if live is not None and live.pid == process.pid and live.ready:
                return
            now = time.monotonic()
            if process.poll() is not None or now - began > self.start_within_s:
                raise EmbeddedError(
                    f"the database did not start; its log ends:\n{self._log_tail()}",
                    f"see {here.logs}, or start over with a new data folder",
                )
            if now - reported > 5:
                tell(f"still starting after {now - began:.0f} s (recovering what a crash left can take its time)")
                reported = now
            time.sleep(0.02)

    def _halt(self, mode: str, seconds: float) -> None:
        live = self._live()
        if self._process is not None:
            pid = self._process.pid  # even before it has written its own number
        elif live is not None:
            pid = live.pid
        else:
            return
        for how in (mode, "immediate"):
            with suppress(ProcessLookupError):
                os.kill(pid, SIGNALS[how])
            began = time.monotonic()
            archived_until = began + archiving.WAIT_S
            while postmaster.alive(pid) and (now := time.monotonic()) < began + seconds:
                if now > archived_until:
                    archiving.give_up(self.home)
                    archived_until = now + 1.0
                time.sleep(0.02)
            if not postmaster.alive(pid):
                self._live()
                return
        raise EmbeddedError(f"the database (process {pid}) does not stop", f"see {self._place.logs}")

    def _log_tail(self) -> str:
        files = sorted(self._place.logs.glob("*.log"), key=lambda file: file.stat().st_mtime)
        lines = [line for file in files[-2:] for line in file.read_text(errors="replace").splitlines()]
        return "\n".join(f"    {line}" for line in lines[-10:])

    def _set_password(self) -> None:
        password = preparation.password(self._place)
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as conn:
            set_password(conn, ROLE, password)


@atexit.register
def _reap() -> None:
    """Reap servers that another object, or process, has stopped; suppress warnings for those that outlast us."""
    for process in _left_running:
        if process.poll() is None:
            process.returncode = 0


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)
