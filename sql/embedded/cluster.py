"""A PostgreSQL 17 with TimescaleDB of our own: its data, its processes, its addresses."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Literal, Self
from urllib.parse import quote

import psycopg
from psycopg import sql

from sql.embedded import configuration, installation, postmaster
from sql.embedded.account import Account, account, environment
from sql.embedded.errors import OTHERWISE, EmbeddedError
from sql.embedded.installation import Installation, locked

ROLE = "presage"
PORT = 5432  # of the socket's name, where no TCP port was asked for
SOCKET_PATH_BYTES = 107  # sizeof(sockaddr_un.sun_path), less the closing zero
START_S = 600  # recovery after a crash replays the log before the server is ready
STOP_S = 60
FALLBACK = Path("/var/lib/presage")
MARK = "presage.lock"
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}

Progress = Callable[[str], None]
_left_running: list[subprocess.Popen[bytes]] = []  # a Popen forgotten while its process runs would complain


class Cluster:
    """One embedded server over one data folder; as a context manager it runs for as long as the block.

    As root the server runs as `postgres`, or `nobody`. Where that user cannot come to `data_dir` (below /root, say),
    the data lies in /var/lib/presage/<digest of the path> instead; `home` says where.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int | None = None,
        cache_dir: Path | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = Path(data_dir).expanduser().resolve()
        self.port = port
        self.cache_dir = cache_dir
        self.settings = dict(settings or {})
        self._ours = False
        self._process: subprocess.Popen[bytes] | None = None
        self._sigterm: object = None

    # Where things lie

    @property
    def home(self) -> Path:
        """The folder of everything: data, socket, logs, password."""
        if os.geteuid() == 0:
            fallback = FALLBACK / self._digest
            # Where data was once put it stays, even when the wanted folder has become reachable since.
            if (fallback / MARK).exists():
                return fallback
            if not (self.data_dir / MARK).exists() and not account(self.data_dir / "17").reaches(self.data_dir):
                return fallback
        return self.data_dir

    @property
    def data(self) -> Path:
        """The server's own data folder."""
        return self.home / "17"

    @property
    def sockets(self) -> Path:
        """The folder of the server's socket, which only its owner (and root) can enter."""
        if (live := postmaster.running(self.data)) is not None and live.sockets is not None:
            return live.sockets
        near = self.home / "socket"
        if len(os.fsencode(near / f".s.PGSQL.{self.port or PORT}")) <= SOCKET_PATH_BYTES:
            return near
        return Path("/tmp") / f"presage-{account(self.data).uid}-{self._digest}"  # noqa: S108 - made 0700, its owner checked

    @property
    def pid(self) -> int | None:
        """The process number of the running server."""
        if self._process is not None:
            self._process.poll()  # so that one that was killed does not stay as a zombie
        live = postmaster.running(self.data)
        return None if live is None else live.pid

    @property
    def _digest(self) -> str:
        return hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]

    # Addresses

    def url(self, database: str = "presage") -> str:
        """A libpq address over the server's socket."""
        live = postmaster.running(self.data)
        port = (live and live.port) or self.port or PORT
        return f"postgresql://{ROLE}@/{quote(database, safe='')}?host={quote(str(self.sockets), safe='')}&port={port}"

    def tcp_url(self, database: str = "presage") -> str:
        """A libpq address over 127.0.0.1, with the password."""
        if self.port is None:
            raise EmbeddedError("this server listens on its socket alone", "give it a port")
        password = (self.home / "password").read_text()
        return f"postgresql://{ROLE}:{quote(password, safe='')}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def create_database(self, name: str) -> None:
        """Makes a database, if it is not there."""
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as conn:
            if conn.execute("select from pg_database where datname = %s", [name]).fetchone() is None:
                with suppress(psycopg.errors.DuplicateDatabase):  # another was quicker
                    conn.execute(sql.SQL("create database {}").format(sql.Identifier(name)))

    # Life

    def install(self, progress: Progress | None = None) -> Installation:
        """Installs the server's programs, if they are not."""
        return installation.install(self.cache_dir, progress)

    def start(self, progress: Progress | None = None) -> None:
        """Starts the server and returns when it answers; one that already runs over this data is taken as it is."""
        tell = progress or (lambda _: None)
        programs = self.install(tell)
        _require_time_zones()
        user = account(self.data)
        home = self._make_home(user)
        if home != self.data_dir:
            tell(f"user {user.name} cannot come to {self.data_dir}: the data lies in {home}")
        with locked(home / MARK, tell):
            if (live := postmaster.running(self.data)) is not None:
                self._take(live, tell)
                return
            self._clear(tell)
            if not (self.data / "PG_VERSION").exists():
                self._initialise(programs, user, tell)
            self._configure(user)
            try:
                self._launch(programs, user, tell)
                if self.port is not None:
                    self._set_password()
            except BaseException:
                self._halt("fast", 10)
                raise
            self._own()
        tell(f"database runs as user {user.name}, process {self.pid}")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stops the server, whoever started it; does nothing when none runs."""
        if not (self.home / MARK).exists():
            return
        with locked(self.home / MARK, lambda _: None):
            self._halt(mode, STOP_S)
        self._ours = False

    def leave_running(self) -> None:
        """Makes the server outlast whoever started it, until someone calls `stop`."""
        self._ours = False
        (self.home / "owner.json").write_text("null")

    def erase(self) -> None:
        """Stops the server and deletes its data."""
        self.stop("immediate")
        home, sockets = self.home, self.sockets
        if (home / MARK).exists():
            shutil.rmtree(sockets, ignore_errors=True)
            shutil.rmtree(home)

    def __enter__(self) -> Self:
        self.start()
        # Without a handler, SIGTERM would end this process and leave the server behind.
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._sigterm = signal.signal(signal.SIGTERM, _leave)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._ours:
                self.stop()
        finally:
            if self._sigterm is not None:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                self._sigterm = None

    # Steps of starting

    def _make_home(self, user: Account) -> Path:
        home = self.home
        try:
            if home.exists() and any(home.iterdir()) and not (home / MARK).exists():
                raise EmbeddedError(
                    f"{home} holds other files than a database's", "choose an empty folder, or a new one"
                )
            for folder in reversed([path for path in (home, *home.parents) if not path.exists()]):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o755)  # whatever root's umask: the server's user must pass
            home.chmod(0o700)
            (home / MARK).touch(0o600)
            logs = home / "log"
            logs.mkdir(0o700, exist_ok=True)
            user.own(home, logs)
        except PermissionError as error:
            raise EmbeddedError(
                f"{home} is not ours to use: {error}", "use another data folder, or the user who made this one"
            ) from error
        return home

    def _take(self, live: postmaster.Postmaster, tell: Progress) -> None:
        if self.port is not None and not (live.tcp and live.port == self.port):
            raise EmbeddedError(
                f"a server already runs over {self.home} (process {live.pid}), and not on port {self.port}",
                "stop that one first, or ask for no port",
            )
        deadline = time.monotonic() + START_S
        while not live.ready:
            if time.monotonic() > deadline or (found := postmaster.running(self.data)) is None:
                raise EmbeddedError(f"the server that ran over {self.home} went away", "start again")
            live = found
            time.sleep(0.05)
        if not self._owned():
            tell(f"taking over the database that an earlier run left (process {live.pid})")
            self._own()
        else:
            tell(f"using the database that already runs (process {live.pid})")

    def _clear(self, tell: Progress) -> None:
        """Takes away what a killed server left; what PostgreSQL can judge itself is left to it."""
        deadline = time.monotonic() + 30
        while left := postmaster.orphans(self._name):
            if time.monotonic() > deadline:
                raise EmbeddedError(
                    f"processes of a killed server still hold its memory: {', '.join(map(str, left))}", "end them"
                )
            time.sleep(0.1)  # they notice the death of their postmaster by themselves, at the latest after a statement
        files = [self.data / postmaster.PID_FILE, self.sockets / f".s.PGSQL.{self.port or PORT}.lock"]
        for file in files:
            with suppress(OSError, ValueError, IndexError):
                pid = abs(int(file.read_text().split()[0]))
                # PostgreSQL forgives a process number that is free, not one that a zombie or another program has.
                if Path(f"/proc/{pid}").exists():
                    tell(f"clearing away the lock of a killed server ({file.name})")
                    file.unlink()
        shutil.rmtree(self.home / "17.part", ignore_errors=True)

    def _initialise(self, programs: Installation, user: Account, tell: Progress) -> None:
        tell("making the database")
        if shutil.disk_usage(self.home).free < (256 << 20):
            raise EmbeddedError(f"less than 256 MB free in {self.home}", f"free some disk space, {OTHERWISE}")
        part = self.home / "17.part"
        options = ("-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
        try:
            done = user.run([programs.program("initdb"), "-D", part, *options], cwd=self.home)
        except (PermissionError, subprocess.SubprocessError) as error:
            raise EmbeddedError(
                f"programs cannot be run as user {user.name}: {error}", f"run as an ordinary user, {OTHERWISE}"
            ) from error
        if done.returncode != 0:
            said = "\n".join(f"    {line}" for line in (done.stdout + done.stderr).splitlines()[-8:])
            remedy = "check the folder's rights and the disk's space, or use another data folder"
            if done.returncode in {126, 127}:
                remedy = f"let user {user.name} enter {programs.prefix} (every folder above it must be passable)"
            raise EmbeddedError(f"making the database failed:\n{said}", remedy)
        with (part / "postgresql.conf").open("a") as file:
            file.write("\ninclude 'presage.conf'\n")
        part.rename(self.data)  # a half-made one never bears the name

    def _configure(self, user: Account) -> None:
        sockets = self.sockets
        with suppress(FileExistsError):
            sockets.mkdir(0o700)
            user.own(sockets)
        found = sockets.lstat()
        if found.st_uid != user.uid or found.st_mode & 0o170777 != 0o040700:
            raise EmbeddedError(f"{sockets} is not a folder that only user {user.name} can enter", "remove it")
        port = self.port or PORT
        if self.port is not None:
            _require_free(self.port)
        settings = {
            **configuration.server_settings(configuration.memory_bytes(), os.cpu_count() or 1),
            **configuration.log_settings(self.home / "log"),
            "cluster_name": self._name,
            "port": str(port),
            "listen_addresses": "" if self.port is None else "127.0.0.1",
            "unix_socket_directories": str(sockets),
            "unix_socket_permissions": "0700",
            **self.settings,
        }
        texts = {
            "presage.conf": configuration.written(settings),
            "pg_hba.conf": configuration.host_rules(tcp=self.port is not None),
        }
        for name, text in texts.items():
            path = self.data / name
            path.write_text(text)
            path.chmod(0o600)
            user.own(path)

    def _launch(self, programs: Installation, user: Account, tell: Progress) -> None:
        tell("starting the database")
        first_words = self.home / "log/start.log"
        with first_words.open("wb") as log:
            self._process = subprocess.Popen(
                [programs.program("postgres"), "-D", self.data],
                cwd=self.data,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C reaches us, and we stop it in order
                umask=0o077,
                **user.identity(),
            )
        _left_running.append(self._process)
        began = told = time.monotonic()
        while True:
            live = postmaster.written(self.data)
            if live is not None and live.pid == self._process.pid and live.ready:
                return
            now = time.monotonic()
            if self._process.poll() is not None or now - began > START_S:
                raise EmbeddedError(
                    f"the database did not start; its log ends:\n{self._last_words()}",
                    f"look into {self.home / 'log'}, or start over with a fresh data folder",
                )
            if now - told > 5:
                tell(f"still starting after {now - began:.0f} s (recovering what a crash left can take its time)")
                told = now
            time.sleep(0.02)

    def _halt(self, mode: str, seconds: float) -> None:
        live = postmaster.written(self.data) if self._process and self._process.poll() is None else None
        live = live or postmaster.running(self.data)
        pid = live.pid if live else self._process.pid if self._process and self._process.poll() is None else None
        for how in (mode, "immediate"):
            if pid is None or not self._alive(pid):
                break
            with suppress(ProcessLookupError):
                os.kill(pid, SIGNALS[how])
            deadline = time.monotonic() + seconds
            while self._alive(pid) and time.monotonic() < deadline:
                time.sleep(0.02)
        if self._process in _left_running and self._process.poll() is not None:
            _left_running.remove(self._process)
            self._process = None

    def _alive(self, pid: int) -> bool:
        if self._process is not None and self._process.pid == pid:
            return self._process.poll() is None
        return postmaster.alive(pid)

    def _last_words(self) -> str:
        files = sorted((self.home / "log").glob("*.log"), key=lambda file: file.stat().st_mtime)
        lines = [line for file in files[-2:] for line in file.read_text(errors="replace").splitlines()]
        return "\n".join(f"    {line}" for line in lines[-10:])

    def _set_password(self) -> None:
        file = self.home / "password"
        if not file.exists():
            with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as out:  # noqa: PTH123 - never readable by others
                out.write(secrets.token_urlsafe(24))
        with psycopg.connect(self.url("postgres"), autocommit=True, connect_timeout=10) as conn:
            scrambled = conn.pgconn.encrypt_password(file.read_text().encode(), ROLE.encode(), b"scram-sha-256")
            conn.execute(
                sql.SQL("alter role {} password {}").format(sql.Identifier(ROLE), sql.Literal(scrambled.decode()))
            )

    # Whose server it is: who started it stops it; when that process has died, whoever finds it next

    def _own(self) -> None:
        self._ours = True
        (self.home / "owner.json").write_text(json.dumps([os.getpid(), postmaster.started_at(os.getpid())]))

    def _owned(self) -> bool:
        try:
            owner = json.loads((self.home / "owner.json").read_text())
        except (OSError, ValueError):
            return False
        return owner is None or postmaster.started_at(owner[0]) == owner[1]

    @property
    def _name(self) -> str:
        return f"presage-{self._digest}"


def _leave(number: int, frame: FrameType | None) -> None:
    del frame
    raise SystemExit(128 + number)


def _require_time_zones() -> None:
    if not Path("/usr/share/zoneinfo/UTC").exists():  # compiled into Debian's server
        raise EmbeddedError("this machine has no time zone data", f"apt-get install tzdata, {OTHERWISE}")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise EmbeddedError(f"port {port} of 127.0.0.1 cannot be used: {error}", "choose another port") from error
