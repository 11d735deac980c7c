"""The server's programs: unpacked once into a cache, completely or not at all."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sql.embedded import debian
from sql.embedded.errors import OTHERWISE, EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RECIPE = 2  # raised when what is unpacked or written here changes: an older tree is then rebuilt
BIN = "usr/lib/postgresql/17/bin"
MARKER = "installed.json"
FULL = {errno.ENOSPC, errno.EDQUOT}
NEEDED_BYTES = 400 << 20  # 40 MB of packages, 40 MB of lists, 140 MB unpacked before trimming; and a margin
# Read neither by the server nor by its programs: documentation, translations, character sets of other programs, and the
# just-in-time compiler, whose libraries (LLVM) would be ten times the rest.
UNNEEDED = (
    *("etc", "var", "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/lintian", "usr/share/bug"),
    *("usr/share/info", "usr/share/gcc", "usr/lib/systemd", "usr/share/postgresql/17/man"),
    *("usr/lib/*/gconv", "usr/lib/postgresql/17/lib/bitcode", "usr/lib/postgresql/17/lib/llvmjit*"),
)


@dataclass(frozen=True)
class Machine:
    """Debian's name of this processor architecture, its library folder, and its loader."""

    architecture: str
    triplet: str
    loader: str


MACHINES = {
    "x86_64": Machine("amd64", "x86_64-linux-gnu", "ld-linux-x86-64.so.2"),
    "aarch64": Machine("arm64", "aarch64-linux-gnu", "ld-linux-aarch64.so.1"),
}


@dataclass(frozen=True)
class Installation:
    """One unpacked server."""

    prefix: Path
    postgresql: str
    timescaledb: str

    def program(self, name: str) -> Path:
        """Return the path of `postgres`, `initdb`, `psql`, `pg_dump`…, ready to be run."""
        return self.prefix / BIN / name


def machine() -> Machine:
    """Return this machine's architecture; refuse one for which there are no packages."""
    found = MACHINES.get(platform.machine())
    if platform.system() != "Linux" or found is None:
        raise EmbeddedError(
            f"no packages for {platform.system()} on {platform.machine()} (there are for Linux on x86_64 and aarch64)",
            "set DATABASE_URL to a PostgreSQL server that has TimescaleDB",
        )
    return found


def cache_root(cache_dir: Path | None = None) -> Path:
    """Return where programs are kept: as root not below its home, which the unprivileged user cannot enter."""
    if cache_dir is None:
        cache_dir = Path("/var/cache/presage") if os.geteuid() == 0 else Path.home() / ".cache/presage"
    return cache_dir.expanduser().absolute() / "timescaledb"


def installed(cache_dir: Path | None = None) -> Installation | None:
    """Find the newest complete installation, if there is one."""
    markers = sorted(cache_root(cache_dir).glob(f"[!.]*/{MARKER}"), key=lambda marker: marker.stat().st_mtime)
    return next(filter(None, (_whole(marker) for marker in reversed(markers))), None)


def install(cache_dir: Path | None = None, progress: Callable[[str], None] | None = None) -> Installation:
    """Install the server if it is not, repair it if it is broken, and wait for another process that is installing."""
    tell = progress or (lambda _: None)
    if (found := installed(cache_dir)) is not None:
        return found
    here = machine()
    debian.require_programs()
    debian.keyring()
    root = cache_root(cache_dir)
    if ":" in str(root) or ";" in str(root):
        raise EmbeddedError(
            f"the cache folder {root} has a colon in its name", "set PRESAGE_CACHE_DIR to another folder"
        )
    with _no_space(root):
        make_folder(root)
        with locked(root / ".lock", tell):
            if (found := installed(cache_dir)) is not None:
                return found
            return _install(here, root, tell)


def require(cache_dir: Path | None = None) -> Machine:
    """Refuse a machine on which an installation could not even begin."""
    here = machine()
    debian.require_programs()
    debian.keyring()
    debian.require_mirror()
    root = cache_root(cache_dir)
    if ":" in str(root) or ";" in str(root):
        raise EmbeddedError(
            f"the cache folder {root} has a colon in its name", "set PRESAGE_CACHE_DIR to another folder"
        )
    return here


def _install(here: Machine, root: Path, tell: Callable[[str], None]) -> Installation:
    # Trees of another recipe stay: a server started from one may still be running.
    for broken in root.glob(f"*-r{RECIPE}"):
        if _whole(broken / MARKER) is None:
            tell(f"removing a broken installation ({broken.name})")
            shutil.rmtree(broken, ignore_errors=True)
    _sweep(root)
    if (free := shutil.disk_usage(root).free) < NEEDED_BYTES:
        raise OSError(errno.ENOSPC, f"{free >> 20} MB free")
    # Kept when the installation is interrupted, so that the next one need not fetch the same packages again.
    download = root / ".download"
    files = debian.download(here.architecture, download, tell)

    versions = {debian.name_of(file): debian.version_of(file) for file in files}
    postgresql, timescaledb = versions["postgresql-17"], versions["postgresql-17-timescaledb"]
    final = root / f"{timescaledb}-pg{postgresql}-{here.architecture}-r{RECIPE}"
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=root))
    try:
        tell(f"unpacking PostgreSQL {postgresql} with TimescaleDB {timescaledb}")
        debian.unpack(files, part)
        _trim(part)
        _check(here, part)
        # The wrappers contain the final path of the tree, so it may be renamed to it but never moved again.
        _wrap(here, part, final)
        part.chmod(0o755)
        marker = {
            "recipe": RECIPE,
            "prefix": str(final),
            "postgresql": postgresql,
            "timescaledb": timescaledb,
            "packages": [file.name for file in files],
            # Their sizes, as after a power failure the name may be there without the content.
            "files": {str(path.relative_to(part)): path.lstat().st_size for path in _files(part)},
        }
        (part / MARKER).write_text(json.dumps(marker))
        shutil.rmtree(download, ignore_errors=True)
        part.rename(final)
    finally:
        _sweep(root)
    tell(f"installed PostgreSQL {postgresql} with TimescaleDB {timescaledb} in {final}")
    return Installation(final, postgresql, timescaledb)


def _sweep(root: Path) -> None:
    """Remove half-unpacked trees; only the holder of the lock makes any."""
    for left in root.glob(".part-*"):
        shutil.rmtree(left, ignore_errors=True)


def _whole(marker: Path) -> Installation | None:
    """Return the installation of a marker, unless one of its files is missing or truncated."""
    try:
        said: dict[str, Any] = json.loads(marker.read_text())
        prefix = marker.parent
        if said["recipe"] != RECIPE or said["prefix"] != str(prefix):
            return None
        if any((prefix / name).lstat().st_size != size for name, size in said["files"].items()):
            return None
        return Installation(prefix, said["postgresql"], said["timescaledb"])
    except (OSError, ValueError, KeyError):
        return None


def _files(tree: Path) -> Iterator[Path]:
    return (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())


def _trim(tree: Path) -> None:
    for pattern in UNNEEDED:
        for path in tree.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _check(here: Machine, tree: Path) -> None:
    libraries = tree / "usr/lib" / here.triplet
    command: list[str | Path] = [
        libraries / here.loader,
        "--inhibit-cache",
        "--library-path",
        libraries,
        tree / BIN / "postgres",
        "--version",
    ]
    try:
        done = subprocess.run(  # noqa: S603 - a program of ours
            command, capture_output=True, text=True, check=False
        )
        said, well = done.stderr.strip(), done.returncode == 0
    except OSError as error:
        said, well = str(error), False
    if not well:
        raise EmbeddedError(
            f"the unpacked server does not run from {tree.parent}: {said}",
            f"if that file system is mounted noexec, set PRESAGE_CACHE_DIR to another folder, {OTHERWISE}",
        )


def _wrap(here: Machine, tree: Path, final: Path) -> None:
    """Put before each program a script that runs it with the libraries it came with.

    Never by LD_LIBRARY_PATH: that would reach /bin/sh, which initdb starts, and give it a C library not its own.
    """
    libraries = final / "usr/lib" / here.triplet
    real = tree / BIN / ".real"
    programs = [path for path in (tree / BIN).iterdir() if path.is_file()]
    real.mkdir()
    real.chmod(0o755)
    for program in programs:
        name = program.name
        program.rename(real / name)
        words = (libraries / here.loader, "--inhibit-cache", "--library-path", libraries, "--argv0", final / BIN / name)
        line = shlex.join(map(str, (*words, final / BIN / ".real" / name)))
        program.write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        program.chmod(0o755)


def make_folder(folder: Path) -> None:
    """Make a folder of programs, and those above it."""
    try:
        for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
            path.mkdir(exist_ok=True)
            path.chmod(0o755)  # whatever the umask: another user will run its contents
    except OSError as error:
        if error.errno in FULL:
            raise
        raise EmbeddedError(
            f"{folder} cannot be created: {error}", "set PRESAGE_CACHE_DIR to a folder that you can write to"
        ) from error


@contextmanager
def locked(path: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock that the kernel releases when its holder dies, however it dies."""
    with path.open("a") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 - children that ask for it then hold the lock too
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    tell("waiting for another process that is installing it")
                waiting = True
                time.sleep(0.2)
        yield


@contextmanager
def _no_space(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise EmbeddedError(
            f"not enough disk space for the embedded database in {root} (it wants {NEEDED_BYTES >> 20} MB): {error}",
            "free some, or set PRESAGE_CACHE_DIR to a folder with more",
        ) from error
