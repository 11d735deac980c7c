"""pg_dump and pg_restore of the server's own release, wherever they are installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sql.backup.errors import BackupError
from sql.embedded import EmbeddedError, installation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EMBEDDED = 17  # the embedded server's PostgreSQL release
# Printed for TimescaleDB's own tables, whose foreign keys refer to each other: they are restored without being checked.
HARMLESS = re.compile(
    r"circular foreign-key constraints|^pg_dump: detail: |^pg_dump: hint: |might not be able to restore the dump|"
    r"^pg_dump: warning: +\w*(hypertable|chunk|continuous_agg)\w*$|NOTICE: "
)


def program(name: str, major: int, cache_dir: Path | None, *, newer: bool) -> Path:
    """Find a program of the server's release, or a newer one if `newer`; install the embedded one if needed."""
    found = {_major(path): path for path in _candidates(name, major, cache_dir)}
    if major in found:
        return found[major]
    if newer and (later := [release for release in sorted(found) if release > major]):
        return found[later[0]]
    if major == EMBEDDED or (newer and major < EMBEDDED):
        try:
            return installation.install(cache_dir).program(name)
        except EmbeddedError as error:
            raise BackupError(f"there is no {name} {major}, and none could be installed", str(error)) from error
    raise BackupError(
        f"the server is PostgreSQL {major}, and there is no {name} of that release here",
        f"install the package postgresql-client-{major}, or put its {name} on the PATH",
    )


def run(command: Sequence[str | Path], url: str) -> str:
    """Run a program against a database, without exposing its password; return its output."""
    parts = {name: str(value) for name, value in conninfo_to_dict(url).items() if value is not None}
    password = parts.pop("password", None)
    env = {**os.environ, "LC_ALL": "C", "PGTZ": "UTC", **({"PGPASSWORD": password} if password else {})}
    return _run([*command, "--dbname", make_conninfo(**parts)], env)


def read(command: Sequence[str | Path]) -> str:
    """Run a program that needs no database; return its output."""
    return _run(command, {**os.environ, "LC_ALL": "C"})


def _run(command: Sequence[str | Path], env: dict[str, str]) -> str:
    done = subprocess.run(  # noqa: S603 - PostgreSQL's own programs
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    output = [line for line in done.stderr.splitlines() if not HARMLESS.search(line)]
    if done.returncode != 0:
        last = "\n".join(f"    {line}" for line in output[-8:])
        raise BackupError(f"{Path(command[0]).name} failed", f"its last output:\n{last}")
    return done.stdout


def _candidates(name: str, major: int, cache_dir: Path | None) -> Iterator[Path]:
    if (embedded := installation.installed(cache_dir)) is not None:
        yield embedded.program(name)
    if (path := shutil.which(name)) is not None:
        yield Path(path)
    debian = Path(f"/usr/lib/postgresql/{major}/bin/{name}")
    if debian.exists():
        yield debian


def _major(path: Path) -> int:
    """Return a program's major release; 0 if unknown."""
    try:
        output = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return 0
    match = re.search(r"\) (\d+)", output.stdout)
    return int(match[1]) if match else 0
