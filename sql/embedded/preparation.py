"""Preparation of a server's start: leftovers of a killed one removed, first data and configuration written."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from config import secret_files
from sql.embedded import archiving, configuration, postmaster
from sql.embedded.errors import OTHERWISE, EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sql.embedded.installation import Installation
    from sql.embedded.place import ClusterFolder

ROLE = "presage"
NEEDED_BYTES = 256 << 20  # an empty cluster with its write-ahead log, and a margin
ORPHANS_S = 30
ZONES = Path("/usr/share/zoneinfo")  # compiled into Debian's server


def clear(place: ClusterFolder, port: int, tell: Callable[[str], None]) -> None:
    """Remove what a killed server left; what PostgreSQL can judge by itself is left to it."""
    deadline = time.monotonic() + ORPHANS_S
    while left := postmaster.orphans(place.name):
        # They notice by themselves that their postmaster is dead, at the latest after their current statement.
        if time.monotonic() > deadline:
            raise EmbeddedError(
                f"processes of an earlier server still work on {place.data}: {', '.join(map(str, left))}", "end them"
            )
        time.sleep(0.1)
    for file in (place.data / postmaster.PID_FILE, place.sockets(port) / f".s.PGSQL.{port}.lock"):
        with suppress(OSError, ValueError, IndexError):
            pid = abs(int(file.read_text().split()[0]))
            # PostgreSQL accepts the stale ID of a process that is gone, not one that a zombie or another program has.
            if Path(f"/proc/{pid}").exists():
                tell(f"removing the lock of a killed server ({file.name})")
                file.unlink()
    shutil.rmtree(place.home / "17.part", ignore_errors=True)


def initialise(place: ClusterFolder, programs: Installation, tell: Callable[[str], None]) -> None:
    """Create an empty cluster, if there is none; an incomplete one never has the final name."""
    if (place.data / "PG_VERSION").exists():
        return
    tell("creating the database")
    if shutil.disk_usage(place.home).free < NEEDED_BYTES:
        raise EmbeddedError(f"less than {NEEDED_BYTES >> 20} MB free in {place.home}", f"free some space, {OTHERWISE}")
    part = place.home / "17.part"
    options = ("-U", ROLE, "-A", "trust", "-E", "UTF8", "--locale-provider=builtin", "--locale=C.UTF-8")
    try:
        done = place.user.run([programs.program("initdb"), "-D", part, *options], cwd=place.home)
    except (PermissionError, subprocess.SubprocessError) as error:
        raise not_run(place, programs, error) from error
    if done.returncode != 0:
        said = "\n".join(f"    {line}" for line in (done.stdout + done.stderr).splitlines()[-8:])
        raise EmbeddedError(
            f"creating the database failed:\n{said}",
            f"check permissions and free space of {place.home}, or use another data folder",
        )
    with (part / "postgresql.conf").open("a") as file:
        file.write("\ninclude 'presage.conf'\n")
    part.rename(place.data)


def configure(place: ClusterFolder, port: int | None, socket_port: int, settings: Mapping[str, str]) -> None:
    """Write the settings and the authentication rules, at each start."""
    if port is not None:
        _require_free(port)
    said = {
        **configuration.server_settings(configuration.memory_bytes(), len(os.sched_getaffinity(0))),
        **configuration.log_settings(place.logs),
        "cluster_name": place.name,
        "port": str(socket_port),
        "listen_addresses": "" if port is None else "127.0.0.1",
        "unix_socket_directories": str(place.make_sockets(socket_port)),
        "unix_socket_permissions": "0700",
        **archiving.server_settings(place.home),
        **settings,
    }
    for name, text in {
        "presage.conf": configuration.written(said),
        "pg_hba.conf": configuration.host_rules(tcp=port is not None),
    }.items():
        path = place.data / name
        path.write_text(text)
        path.chmod(0o600)
        place.user.own(path)


def password(place: ClusterFolder) -> str:
    """Return the password of TCP connections, generated once."""
    with suppress(FileNotFoundError):
        return place.password.read_text()
    made = secrets.token_urlsafe(24)
    secret_files.write(place.password, made)
    return made


def not_run(place: ClusterFolder, programs: Installation, error: Exception) -> EmbeddedError:
    """Return the error of programs that cannot be run as the unprivileged user."""
    return EmbeddedError(
        f"user {place.user.name} cannot run the database in {place.home} with programs from {programs.prefix}: {error}",
        f"make both passable for that user (every folder above them too), run as an ordinary user, {OTHERWISE}",
    )


def require_time_zones() -> None:
    """Refuse a machine without time zones, which the server does not include."""
    if not (ZONES / "UTC").exists():
        raise EmbeddedError("this machine has no time zone data", f"apt-get install tzdata, {OTHERWISE}")


def _require_free(port: int) -> None:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise EmbeddedError(f"port {port} of 127.0.0.1 cannot be used: {error}", "choose another port") from error
