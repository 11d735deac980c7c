"""A replica of a database, as far as tests need one."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import psycopg

from sql import database, disk
from sql.embedded import Cluster
from sql.embedded.account import environment
from sql.roles.rights import API
from tests.conftest import MEMORY, MEMORY_NEEDED
from tests.processes import terminate


@contextmanager
def standby():
    """A server that recovers from its log and never ends to: a replica whose primary is gone. Yields its address."""
    in_memory = MEMORY.is_dir() and disk.shutil.disk_usage(MEMORY).free > MEMORY_NEEDED
    with tempfile.TemporaryDirectory(prefix="presage-", dir=MEMORY if in_memory else None) as folder:
        Path(folder).chmod(0o755)
        cluster = Cluster(Path(folder) / "database", settings={"fsync": "off"})
        cluster.start()
        with database.connect(cluster.url("postgres"), autocommit=True) as conn:
            conn.execute(f"create role {API}")
            conn.execute("create table replayed (at timestamptz)")
        cluster.stop("immediate")
        place = cluster._place
        (place.data / "standby.signal").touch()
        place.user.own(place.data / "standby.signal")
        # Not by Cluster.start, which waits until the server accepts writes.
        process = subprocess.Popen(
            [cluster.install().program("postgres"), "-D", place.data],
            cwd=place.data,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **place.user.identity(),
        )
        try:
            yield cluster.url("postgres")
        finally:
            terminate(process)


def connected(url):
    try:
        return database.connect(url, autocommit=True)
    except psycopg.OperationalError:
        return None
