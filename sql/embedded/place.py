"""Folders of one cluster: its home, its owner, and the folder of its socket."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sql.embedded import postmaster
from sql.embedded.account import Account, account
from sql.embedded.errors import EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterator

FALLBACK = Path("/var/lib/presage")
MARK = "presage.lock"  # proves that a folder is ours, and is locked by those who start or stop the server
SOCKET_PATH_BYTES = 107  # sizeof(sockaddr_un.sun_path), less the closing zero


@dataclass(frozen=True)
class ClusterFolder:
    """One cluster's folder."""

    wanted: Path
    home: Path
    user: Account

    @property
    def data(self) -> Path:
        """Return PostgreSQL's data directory, by major version."""
        return self.home / "17"

    @property
    def logs(self) -> Path:
        """Return the folder of the server's logs: a file per weekday, and the start-up output in start.log."""
        return self.home / "log"

    @property
    def lock(self) -> Path:
        """Return the lock file that those who start and stop hold."""
        return self.home / MARK

    @property
    def password(self) -> Path:
        """Return the file with the password of TCP connections."""
        return self.home / "password"

    @property
    def name(self) -> str:
        """Return the name that every process of the cluster has in its title."""
        return f"presage-{_digest(self.wanted)}"

    def sockets(self, port: int) -> Path:
        """Return the socket's folder, that only its owner (and root) can enter; in /tmp if its path were too long."""
        near = self.home / "socket"
        if len(os.fsencode(near / f".s.PGSQL.{port}")) <= SOCKET_PATH_BYTES:
            return near
        return Path("/tmp") / f"{self.name}-{self.user.uid}"  # noqa: S108 - made 0700, its owner checked before use

    def make(self) -> None:
        """Create the folder, or check that the existing one is ours."""
        with self.entered():
            if self.home.exists() and any(self.home.iterdir()) and not self.lock.exists():
                raise EmbeddedError(
                    f"{self.home} contains files other than a database's", "choose an empty folder, or a new one"
                )
            for folder in reversed([path for path in (self.home, *self.home.parents) if not path.exists()]):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o755)  # whatever root's umask: the server's user must pass
            self.lock.touch(0o600)
            self.logs.mkdir(exist_ok=True)
            for folder in (self.home, self.logs):
                folder.chmod(0o700)
                self.user.own(folder)
            if self.home != self.wanted:
                (self.home / "data_dir").write_text(f"{self.wanted}\n")  # says which data folder this belongs to

    def make_sockets(self, port: int) -> Path:
        """Create the folder of the socket; one that others prepared (in /tmp) is refused."""
        folder = self.sockets(port)
        if not folder.exists():
            folder.mkdir(0o700)
            self.user.own(folder)
        found = folder.lstat()
        if found.st_uid != self.user.uid or found.st_mode & 0o170777 != 0o040700:
            raise EmbeddedError(f"{folder} is not a folder that only user {self.user.name} can enter", "remove it")
        return folder

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Raise an error that names the cause if the folder cannot be used."""
        try:
            yield
        except PermissionError as error:
            raise EmbeddedError(
                f"{self.home} cannot be used ({error})", "use another data folder, or the user who made this one"
            ) from error

    # Ownership of the server: the process that started it stops it; once that process is dead, whoever finds it next.

    def own(self) -> None:
        """Record that this process owns the server."""
        self._note([os.getpid(), postmaster.started_at(os.getpid())])

    def disown(self) -> None:
        """Record that nobody owns the server: it runs until it is stopped by hand."""
        self._note(None)

    def owned(self) -> bool:
        """Return whether the server has a living owner, or was left running on purpose."""
        try:
            owner = json.loads((self.home / "owner.json").read_text())
        except (OSError, ValueError):
            return False
        return owner is None or postmaster.started_at(owner[0]) == owner[1]

    def _note(self, owner: list[int | str | None] | None) -> None:
        (self.home / "owner.json").write_text(json.dumps(owner))


def find(wanted: Path) -> ClusterFolder:
    """Find the folder of a cluster: the wanted one, unless root's unprivileged user cannot enter it.

    Then it is /var/lib/presage/<digest of the path>; existing data stays there, even if the wanted folder has become
    accessible since.
    """
    fallback = FALLBACK / _digest(wanted)
    user = account(wanted / "17")
    if not user.lent:
        return ClusterFolder(wanted, wanted, user)
    if (fallback / MARK).exists() or not ((wanted / MARK).exists() or user.reaches(wanted)):
        return ClusterFolder(wanted, fallback, account(fallback / "17"))
    return ClusterFolder(wanted, wanted, user)


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
