"""The server's operating system user: PostgreSQL refuses to run as root, so root runs it as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sql.embedded.errors import OTHERWISE, EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """A user of this machine; `lent` if root runs programs as that user."""

    uid: int
    gid: int
    name: str
    lent: bool

    def identity(self) -> dict[str, Any]:
        """Return the arguments of `subprocess` that make a program run as this user."""
        return {"user": self.uid, "group": self.gid, "extra_groups": []} if self.lent else {}

    def run(self, command: Sequence[str | Path], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program to its end as this user, and return its output."""
        return subprocess.run(  # noqa: S603 - programs of ours
            command,
            cwd=cwd,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            start_new_session=True,  # Ctrl-C is ours to handle
            umask=0o077,
            **self.identity(),
        )

    def reaches(self, folder: Path) -> bool:
        """Return whether this user can enter a folder, or the place where it will be created."""
        there = next(path for path in (folder, *folder.parents) if path.exists())
        if not self.lent:
            return os.access(there, os.X_OK)
        return self.run(["/bin/sh", "-c", 'test -x "$1"', "sh", there], cwd=Path("/")).returncode == 0

    def own(self, *paths: Path) -> None:
        """Make this user the owner of paths."""
        if self.lent:
            for path in paths:
                os.chown(path, self.uid, self.gid, follow_symlinks=False)


def environment() -> dict[str, str]:
    """Return the environment of the server's programs: without variables that could misdirect them (PG…, LD_…, TZ)."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "LANG": "C", "TZ": "UTC"}


def account(data: Path) -> Account:
    """Return the owner of the existing data, else the current user, or as root one of the unprivileged users."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), _name(os.geteuid()), lent=False)
    if data.exists() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid, _name(owner.st_uid), lent=True)
    for entry in _entries():
        return Account(entry.pw_uid, entry.pw_gid, entry.pw_name, lent=True)
    raise EmbeddedError(
        "PostgreSQL refuses to run as root, and this machine has neither a user `postgres` nor `nobody`",
        f"run as an ordinary user, {OTHERWISE}",
    )


def _entries() -> Iterator[pwd.struct_passwd]:
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            yield entry


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # containers run as user IDs without a name
        return str(uid)
