"""Programs of Debian packages for the tests, downloaded once and unpacked into the cache; nothing is installed."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from sql.embedded import debian, installation

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("caddy", "docker-compose", "prometheus-alertmanager", "promtool")


def debian_program(name: str) -> Path:
    """Return a program of one of the packages; the first call downloads them, and fails if that is impossible."""
    into = installation.cache_root().parent / "test-programs"
    into.mkdir(parents=True, exist_ok=True)
    complete = into / "-".join(("complete", debian.SUITE, *PACKAGES))
    with (into / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            files = debian.download(installation.machine().architecture, into, print, PACKAGES)
            debian.unpack(files, into / "root")
            complete.touch()
    return next(file for file in (into / "root/usr").rglob(name) if file.is_file() and os.access(file, os.X_OK))
