"""Where one cluster lies: its folder, who it belongs to, and the folder of its socket."""

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
MARK = "presage.lock"  # proves that a folder is ours, and is what two who start or stop at once wait for
SOCKET_PATH_BYTES = 107  # sizeof(sockaddr_un.sun_path), less the closing zero


@dataclass(frozen=True)
class Place:
    """One cluster's folder."""

    wanted: Path
    home: Path
    user: Account

    @property
    def data(self) -> Path:
        """What PostgreSQL calls its data directory, by major version."""
        return self.home / "17"

    @property
    def logs(self) -> Path:
        """The server's log: a file a weekday, and its first words in start.log."""
        return self.home / "log"

    @property
    def lock(self) -> Path:
        """The file that those who start and stop hold."""
        return self.home / MARK

    @property
    def password(self) -> Path:
        """The file that keeps the password of TCP connections."""
        return self.home / "password"

    @property
    def name(self) -> str:
        """The name that every process of the cluster bears in its title."""
        return f"presage-{_digest(self.wanted)}"

    def sockets(self, port: int) -> Path:
        """Give the socket's folder, that only its owner (and root) can enter; in /tmp if its path would be too long."""
        near = self.home / "socket"
        if len(os.fsencode(near / f".s.PGSQL.{port}")) <= SOCKET_PATH_BYTES:
            return near
        return Path("/tmp") / f"{self.name}-{self.user.uid}"  # noqa: S108 - made 0700, its owner checked before use

    def make(self) -> None:
        """Make the folder, or check that the one there is ours."""
        with self.entered():
            if self.home.exists() and any(self.home.iterdir()) and not self.lock.exists():
                raise EmbeddedError(
                    f"{self.home} holds other files than a database's", "choose an empty folder, or a new one"
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
                (self.home / "data_dir").write_text(f"{self.wanted}\n")  # whose data these are, for who finds them

    def make_sockets(self, port: int) -> Path:
        """Make the folder of the socket; one that others prepared (in /tmp) is refused."""
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
        """Say whose fault it is when the folder cannot be used."""
        try:
            yield
        except PermissionError as error:
            raise EmbeddedError(
                f"{self.home} is not ours to use ({error})", "use another data folder, or the user who made this one"
            ) from error

    # Whose server it is: who started it stops it; once that process is dead, whoever finds it next.

    def own(self) -> None:
        """Note that this process has the server."""
        self._note([os.getpid(), postmaster.started_at(os.getpid())])

    def disown(self) -> None:
        """Note that nobody has the server: it runs until it is stopped by hand."""
        self._note(None)

    def owned(self) -> bool:
        """Whether somebody has the server who still lives, or meant it to run on."""
        try:
            owner = json.loads((self.home / "owner.json").read_text())
        except (OSError, ValueError):
            return False
        return owner is None or postmaster.started_at(owner[0]) == owner[1]

    def _note(self, owner: list[int | str | None] | None) -> None:
        (self.home / "owner.json").write_text(json.dumps(owner))


def find(wanted: Path) -> Place:
    """Find the place of a cluster: the wanted folder, unless root's stand-in cannot come to it.

    Then it is /var/lib/presage/<digest of the path>; and where data once was put it stays, even if the wanted folder
    has become passable since.
    """
    fallback = FALLBACK / _digest(wanted)
    user = account(wanted / "17")
    if not user.lent:
        return Place(wanted, wanted, user)
    if (fallback / MARK).exists() or not ((wanted / MARK).exists() or user.reaches(wanted)):
        return Place(wanted, fallback, account(fallback / "17"))
    return Place(wanted, wanted, user)


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
