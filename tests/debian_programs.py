"""Programs of Debian packages for the tests, downloaded once and unpacked into the cache; nothing is installed."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from sql.embedded import debian, installation

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("caddy", "docker-compose", "prometheus-alertmanager", "promtool")
CLUSTER_PACKAGES = (
    *("etcd-server", "haproxy"),
    # libraries of HAProxy that the embedded server has not
    *("libcrypt1", "libjemalloc2", "liblua5.4-0", "libopentracing-c-wrapper0t64", "libopentracing1"),
)


def debian_program(name: str) -> Path:
    """Return a program of one of the packages; the first call downloads them, and fails if that is impossible."""
    return _program(_unpacked("test-programs", PACKAGES), name)


def cluster_program(name: str) -> list[str | Path]:
    """Return the command of a program of a cluster, with libraries of its own release instead of the machine's."""
    root = _unpacked("cluster-programs", CLUSTER_PACKAGES)
    loader = next(installation.install().prefix.glob("usr/lib/*-linux-gnu/ld-linux*"))
    libraries = (loader.parent, root / "usr/lib" / loader.parent.name)
    return [loader, "--library-path", ":".join(map(str, libraries)), _program(root, name)]


def _unpacked(folder: str, packages: tuple[str, ...]) -> Path:
    into = installation.cache_root().parent / folder
    into.mkdir(parents=True, exist_ok=True)
    complete = into / "-".join(("complete", debian.SUITE, *packages))
    with (into / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            files = debian.download(installation.machine().architecture, into, print, packages)
            debian.unpack(files, into / "root")
            complete.touch()
    return into / "root"


def _program(root: Path, name: str) -> Path:
    return next(file for file in (root / "usr").rglob(name) if file.is_file() and os.access(file, os.X_OK))
