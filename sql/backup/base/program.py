"""pgBackRest in one fixed version, unpacked beside the embedded server, whose libraries it uses."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from typing import TYPE_CHECKING

from sql.backup.errors import BackupError
from sql.embedded import EmbeddedError, debian, installation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

VERSION = "2.55.1-1"
SHA256 = {
    "amd64": "4143a01dba71c12aab93e67b012b5cb93ec9f80e408080ddbde6261115da381d",
    "arm64": "8dd7c20c8be327a465d27b557ce04eca85fa67b29b16391bb5300a9f515c7142",
}
# What the embedded server does not bring along. Debian replaces libraries by fixed ones, so apt's signed list has their
# checksums; the program itself has to be the one that was tried.
PACKAGES = ("pgbackrest", "libssh2-1t64", "libbz2-1.0")
MARKER = "complete"


def install(cache_dir: Path | None = None, tell: Callable[[str], None] = lambda _: None) -> Path:
    """Return the folder of the program, downloaded and unpacked if it is not there."""
    try:
        here = installation.machine()
        root = installation.cache_root(cache_dir).parent / "pgbackrest"
        final = root / f"{VERSION}-{here.architecture}"
        if (final / MARKER).exists():
            return final
        debian.require_programs()
        installation.make_folder(root)
        with installation.locked(root / ".lock", tell):
            if (final / MARKER).exists():
                return final
            download, part = root / ".download", root / ".part"
            files = debian.download(here.architecture, download, tell, PACKAGES)
            _verify(files, here.architecture)
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=0o755)
            debian.unpack(files, part)
            (part / MARKER).touch()
            shutil.rmtree(final, ignore_errors=True)
            part.rename(final)
            shutil.rmtree(download, ignore_errors=True)
    except (EmbeddedError, OSError) as error:
        raise BackupError(
            f"pgBackRest cannot be installed: {getattr(error, 'problem', error)}",
            "check the network and this machine's apt sources, or set PRESAGE_BACKUP_REPOSITORY to nothing",
        ) from error
    tell(f"installed pgBackRest {VERSION} in {final}")
    return final


def launcher(prefix: Path, server: installation.Installation, path: Path) -> str:
    """Return the text of a script that runs the program; `path` is where the script will be.

    pgBackRest starts itself again, as its workers and from the server's recovery, by the name that it was started with.
    """
    here = installation.machine()
    libraries = [tree / "usr/lib" / here.triplet for tree in (prefix, server.prefix)]
    words = [libraries[1] / here.loader, "--inhibit-cache", "--library-path", ":".join(map(str, libraries))]
    words += ["--argv0", path, prefix / "usr/bin/pgbackrest"]
    return f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n'


def _verify(files: list[Path], architecture: str) -> None:
    for file in files:
        if debian.name_of(file) == "pgbackrest":
            if hashlib.sha256(file.read_bytes()).hexdigest() == SHA256[architecture]:
                return
            offered = file.name.split("_")[1]
            file.unlink()
            raise BackupError(
                f"this machine's Debian mirror offers pgBackRest {offered}, and not {VERSION} as it was tried",
                "use another mirror, or a newer release of Presage",
            )
