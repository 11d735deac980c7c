"""A streaming replica of a benchmark's database, as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

from cli.stack.processes.program import Program, StartError
from sql.database import connect
from sql.embedded.account import account, environment

if TYPE_CHECKING:
    from benchmarks.database import Bench

NAME, PORT = "replica", 5432  # the port is part of its socket's name


def replica(bench: Bench) -> tuple[Program, str]:
    """Copy the database; return the server that follows it, and its URL. Raises StartError if it cannot be copied."""
    folder = bench.folder / NAME
    folder.mkdir(mode=0o755)
    user = account(folder / "data")
    user.own(folder)
    data = folder / "data"
    copying = ["-d", bench.url, "-D", str(data), "-R", "-X", "stream", "-c", "fast"]
    copied = user.run([bench.psql.with_name("pg_basebackup"), *copying], folder)
    if copied.returncode:
        raise StartError(f"the database was not copied: {copied.stderr.strip()}")
    url = f"postgresql://presage@/presage?host={folder}&port={PORT}"
    settings = {"unix_socket_directories": folder, "port": PORT, "listen_addresses": "", "logging_collector": "off"}
    as_user = ["setpriv", f"--reuid={user.uid}", f"--regid={user.gid}", "--clear-groups"] if user.lent else []
    server = [bench.psql.with_name("postgres"), "-D", data, *(f"--{name}={each}" for name, each in settings.items())]
    return Program(
        NAME,
        [str(each) for each in (*as_user, *server)],
        bench.folder / f"{NAME}.log",
        environment=environment(),
        directory=data,
        is_ready=lambda: _answers(url),
        tier=1,  # it ends after what reads it
    ), url


def _answers(url: str) -> bool:
    try:
        connect(url, autocommit=True, name="presage bench").close()
    except psycopg.OperationalError:
        return False
    return True
